package forest

import "edge/model"

// ring holds the latest labelled samples. A sample keeps its slot until it is the
// oldest of a full ring.
type ring struct {
	stored     int       // W, samples at most
	d, n, next int       // features; samples; slot of the next one
	x          []float32 // room×D  as model.RawTo stores them; the room is at most W
	label      []uint8   // room  classes
	weight     []float32 // room
}

func newRing(stored, features int) ring { return ring{stored: stored, d: features} }

// room is the number of samples for which there is memory.
func (r *ring) room() int { return len(r.label) }

// resize changes the room, for the samples that there are or more.
func (r *ring) resize(room int) {
	r.x = append(make([]float32, 0, room*r.d), r.x[:r.n*r.d]...)[:room*r.d]
	r.label = append(make([]uint8, 0, room), r.label[:r.n]...)[:room]
	r.weight = append(make([]float32, 0, room), r.weight[:r.n]...)[:room]
}

// row returns the features of a sample.
func (r *ring) row(slot int) []float32 { return r.x[slot*r.d : (slot+1)*r.d] }

// latest returns the slot of the latest sample but i − 1.
func (r *ring) latest(i int) int { return (r.next - i + r.stored) % r.stored }

// put stores a sample, for which there is room, in place of the oldest of a full ring,
// and returns its slot.
func (r *ring) put(x []float64, label int, weight float64) int {
	slot := r.next
	model.RawTo(r.row(slot), x)
	r.label[slot], r.weight[slot] = uint8(label), float32(weight)
	r.next = (slot + 1) % r.stored
	r.n = max(r.n, slot+1)
	return slot
}

// retain keeps the samples for which keep reports true, the oldest in the first slot.
func (r *ring) retain(keep func(slot int) bool) {
	kept := newRing(r.stored, r.d)
	kept.resize(r.room())
	for i := range r.n {
		slot := i
		if r.n == r.stored {
			slot = (r.next + i) % r.n
		}
		if keep(slot) {
			copy(kept.row(kept.next), r.row(slot))
			kept.label[kept.next], kept.weight[kept.next] = r.label[slot], r.weight[slot]
			kept.n++
			kept.next = kept.n % kept.stored
		}
	}
	*r = kept
}

// find returns the latest sample with those features and class, −1 if there is none.
func (r *ring) find(x []float32, label int) int {
	for i := range r.n {
		slot := r.latest(i + 1)
		if int(r.label[slot]) == label && same(r.row(slot), x) {
			return slot
		}
	}
	return -1
}

// same reports whether features are equal, missing ones included.
func same(a, b []float32) bool {
	for j, v := range a {
		if v != b[j] && (v == v || b[j] == b[j]) {
			return false
		}
	}
	return true
}
