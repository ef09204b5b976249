package online

import (
	"sync/atomic"

	"edge/model"
)

// Readers counts the goroutines that read snapshots at present. A loop that has one in
// its options uses the memory of an earlier snapshot again when nobody reads, or nobody did at
// any moment since a newer one replaced it: a reader that comes later gets that. A nil Readers
// counts nothing. Any goroutine may use it.
type Readers struct {
	state atomic.Uint64 // readers, and in the upper half how often the last one has left
}

// Enter comes before the first call of Snapshot.
func (r *Readers) Enter() {
	if r != nil {
		r.state.Add(1)
	}
}

// Leave comes after the last use of what Snapshot returned.
func (r *Readers) Leave() {
	if r == nil {
		return
	}
	for {
		before := r.state.Load()
		after := before - 1
		if uint32(after) == 0 {
			after += 1 << 32
		}
		if r.state.CompareAndSwap(before, after) {
			return
		}
	}
}

// left reports whether all who read when the state was before have left.
func (r *Readers) left(before uint64) bool {
	now := r.state.Load()
	return uint32(before) == 0 || uint32(now) == 0 || now>>32 != before>>32
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
	return lp.snapshot.Load().Memory != m && lp.opts.Readers.left(lp.snapshot.readers) && !m.Kept()
}

// snapshot is the newest one, replaced whole, never changed in place.
type snapshot struct {
	atomic.Pointer[model.Posterior]
	readers uint64 // state of the readers when one in other memory was replaced
}

// replace makes post the newest one.
func (s *snapshot) replace(post *model.Posterior, r *Readers) {
	before := s.Swap(post)
	if r != nil && (before == nil || before.Memory != post.Memory) {
		s.readers = r.state.Load()
	}
}
