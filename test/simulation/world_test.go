package simulation

import (
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// world is one simulation.
type world struct {
	seed  uint64
	began time.Time
	out   io.Writer // receives the trace; nil: only its hash is computed

	mu       sync.Mutex // guards broker, network, disk and truth
	trace    uint64     // hash of all events
	events   int
	failures []string
	runs     int // number of processes so far
	traffic

	plan     *plan
	net      *network
	broker   *broker
	disk     *disk
	truth    *truth
	unproven *unproven
	process  *process
}

// traffic holds the messages to the node, for the oracle.
type traffic struct {
	acknowledged int
	history      []*delivery            // of the node's session, in order
	losses       int                    // number of losses: of that session, or of acknowledged messages by a restored backup
	limits       map[int]map[string]int // loss by a backup → records of each model in the backup
	qos0         []publication          // messages of QoS 0, which may be learnt once or not
	skipped      int                    // ambiguous or optional messages without an effect
}

// random returns the source of random numbers of one part of the simulation.
func (w *world) random(part string) *rand.Rand {
	h := fnv.New64a()
	io.WriteString(h, part)
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}

// oneIn reports true for about one seed in n. It has its own random numbers, so that it
// does not change the rest of the simulation.
func (w *world) oneIn(what string, n int) bool { return w.random(what).IntN(n) == 0 }

// log adds an event to the trace. The caller holds mu.
func (w *world) log(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	at := time.Since(w.began)
	h := fnv.New64a()
	fmt.Fprintf(h, "%x %d %s", w.trace, at, line)
	w.trace = h.Sum64()
	w.events++
	if w.out != nil {
		fmt.Fprintf(w.out, "%12.6f %s\n", at.Seconds(), line)
	}
}

// lockAndLog is log for callers that do not hold mu.
func (w *world) lockAndLog(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log(format, args...)
}

// fail records a failure. The caller may hold mu.
func (w *world) fail(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	w.failures = append(w.failures, line)
	if w.out != nil {
		fmt.Fprintf(w.out, "FAIL %s\n", line)
	}
}

// lost records that the broker has lost a session.
func (w *world) lost(s *session) {
	if s.id != nodeID {
		return
	}
	w.losses++
	for _, d := range slices.Concat(s.inflight, s.waiting) {
		if !d.acked {
			d.lost = w.losses
		}
	}
	w.log("session lost with %d messages", len(s.inflight)+len(s.waiting))
}

// repeats records that the broker is about to send the messages in flight again, which
// the node cannot know, since it has neither DUP nor a cursor. The node may have learnt
// the first of them before, and learns all of them now.
func (w *world) repeats(s *session) {
	if len(s.inflight) == 0 {
		return
	}
	w.losses++
	var again []*delivery
	last := 0
	for i, d := range s.inflight {
		if d.released || d.sent == 0 {
			continue
		}
		copied := *d
		d.lost, last = w.losses, slices.Index(w.history, d)
		copied.sent, copied.ambiguous = 1, nil
		s.inflight[i] = &copied
		again = append(again, &copied)
	}
	if len(again) > 0 {
		w.history = slices.Insert(w.history, last+1, again...)
	}
}

// pick returns one of several values.
func pick[T any](rng *rand.Rand, values ...T) T { return values[rng.IntN(len(values))] }
