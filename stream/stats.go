package stream

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"edge/online"
	"edge/online/conformal"
	"edge/online/score"
	"edge/stream/codec"
	"edge/stream/mqtt"
	"edge/stream/signal"
)

// counters are the counters of a node and of its predecessors; any goroutine may use them.
type counters struct {
	// Counters that the worker increments, on cache lines of their own.
	received, refused, predictions, observed atomic.Uint64
	examplesDropped, rejectsDropped          atomic.Uint64
	valuesUnused                             atomic.Uint64
	held                                     atomic.Int64 // answered messages that wait for room in the committer's queue
	lastMessage                              moment

	network     mqtt.Counters
	ringDropped atomic.Uint64

	// Counters that the committer increments.
	learned, redelivered, frozen, idReused atomic.Uint64
	pendingExpired, pendingEvicted         atomic.Uint64
	unconfirmedCounts
	journalState
}

// unconfirmedCounts are the counters of the set of unconfirmed messages.
type unconfirmedCounts struct {
	unconfirmed        atomic.Int64  // size of the set
	unconfirmedDropped atomic.Uint64 // messages that left the full set
	sequence           atomic.Uint64 // number of the newest commit with messages
}

// journalState is the state of the journal.
type journalState struct {
	degraded       atomic.Bool
	commitError    atomic.Pointer[string] // of the last commit that failed
	commitFailures atomic.Uint64
}

// moment is a time that any goroutine may set and read. The zero value: no time.
type moment struct {
	mu sync.Mutex
	at time.Time
}

func (m *moment) set(t time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = t
}

// since returns the time since then, at least 1ns; 0 for no time.
func (m *moment) since() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at.IsZero() {
		return 0
	}
	return max(time.Since(m.at), 1)
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

// counts returns the reasons that have occurred, with their numbers.
func (t tally) counts() map[codec.Reason]uint64 {
	all := map[codec.Reason]uint64{}
	for reason, n := range t {
		if v := n.Load(); v > 0 {
			all[reason] = v
		}
	}
	return all
}

// sourceCounts are the counters of the messages of one name.
type sourceCounts struct {
	received atomic.Uint64
	last     moment        // arrival of the last message
	leftOut  atomic.Uint64 // messages of which the key where takes no entry
	rejected tally
	idReused atomic.Bool // a warning was logged
	signals  signal.Counts
	logs     rateLimits // of the log of refusals
}

func newSourceCounts() *sourceCounts {
	return &sourceCounts{rejected: newTally(), logs: newRateLimits(logEvery, 1)}
}

// modelCounts are the counters of one model.
type modelCounts struct {
	predictions, learned, redelivered, ignored atomic.Uint64

	corrected        atomic.Uint64
	missing, clipped atomic.Uint64 // features
	pending          atomic.Int64
	lag              atomic.Pointer[online.Lag] // copy of late, for the worker; nil: no late label yet
	delay            atomic.Int64               // in nanoseconds, from delays
	learning         atomic.Bool                // as in the journal
	queries          queries                    // open queries

	aim conformal.CoverageController // of the published sets
}

// Stats are the counters and the state of a node and its predecessors.
type Stats struct {
	ConnectionStats
	LossStats

	Degraded       bool   // the journal cannot be written: nothing is learnt or acknowledged
	CommitError    string // of the last failed commit
	CommitFailures uint64

	SinceMessage time.Duration           // since the last message of a stream or of labels; 0 before the first
	Received     uint64                  // messages
	Rejected     map[codec.Reason]uint64 // refused messages and labels, by reason
	Predictions  uint64
	Learned      uint64 // labelled samples that were committed
	Redelivered  uint64 // samples and labels that were learnt before
	Observed     uint64 // messages that were answered before their turn, because the journal failed or the ring was full
	IDReused     uint64 // samples with the id of another one and other features
	Unconfirmed  int    // learnt messages that the broker may send again

	Ring, Commit, Outbox int // lengths of the queues

	Streams map[string]StreamStats
	Models  map[string]ModelStats
}

// ConnectionStats are the Stats of the connection to the broker.
type ConnectionStats struct {
	Connected  bool
	Failure    string   // reason for the missing connection
	Subscribed bool     // the broker has granted all subscriptions of this connection
	Refused    []string // subscriptions that the broker refused
	Unacked    int64    // unacknowledged messages of QoS 1 and 2 in the node

	Brief           int64 // connections in a row, before the present one, that were lost within mqtt.RepeatAfter
	Reconnects      uint64
	ConnectFailures uint64 // attempts that failed
	ProtocolErrors  uint64 // connections and attempts that ended with a ProtocolError
}

// LossStats count the messages and samples that were dropped at a bound.
type LossStats struct {
	RingDropped        uint64 // messages of QoS 0 that found the ring full
	ExamplesDropped    uint64 // answered messages of QoS 0 that found the journal's queue full
	OutboxDropped      uint64 // publications that were discarded
	OutboxRefused      uint64 // publications upon which the broker ends the connection
	RejectsDropped     uint64 // refusals above the rate limit of the reject topic
	PendingExpired     uint64 // samples without a label in time
	PendingEvicted     uint64 // samples that made room for newer ones
	ValuesUnused       uint64 // single values that did not become part of a sample
	Frozen             uint64 // labels that were ignored while learning was switched off
	ObservedDropped    uint64 // early answers that made room for newer ones; their messages come again
	UnconfirmedDropped uint64 // messages that left the full set of unconfirmed ones
}

// StreamStats are the Stats of one stream; labels on topics of their own have the name
// "labels".
type StreamStats struct {
	Received     uint64
	LeftOut      uint64 // messages of which the key where takes no entry
	Rejected     map[codec.Reason]uint64
	SinceMessage time.Duration // since its last message
	Signals      *SignalStats  // nil: the stream has no signals
	Ended        bool          // only previous nodes had the stream: its counters stand still, and it has no devices
}

