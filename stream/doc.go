// Package stream is the MQTT edge: messages in, predictions out.
//
//	MQTT ─► client ─► ring ─► worker: route, decode, predict ─► outbox ─► client ─► MQTT
//	                            └─► committer: journal ─► acknowledge ─► Model.Learn
//
// A Node wires it. Three goroutines carry a message: the connection's reader puts
// it in a bounded ring and never waits; the worker decodes it and answers it from the
// model's newest snapshot; the committer, the only writer of the journal, makes
// what it teaches durable, acknowledges it and hands it to the learner, in the
// order of receipt. A prediction never waits for learning nor for the disk: what
// is answered and cannot be committed yet is held. What is not durable is not
// acknowledged, so that the broker's window fills where the journal fails; an
// observer then hears the streams over a second connection, to be answered only.
//
// Words: a stream maps topics to samples, a sample is one feature vector, a
// reading is one entry of a payload, a label may come with its sample or later
// by its id; a refusal is input that teaches nothing, with a reason that is
// also a metric label.
//
// Formats. A codec for each reads payloads after their compression is undone;
// all share one shape, so that they accept and refuse the same. A stream of
// single values has a gatherer that makes samples of them.
//
// Requests. A node that may be controlled hears request/#; the worker carries a
// request out in the order of receipt, and the committer makes it durable. What
// takes long is an errand, outside the way of the messages. For
// Home Assistant each model is a device (homeassistant.go).
//
// Identity. A sample with an id is taught once: the key of (stream, captured
// levels, id) is journalled with it. A sample without an id is identified by its
// topic and payload, but only where the broker says that it may be a repetition
// (DUP, or retained): two equal readings are two samples. Senders that need
// exactly once give ids.
//
// Bounds: every queue has a limit and a counter (Stats). The clock of the
// payloads is passed through and never decides; intervals are monotonic. The
// age of a sample that waits for its label is the time that the node has run, as
// far as the journal knows it.
//
// Only client.go knows paho, which keeps the session; messages of QoS 0 and 1 and
// their acknowledgements go past it (frame.go). Reference: MQTT 3.1.1, OASIS Standard, 2014.
package stream
