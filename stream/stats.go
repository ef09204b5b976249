package stream

import (
	"sync"
	"sync/atomic"
	"time"

	"edge/online/score"
	"edge/stream/codec"
	"edge/stream/mqtt"
)

// counters are those of a node and of the nodes that it succeeded; any goroutine
// may use them.
type counters struct {
	network mqtt.Counters

	received, refused                           atomic.Uint64
	predictions, learned, redelivered           atomic.Uint64
	ringDropped, lessonsDropped, rejectsDropped atomic.Uint64
	pendingExpired, pendingEvicted              atomic.Uint64
	valuesUnused, frozen, idReused, observed    atomic.Uint64

	held        atomic.Int64 // answered messages that the committer's queue has no room for
	lastMessage moment

	unconfirmedCounts
	journalState
}

// unconfirmedCounts are those of the set of unconfirmed messages.
type unconfirmedCounts struct {
	unconfirmed        atomic.Int64  // messages in the set
	unconfirmedDropped atomic.Uint64 // messages that left the full set
	sequence           atomic.Uint64 // of the newest commit that took messages
}

// journalState is whether the journal can be written.
type journalState struct {
	degraded       atomic.Bool
	commitError    atomic.Pointer[string] // of the last commit that failed
	commitFailures atomic.Uint64
}

// moment is a time that any goroutine may set and read. The zero value: none.
type moment struct {
	mu sync.Mutex
	at time.Time
}

func (m *moment) set(t time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = t
}

// since returns how long ago it was; 0 for none.
func (m *moment) since() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at.IsZero() {
		return 0
	}
	return time.Since(m.at)
}

// tally counts refusals by reason.
type tally map[codec.Reason]*atomic.Uint64

func newTally() tally {
	t := tally{}
	for _, r := range codec.Reasons() {
		t[r] = new(atomic.Uint64)
	}
	return t
}

func (t tally) addTo(sum map[codec.Reason]uint64) {
	for reason, n := range t {
		if v := n.Load(); v > 0 {
			sum[reason] += v
		}
	}
}

// sourceCounts are those of the messages that are counted under one name.
type sourceCounts struct {
	received atomic.Uint64
	last     moment // when the last message came
	rejected tally
	idReused atomic.Bool // which was warned about
}

func newSourceCounts() *sourceCounts { return &sourceCounts{rejected: newTally()} }

// modelCounts are those of one model.
type modelCounts struct {
	predictions, learned, redelivered, ignored atomic.Uint64

	corrected        atomic.Uint64
	missing, clipped atomic.Uint64 // features
	pending          atomic.Int64
	lag              atomic.Int64 // labels, as late says
	delay            atomic.Int64 // nanoseconds, as delays says
	learning         atomic.Bool  // as the journal has it
	queries          queries      // that are open
}

// Stats is what a node and those that it succeeded have done, and where it stands.
type Stats struct {
	ConnectionStats
	LossStats

	Degraded       bool   // the journal fails: nothing is learnt or acknowledged until it works again
	CommitError    string // why it fails
	CommitFailures uint64

	SinceMessage time.Duration           // since the last message; 0 before the first
	Received     uint64                  // messages
	Rejected     map[codec.Reason]uint64 // refused messages and labels; only reasons that occurred
	Predictions  uint64
	Learned      uint64 // labelled samples that were committed
	Redelivered  uint64 // samples and labels that had been taught already
	Observed     uint64 // messages that were answered before their turn: while the journal could not be written, or the ring was full
	IDReused     uint64 // samples that came under the id of another one, with other features
	Unconfirmed  int    // messages that the broker may send again although they were learnt
	Published    uint64

	Ring, Commit, Outbox int // lengths of the queues

	Streams map[string]StreamStats
	Models  map[string]ModelStats
}

// ConnectionStats are the Stats of the connection to the broker.
type ConnectionStats struct {
	Connected  bool
	Failure    string   // why it is not connected, as far as is known
	Subscribed bool     // the broker has granted every subscription of this connection
	Refused    []string // filters that the broker does not let the node subscribe to
	Unacked    int64    // messages of QoS 1 that are in the node

	Reconnects, ConnectFailures uint64

	ProtocolErrors uint64 // connections and attempts that ended with a ProtocolError
	Redeliveries   uint64 // times that the broker was asked to send again because the ring was full
	StaleAcks      uint64 // acknowledgements of messages that came over an earlier connection
}

