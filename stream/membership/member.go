package membership

import (
	"fmt"
	"maps"
	"time"

	"edge/online/fleet"
)

const (
	gatherWithin = 5 * time.Second  // of connections, while the own retained message of before may still come
	quietFor     = time.Second      // without a message, after which the retained ones have come
	keptWithin   = 10 * time.Second // for a publication to come back
	maxUpload    = 5 * time.Minute  // of a publication, for which its return is waited for longer
	mostGap      = 20 * time.Second // of it that the own message has, which has to be found missing before the client ends the connection
	maxGap       = time.Minute      // between retained messages over a slow connection
	lostWithin   = 2 * time.Second  // of a publication: the connection may have ended by it
	maxStrikes   = 2                // connections that a publication may end
	isolated     = 10 * time.Minute // without a connection
	tryAfter     = time.Hour        // of silence of the process that has this node's name
	noteEvery    = time.Minute      // between events of one kind and reason
	maxNoted     = 256              // kinds and reasons, members among them, that are kept apart

	// maxAssemblies bounds the members of which parts are collected. How many labels one has, by which
	// max_members chooses, is not known before all of its parts are there.
	maxAssemblies = 4096

	maxEpoch = 1 << 47 // a mark of the journal has no room for more
)

// Bounds of the memory of a fleet, in bytes.
const (
	MaxHeld    = 64 << 20 // all contributions and parts
	MaxWaiting = 32 << 20 // messages that wait to be read, of all fleets of a node
)

// Reasons why a message is refused on arrival, beside those of a merge.
const (
	TooLarge  fleet.Reason = "size"
	Malformed fleet.Reason = "format"
	BadName   fleet.Reason = "name"    // the contribution is of another member than its topic
	NotListed fleet.Reason = "members" // the configuration names others
	NoRoom    fleet.Reason = "room"    // max_members, or the bytes of all
	Flooded   fleet.Reason = "queue"   // it came faster than it could be read
)

// Publication is a retained message to publish; an empty payload removes the kept one.
type Publication struct {
	Topic   string
	Payload []byte
}

// Member is one model's part in a fleet. One goroutine uses it at a time.
type Member struct {
	cfg      Config
	name     string // of the node
	topics   Topics
	instance uint64 // of the process
	event    func(kind, detail string)

	set        *fleet.Set
	peers      map[string]*peer // of the members in set
	assemblies map[string]*assembly
	held       int  // bytes of the contributions in set
	parted     bool // a list of parts was seen
	link       link
	own        own
	info       information
	merge      merging
	asking     asking
	basis      basis
	counts     counts
	proposal   *fleet.Common        // of the own contribution; without inducing points there is none
	noted      map[string]time.Time // last event, by kind and reason
}

// peer is another member.
type peer struct {
	received time.Time // of its newest version
	bytes    int       // of its contribution's messages, before they are in parts
	held     int       // of memory that its contribution takes
	seen     int       // connection that brought its message last
	stale    bool
	pause    time.Duration // between the latest two messages; 0: not known
	asked    backoff       // for its message, in this silence
	result   fleet.Member  // of the latest merge
	merged   bool          // result is known
	unread   fleet.Reason  // why its newest message was refused on arrival; None: it was not
}

// link is the connection to the broker.
type link struct {
	up      bool
	number  int           // of connections
	at      time.Time     // of its beginning, or of its end
	before  time.Duration // that earlier ones lasted
	arrived time.Time     // of the latest message
	kept    bool          // the broker had the own message
	others  bool          // it had one of another member
	owns    bool          // it had the own message before the connection
	asked   time.Time     // of the messages of members that it has not sent
	checked bool          // members without a message were looked for

	retained int           // messages since its beginning, or since those of all were asked for; without those of members that were asked for
	brought  time.Time     // of the latest retained message, of others also when they were asked for
	gap      time.Duration // the longest between two of them, or the upload of the own one, up to maxGap; also in earlier connections
}

// lasted is the time of all connections.
func (l *link) lasted(now time.Time) time.Duration {
	if l.up {
		return l.before + now.Sub(l.at)
	}
	return l.before
}

// first reports whether the connection is the first one of the process, but for some that were
// short: the retained messages that it brings were there before.
func (m *Member) first() bool { return m.link.before < keptWithin }

// counts are the counters of a Member.
type counts struct {
	Received, Sent uint64 // bytes
	Merges         uint64
	Missed         uint64 // contributions that the broker sent only when it was asked for them again
	Refused        map[fleet.Reason]uint64
}

