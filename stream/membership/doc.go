// Package membership is the part of a node in a fleet that needs neither the network nor the
// learner: topics, parts, versions, and when to publish and to merge.
//
//	<base>/fleet/<concept>/<node>          contribution, retained; an empty one: the member has left
//	<base>/fleet/<concept>/<node>/<part>   parts of one that is larger than max_message, retained;
//	                                       the message above is then the list of parts
//
// A Member receives these messages and returns the due work in each Step. It keeps the newest
// contribution of each other member and nothing older: a merge depends on the messages that
// the broker keeps, and on nothing else. All times are those of the caller, by a monotonic clock.
//
//	config.go       Config; topics.go: Topics of a fleet
//	member.go       Member, its connections, refusals and events
//	receive.go      messages of the others; ask.go: those that it asks for again
//	parts.go        contributions in several messages; collector.go: Collector, for commands
//	publish.go      Step, and the own contribution; information.go: when it is worth a message
//	former.go       messages of other processes under the name of this node, and the epoch
//	echo.go         the state of a publication at the broker
//	merge.go        when to merge; basis.go and scales.go: the common basis, the scales
//	view.go         View, the state for people
//
// # Versions
//
// Epoch and sequence order the contributions of one member. The epoch rises with each
// start, above the one that the state file and the broker know, and is durable before the
// first publication: a node that was restored from a backup wins over its own future. Where
// the broker has forgotten that future, an older version of another process counts as well,
// once it is published: the others then hold the same version as the broker.
//
// A node waits five seconds at its first connection for its message of before. One that
// ends earlier takes a second without a message as the end of the retained ones: if its
// message came later nevertheless, it wins over that one as one restored from a backup.
//
// # Proof of delivery
//
// A broker may acknowledge a message and drop it, or end the connection, or pass the message on and
// not keep it. A contribution therefore counts as kept once it has come back on the subscription and,
// if it is larger than those before, once more when the broker was asked for it; after each
// reconnect once the broker has sent it again.
package membership