// LossStats are the Stats of what was given up because a bound was reached.
type LossStats struct {
	RingDropped        uint64 // messages of QoS 0 that found the ring full
	LessonsDropped     uint64 // messages of QoS 0 that were answered but found the journal's queue full
	OutboxDropped      uint64 // messages that were not published
	RejectsDropped     uint64 // refusals that the rate limit kept from the reject topic
	PendingExpired     uint64 // samples whose label did not come in time
	PendingEvicted     uint64 // samples that made room for newer ones
	ValuesUnused       uint64 // single values that did not become part of a sample
	Frozen             uint64 // labels that taught nothing because learning was switched off
	ObservedDropped    uint64 // messages whose answer before their turn made room for newer ones; they come again
	UnconfirmedDropped uint64 // messages that are no longer unconfirmed because there were too many
}

// StreamStats are the Stats of one stream; labels on topics of their own are
// counted under "labels".
type StreamStats struct {
	Received     uint64
	Rejected     map[codec.Reason]uint64
	SinceMessage time.Duration // since its last message
}

// ModelStats are the Stats of one model.
type ModelStats struct {
	Predictions, Learned, Redelivered uint64
	Frozen                            uint64         // labels that came while learning was switched off
	Learning                          bool           // not switched off
	Pending                           int            // samples that wait for their label
	Corrected                         uint64         // labels that corrected an earlier one
	Missing, Clipped                  uint64         // features that samples lacked; that were too far from their mean
	LabelDelay                        time.Duration  // median time from a sample to its label, of the latest that came late; 0: none did
	Asked, Answered, Unanswered       uint64         // questions: all, those that got their label, those whose sample waits no longer
	Open                              int            // questions that are neither
	Sets                              score.Coverage // of the published prediction sets whose label is known
}

// Stats returns what the node has done so far. Any goroutine may call it.
func (n *Node) Stats() Stats {
	c := n.counts
	s := Stats{
		ConnectionStats: n.connectionStats(), LossStats: n.lossStats(), Degraded: c.degraded.Load(), CommitFailures: c.commitFailures.Load(),
		SinceMessage: c.lastMessage.since(), Received: c.received.Load(), Predictions: c.predictions.Load(), Learned: c.learned.Load(), Redelivered: c.redelivered.Load(),
		Observed: c.observed.Load(), IDReused: c.idReused.Load(), Unconfirmed: int(c.unconfirmed.Load()), Published: c.network.Published.Load(),
		Ring: n.ring.Len(), Commit: len(n.queue) + int(n.counts.held.Load()), Outbox: n.outbox.Len(),
		Rejected: map[codec.Reason]uint64{}, Streams: map[string]StreamStats{}, Models: map[string]ModelStats{},
	}
	if why := c.commitError.Load(); s.Degraded && why != nil {
		s.CommitError = *why
	}
	for name, c := range n.heard {
		c.rejected.addTo(s.Rejected)
		if c.received.Load() == 0 {
			continue
		}
		of := StreamStats{Received: c.received.Load(), SinceMessage: c.last.since(), Rejected: map[codec.Reason]uint64{}}
		c.rejected.addTo(of.Rejected)
		s.Streams[name] = of
	}
	for _, m := range n.models {
		s.Models[m.Name] = ModelStats{
			Predictions: m.predictions.Load(), Learned: m.learned.Load(), Redelivered: m.redelivered.Load(), Pending: int(m.pending.Load()),
			Asked: m.queries.asked.Load(), Answered: m.queries.answered.Load(), Unanswered: m.queries.expired.Load(), Open: m.queries.len(),
			Frozen: m.ignored.Load(), Learning: m.learning.Load(), Corrected: m.corrected.Load(), LabelDelay: time.Duration(m.delay.Load()),
			Missing: m.missing.Load(), Clipped: m.clipped.Load(), Sets: m.aim.Coverage(),
		}
	}
	return s
}

func (n *Node) connectionStats() ConnectionStats {
	c := &n.counts.network
	s := ConnectionStats{
		Failure: n.client.Failure(), Reconnects: c.Reconnects.Load(), ConnectFailures: c.ConnectFailures.Load(),
		ProtocolErrors: c.ProtocolErrors.Load(), Redeliveries: c.Redeliveries.Load(), StaleAcks: c.StaleAcks.Load(),
	}
	if conn := n.client.Conn(); conn != nil {
		s.Connected, s.Subscribed, s.Unacked = true, conn.Subscribed(), conn.Unacknowledged()
	}
	s.Refused, _ = n.client.RefusedFilters()
	return s
}

func (n *Node) lossStats() LossStats {
	c := n.counts
	return LossStats{
		RingDropped: c.ringDropped.Load(), LessonsDropped: c.lessonsDropped.Load(), OutboxDropped: c.network.OutboxDropped.Load(),
		RejectsDropped: c.rejectsDropped.Load(), PendingExpired: c.pendingExpired.Load(), PendingEvicted: c.pendingEvicted.Load(),
		ValuesUnused: c.valuesUnused.Load(), Frozen: c.frozen.Load(), ObservedDropped: c.network.DeferredDropped.Load(),
		UnconfirmedDropped: c.unconfirmedDropped.Load(),
	}
}