// Identity distinguishes a member from all others.
type Identity struct {
	Base, Node string
	Instance   uint64 // random, of the process
	Epoch      uint64 // that the state file knows; 0: none
}

// New returns a member without a connection. event publishes an event for people.
func New(cfg Config, id Identity, event func(kind, detail string)) *Member {
	return &Member{
		cfg: cfg, name: id.Node, topics: NewTopics(id.Base, cfg.Concept), instance: id.Instance, event: event,
		set: fleet.NewSet(cfg.MaxMembers), peers: map[string]*peer{}, assemblies: map[string]*assembly{},
		own: own{stored: id.Epoch}, proposal: &fleet.Common{}, asking: asking{open: map[string]time.Time{}}, counts: counts{Refused: map[fleet.Reason]uint64{}}, noted: map[string]time.Time{},
	}
}

// Continue gives the member another configuration of the same concept.
func (m *Member) Continue(cfg Config, event func(kind, detail string)) {
	old, common := m.set.Members(), m.set.Common()
	if cfg.Scale != m.cfg.Scale {
		m.merge.scales = scales{}
	}
	m.cfg, m.event, m.set = cfg, event, fleet.NewSet(cfg.MaxMembers)
	for _, c := range old {
		if m.listed(c.Member) {
			m.set.Put(c)
		}
	}
	if common != nil && m.shares() {
		m.set.Offer(common)
	}
	m.basis.rebase, m.basis.asked = max(m.basis.rebase, m.basis.asked), fleet.NoRebase
	m.merge.changed = m.merge.changed || m.merge.running || len(old) > 0
	m.merge.running = false // a merge that the former node did not commit has not happened
	m.forgetPeers()
}

// Name returns the name of the node.
func (m *Member) Name() string { return m.name }

// Config returns the configuration.
func (m *Member) Config() *Config { return &m.cfg }

// Topics returns the topics.
func (m *Member) Topics() Topics { return m.topics }

// Connected notes that a connection began, and that its subscription follows.
func (m *Member) Connected(now time.Time) {
	m.asking.all = backoff{}
	for _, a := range m.assemblies {
		a.connected()
	}
	m.link = link{up: true, number: m.link.number + 1, at: now, before: m.link.before, arrived: now, owns: m.own.known && !m.own.reported, gap: max(m.link.gap, min(m.own.took, maxGap))}
	m.own.connected()
	if m.own.epoch == 0 { // this broker may have lost what an earlier connection brought
		m.own.found, m.own.former = false, former{}
	}
}

// Disconnected notes the end of the connection. It reports whether the publication that
// waits must be withdrawn.
func (m *Member) Disconnected(now time.Time) (withdraw bool) {
	if !m.link.up {
		return false
	}
	withdraw = m.strike(now)
	m.link.before += now.Sub(m.link.at)
	m.link.up, m.link.at = false, now
	return withdraw
}

// refuse counts a refusal, and publishes an event once a minute for each reason, and each
// member in the set. In place of the own message, which had come back, that is published again.
func (m *Member) refuse(now time.Time, reason fleet.Reason, name, why string) {
	if name == m.name && !m.own.fresh {
		m.own.again = m.own.known
	}
	m.counts.Refused[reason]++
	m.asking.crowded = m.asking.crowded || reason == NoRoom
	key := string(reason)
	if m.peers[name] != nil {
		key += " " + name
	}
	m.note(now, "fleet_refused", key, fmt.Sprintf("%s: %s: %s", name, reason, why))
}

// Flood counts messages that were dropped before they were read.
func (m *Member) Flood(now time.Time, messages int) {
	m.counts.Refused[Flooded] += uint64(messages) - 1
	m.refuse(now, Flooded, m.cfg.Concept, fmt.Sprintf("%d messages came faster than they could be read", messages))
}

// note publishes an event, once a minute for each kind and reason; if there are too many, for
// each kind.
func (m *Member) note(now time.Time, kind, reason, detail string) {
	key := kind + " " + reason
	if len(m.noted) >= maxNoted {
		maps.DeleteFunc(m.noted, func(_ string, last time.Time) bool { return now.Sub(last) >= noteEvery })
	}
	if _, known := m.noted[key]; !known && len(m.noted) >= maxNoted {
		key = kind
	}
	if last, ok := m.noted[key]; ok && now.Sub(last) < noteEvery {
		return
	}
	m.noted[key] = now
	m.event(kind, detail)
}
