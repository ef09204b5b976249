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
	out   io.Writer // of the trace; nil: only its hash is kept

	mu           sync.Mutex // guards broker, network, disk and truth
	trace        uint64     // hash of all that has happened
	events       int
	failures     []string
	acknowledged int
	history      []*delivery            // of the node's session, in order
	losses       int                    // of that session, and of what was acknowledged by a restored backup
	limits       map[int]map[string]int // by such a backup: its records of each model
	lives        int                    // of the node
	loose        []publication          // of QoS 0, which may be learnt or not
	excused      int                    // messages that the standard lets be mistaken

	plan   *plan
	net    *network
	broker *broker
	disk   *disk
	truth  *truth
	doubt  *doubt
	life   *life
}

// random returns a source of random numbers for one part of the world.
func (w *world) random(part string) *rand.Rand {
	h := fnv.New64a()
	io.WriteString(h, part)
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}

// oneIn reports whether this is one of the seeds, about one in n, that have
// something. It draws no number that anything else depends on.
func (w *world) oneIn(what string, n int) bool { return w.random(what).IntN(n) == 0 }

// log notes what happens. The caller holds mu.
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

// note is log for who does not hold mu.
func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log(format, args...)
}

// fail notes an error. The caller may hold mu.
func (w *world) fail(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	w.failures = append(w.failures, line)
	if w.out != nil {
		fmt.Fprintf(w.out, "FAIL %s\n", line)
	}
}

// lost notes that a session of the broker is gone.
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

// repeats notes that the broker is about to send again what was in flight, and
// nothing tells the node that: it has neither DUP nor a cursor. The messages may have
// been learnt before, the first of them, and are learnt now.
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
		copied.sent, copied.mistaken = 1, nil
		s.inflight[i] = &copied
		again = append(again, &copied)
	}
	if len(again) > 0 {
		w.history = slices.Insert(w.history, last+1, again...)
	}
}

// pick returns one of several values.
func pick[T any](rng *rand.Rand, values ...T) T { return values[rng.IntN(len(values))] }