// SignalStats count what became of the rows of a stream with signals.
type SignalStats struct {
	Rows     uint64 `json:"rows"`     // received
	Samples  uint64 `json:"samples"`  // made
	Late     uint64 `json:"late"`     // rows that were not later than the one before: most often repetitions
	Gaps     uint64 `json:"gaps"`     // silences after which a window began anew
	SetBack  uint64 `json:"set_back"` // clocks of devices that were set back
	Thin     uint64 `json:"thin"`     // windows that were left out, with too few rows
	Mixed    uint64 `json:"mixed"`    // windows of several labels, which have none
	Crowded  uint64 `json:"crowded"`  // rows that made room in a full window
	Evicted  uint64 `json:"evicted"`  // devices that made room for others
	Unvalued uint64 `json:"unvalued"` // rows without any value
	Devices  int    `json:"devices"`  // whose rows are remembered
}

// signalStats returns the SignalStats of a stream.
func signalStats(c *signal.Counts) *SignalStats {
	return &SignalStats{
		Rows: c.Rows.Load(), Samples: c.Samples.Load(), Late: c.Late.Load(), Gaps: c.Gaps.Load(), SetBack: c.SetBack.Load(), Thin: c.Thin.Load(),
		Mixed: c.Mixed.Load(), Crowded: c.Crowded.Load(), Evicted: c.Evicted.Load(), Unvalued: c.Unvalued.Load(), Devices: int(c.Devices.Load()),
	}
}

// ModelStats are the Stats of one model.
type ModelStats struct {
	Predictions, Learned, Redelivered uint64
	Frozen                            uint64         // labels that came while learning was switched off
	Learning                          bool           // not switched off
	Pending                           int            // samples that wait for their label
	Corrected                         uint64         // labels that corrected an earlier one
	Missing, Clipped                  uint64         // missing features; features that were too far from their mean
	LabelDelay                        time.Duration  // median time from a sample to its label, over the latest late ones; 0: no label was late
	Asked, Answered, Unanswered       uint64         // queries: all, those with a label, those whose sample is not pending any more
	Open                              int            // the other queries
	Sets                              score.Coverage // of the published prediction sets whose label is known
	Classes                           []string       // of its predictions; read only
}

// Stats returns the present Stats. Any goroutine may call it.
func (n *Node) Stats() Stats {
	c := n.counts
	s := Stats{
		ConnectionStats: n.connectionStats(), LossStats: n.lossStats(), Degraded: c.degraded.Load(), CommitFailures: c.commitFailures.Load(),
		SinceMessage: c.lastMessage.since(), Received: c.received.Load(), Predictions: c.predictions.Load(), Learned: c.learned.Load(), Redelivered: c.redelivered.Load(),
		Observed: c.observed.Load(), IDReused: c.idReused.Load(), Unconfirmed: int(c.unconfirmed.Load()),
		Ring: n.ring.Len(), Commit: len(n.queue.items) + int(n.counts.held.Load()), Outbox: n.outbox.Len(),
		Rejected: map[codec.Reason]uint64{}, Streams: map[string]StreamStats{}, Models: map[string]ModelStats{},
	}
	if why := c.commitError.Load(); s.Degraded && why != nil {
		s.CommitError = *why
	}
	for name, c := range n.sourceCounts {
		rejected := c.rejected.counts()
		for reason, n := range rejected {
			s.Rejected[reason] += n
		}
		if c.received.Load() == 0 {
			continue
		}
		ended := name != n.unrouted.name && !slices.ContainsFunc(n.sources, func(s *source) bool { return s.name == name })
		of := StreamStats{Ended: ended, Received: c.received.Load(), LeftOut: c.leftOut.Load(), SinceMessage: c.last.since(), Rejected: rejected}
		if c.signals.Rows.Load() > 0 {
			of.Signals = signalStats(&c.signals)
		}
		s.Streams[name] = of
	}
	for _, m := range n.models {
		s.Models[m.Name] = ModelStats{
			Predictions: m.predictions.Load(), Learned: m.learned.Load(), Redelivered: m.redelivered.Load(), Pending: int(m.pending.Load()),
			Asked: m.queries.asked.Load(), Answered: m.queries.answered.Load(), Unanswered: m.queries.expired.Load(), Open: m.queries.len(),
			Frozen: m.ignored.Load(), Learning: m.learning.Load(), Corrected: m.corrected.Load(), LabelDelay: time.Duration(m.delay.Load()),
			Missing: m.missing.Load(), Clipped: m.clipped.Load(), Sets: m.aim.Coverage(),
			Classes: m.Model.Snapshot().Classes(),
		}
	}
	return s
}

func (n *Node) connectionStats() ConnectionStats {
	c := &n.counts.network
	s := ConnectionStats{
		Failure: n.client.Failure(), Brief: n.client.Brief(), Reconnects: c.Reconnects.Load(), ConnectFailures: c.ConnectFailures.Load(),
		ProtocolErrors: c.ProtocolErrors.Load(),
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
		RingDropped: c.ringDropped.Load(), ExamplesDropped: c.examplesDropped.Load(), OutboxDropped: c.network.OutboxDropped.Load(), OutboxRefused: c.network.OutboxRefused.Load(),
		RejectsDropped: c.rejectsDropped.Load(), PendingExpired: c.pendingExpired.Load(), PendingEvicted: c.pendingEvicted.Load(),
		ValuesUnused: c.valuesUnused.Load(), Frozen: c.frozen.Load(), ObservedDropped: c.network.DeferredDropped.Load(),
		UnconfirmedDropped: c.unconfirmedDropped.Load(),
	}
}
