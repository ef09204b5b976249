// Package stream connects models to MQTT: messages in, predictions out.
//
//	MQTT ─► mqtt.Client ─► ring ─► worker: route, decode, predict ─► outbox ─► mqtt.Client ─► MQTT
//	                                 └─► committer: journal ─► acknowledge ─► Model.Learn
//
// NewNode wires a Node from a Config and its collaborators (Deps); Run runs it. Three
// goroutines carry a message. The reader of the connection puts it into a bounded
// ring and never waits. The worker (worker.go, answer.go, batch.go) decodes it and
// predicts from the newest snapshot of the model. The committer (committer.go,
// group.go, learn.go), the only writer of the Journal, makes its labels and samples
// durable, acknowledges it and hands the records to the learner, in the order of
// receipt. A prediction waits neither for learning nor for the disk: answered
// messages that cannot be committed yet are held. No message is acknowledged before
// it is durable, so that the broker's window fills while the journal fails; a
// fallback subscription (fallback.go) then receives the streams over a second
// connection, only to answer them.
//
// Terms. A stream maps topics to samples; a sample is one feature vector; a reading
// is one entry of a payload. A label comes with its sample, or later by the sample's
// id (pending.go holds the samples that wait). A refusal is input that is not learnt,
// with a reason that is also a metric label. A stream of single values has a joiner,
// which makes samples of them.
//
// Requests. With Control enabled, a node reads the requests on request/# (request.go)
// and carries out their commands (command.go): the worker prepares a mutation in the
// order of receipt, and the committer makes it durable. Commands that take long run in
// the background (background.go). For Home Assistant each model is a device (package homeassistant).
//
// Identity. A sample with an id is learnt once: the journal stores the key of
// (stream, captured levels, id) with it. A message without an id is a repetition only
// if the broker sends it again and the first one is in the set of unconfirmed
// messages (unconfirmed.go): two equal readings are two samples. Senders that need
// exactly-once learning send ids.
//
// Bounds. Every queue has a limit and a counter (Stats). The clock of the payloads is
// passed through and decides nothing; intervals are monotonic.
//
// Everything that a node publishes is a struct of payload.go. Below this package are
// stream/field and stream/topic, stream/mqtt, stream/signal, stream/codec,
// stream/membership and stream/homeassistant; each knows only some before it. A good
// order of reading: doc.go, node.go, wire.go, worker.go, committer.go.
package stream
