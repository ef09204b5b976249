package online

import (
	"sync/atomic"

	"edge/model"
)

// Readers counts the goroutines that read snapshots at present. A loop that has one in
// its options uses the memory of an earlier snapshot again when nobody reads: a reader that
// comes later gets a newer one. A nil Readers counts nothing. Any goroutine may use it.
type Readers struct{ n atomic.Int64 }

// Enter comes before the first call of Snapshot.
func (r *Readers) Enter() {
	if r != nil {
		r.n.Add(1)
	}
}

// Leave comes after the last use of what Snapshot returned.
func (r *Readers) Leave() {
	if r != nil {
		r.n.Add(-1)
	}
}

// Posterior returns the newest snapshot. Any goroutine may call it; it never waits.
func (lp *Loop) Posterior() *model.Posterior {
	lp.opts.Readers.Enter()
	post := lp.snapshot.Load().Keep()
	lp.opts.Readers.Leave()
	return post
}

// Snapshot returns the newest snapshot, its Bank for the time until Leave of the loop's
// Readers, which spares the learner the allocation of another; all else in it stays as it is.
// Any goroutine may call it; it never waits.
func (lp *Loop) Snapshot() *model.Posterior { return lp.snapshot.Load() }

// unread reports whether no reader has a snapshot with this memory any more. Only Run's
// goroutine, which alone replaces the newest snapshot, calls it: who enters later gets that
// one.
func (lp *Loop) unread(m *model.Memory) bool {
	return lp.snapshot.Load().Memory != m && lp.opts.Readers.n.Load() == 0 && !m.Kept()
}
