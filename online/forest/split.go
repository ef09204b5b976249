package forest

import (
	"bytes"
	"math"

	"edge/model"
)

const (
	minSplit = 12              // stored samples of a leaf that is split
	retry    = minSplit / 2    // samples after which a leaf that could not be split is tried again
	inherits = 0.25            // part of the squares of a leaf that its children begin with
	crowded  = 8               // a leaf of a full tree is split that has so many times the mean share of the stored samples
	known    = math.MaxFloat32 // a threshold above which are missing features alone
	noClass  = -1              // of a leaf without samples
	mixed    = -2              // of a leaf with samples of several classes
)

// growth is the progress of a leaf towards its split.
type growth struct {
	wait  uint8 // samples until it may be split
	class int16 // of its samples; noClass or mixed
}

// note adds a sample of a class.
func (g *growth) note(class int) {
	switch g.class {
	case noClass:
		g.class = int16(class)
	case int16(class):
	default:
		g.class = mixed
	}
}

// visit notes a sample of a class in a leaf, and splits the leaf if that is due: it
// has samples of several classes.
func (l *Learner) visit(t int, leaf uint8, class int) {
	g := &l.growth[t*l.forest.Leaves+int(leaf)]
	if g.wait > 0 {
		g.wait--
	}
	g.note(class)
	if g.wait == 0 && g.class == mixed {
		l.try(t, leaf)
	}
}

// vacant returns an inner node of tree t below which are two leaves without stored samples,
// or 0: the root is none.
func (l *Learner) vacant(t int) int {
	var taken [maxLeaves]bool
	for _, leaf := range l.placesOf(t) {
		taken[leaf] = true
	}
	f := l.forest
	for i := 1; i < int(f.Used[t])-1; i++ {
		b := f.Nodes[t*(f.Leaves-1)+i].Branch
		if b[0] < 0 && b[1] < 0 && !taken[^b[0]] && !taken[^b[1]] {
			return i
		}
	}
	return 0
}

// join makes one leaf of those below a vacant node, and returns the number that leaf has then.
func (l *Learner) join(t, node int, leaf uint8) uint8 {
	f, c := l.forest, l.forest.Classes
	last := f.Used[t] - 1
	kept, gone := f.Join(t, node)
	first := t * f.Leaves
	at, other, from := first+int(kept), first+int(gone), first+int(last)
	l.growth[other] = l.growth[from]
	l.growth[at] = growth{wait: minSplit, class: noClass}
	copyRow(l.squares, other, from, c)
	l.tuned.join(at, other, from, c)
	places := l.placesOf(t)
	for slot, place := range places {
		if place == uint8(last) {
			places[slot] = gone
		}
	}
	if leaf == uint8(last) {
		return gone
	}
	return leaf
}

// copyRow copies one row of C values over another.
func copyRow(s []float32, to, from, classes int) {
	copy(s[to*classes:(to+1)*classes], s[from*classes:])
}

// try splits a leaf by its stored samples, if they are enough and of several classes
// and a feature separates them. Both children begin with the leaf's weights, so that the
// answers stay as they are, and with a part of its squares, so that they soon differ:
// the weights of the leaf fit each of them less.
//
// A full tree splits only a leaf that many of the stored samples are in, and makes one of two
// leaves that none is in: a stream that moved to another range would stay in the few leaves
// that are there.
func (l *Learner) try(t int, leaf uint8) {
	s, places := &l.split, l.placesOf(t)
	s.collect(places, leaf)
	full, node := int(l.forest.Used[t]) == l.cfg.Leaves, 0
	if full && len(s.slots)*l.cfg.Leaves >= crowded*l.cfg.Stored {
		node = l.vacant(t)
	}
	if full && node == 0 {
		l.growth[t*l.forest.Leaves+int(leaf)].wait = minSplit
		return
	}
	if !s.choose(&l.ring, &l.random) {
		g := growthOf(s.slots, &l.ring)
		g.wait = retry
		l.growth[t*l.forest.Leaves+int(leaf)] = g
		return
	}
	if full {
		leaf = l.join(t, node, leaf)
	}
	l.moreLeaves(int(l.forest.Used[t]) + 1)
	f := l.forest
	other := f.Split(t, leaf, s.feature, s.threshold)
	from, to := (t*f.Leaves+int(leaf))*f.Classes, (t*f.Leaves+int(other))*f.Classes
	inherit(l.squares, from, to, f.Classes)
	l.tuned.split(from, to, f.Classes)
	left := s.slots[:0]
	right := s.right[:0]
	for _, slot := range s.slots {
		if model.Above(l.ring.row(int(slot))[s.feature], s.threshold) {
			places[slot] = other
			right = append(right, slot)
		} else {
			left = append(left, slot)
		}
	}
	l.growth[t*f.Leaves+int(leaf)] = growthOf(left, &l.ring)
	l.growth[t*f.Leaves+int(other)] = growthOf(right, &l.ring)
}

// inherit gives two rows of squares a part of those of the first one.
func inherit(squares []float32, from, to, classes int) {
	for k := range classes {
		squares[from+k] *= inherits
		squares[to+k] = squares[from+k]
	}
}

// growthOf is the growth of a leaf with these stored samples.
func growthOf(slots []uint16, r *ring) growth {
	g := growth{wait: uint8(max(minSplit-len(slots), 0)), class: noClass}
	for _, slot := range slots {
		g.note(int(r.label[slot]))
	}
	return g
}

// splitter draws the split of a leaf.
type splitter struct {
	slots, right []uint16 // of the samples in the leaf; of those of its second child
	feature      int      // drawn
	threshold    float32

	candidates int       // K, features among which the split is chosen
	order      []uint16  // D  features, shuffled as far as they were drawn
	sides      []float64 // 2×C  weight of each class on both sides
}

// newSplitter returns a splitter without room for samples, see moreSamples. Of D
// features it draws a third, or √D where that is more.
func newSplitter(cfg Config) splitter {
	d := cfg.Features
	return splitter{candidates: max(d/3, int(math.Round(math.Sqrt(float64(d))))), order: make([]uint16, d)}
}

// collect finds the samples in a leaf.
func (s *splitter) collect(places []uint8, leaf uint8) {
	s.slots = s.slots[:0]
	for from := 0; ; {
		i := bytes.IndexByte(places[from:], leaf)
		if i < 0 {
			return
		}
		s.slots = append(s.slots, uint16(from+i))
		from += i + 1
	}
}

// choose draws K features whose values differ in the leaf, where a missing one differs from a known
// one. For each it draws a threshold: between the extremes of the values or, with a probability that
// is the share of the missing ones, between these and the known ones. It keeps the candidate with the
// least entropy of the labels, the first of equal ones, whatever it gains: a first threshold gains
// nothing where two features decide together. It reports whether there is one.
func (s *splitter) choose(r *ring, random *random) bool {
	if len(s.slots) < minSplit || growthOf(s.slots, r).class != mixed {
		return false
	}
	for j := range s.order {
		s.order[j] = uint16(j)
	}
	best := math.Inf(1)
	for i, left := 0, s.candidates; i < len(s.order) && left > 0; i++ {
		feature := draw(s.order, i, random)
		lo, hi, missing := s.extremes(r, feature)
		if !(lo < hi) && !(lo == hi && missing > 0) {
			continue
		}
		left--
		threshold := float32(known)
		if missing == 0 || random.below(len(s.slots)) >= missing && lo < hi {
			threshold = min(float32(float64(lo)+random.fraction()*(float64(hi)-float64(lo))), math.Nextafter32(hi, lo))
		}
		if e := s.entropy(r, feature, threshold); e < best-tie {
			best, s.feature, s.threshold = e, feature, threshold
		}
	}
	return !math.IsInf(best, 1)
}

// extremes returns the least and the largest known value of a feature, and the number of missing ones.
func (s *splitter) extremes(r *ring, feature int) (lo, hi float32, missing int) {
	lo, hi = float32(math.Inf(1)), float32(math.Inf(-1))
	for _, slot := range s.slots {
		v := r.x[int(slot)*r.d+feature]
		if v < lo { // false for a missing one
			lo = v
		}
		if v > hi {
			hi = v
		}
		if v != v {
			missing++
		}
	}
	return lo, hi, missing
}

// draw moves one of the features that were not drawn yet to place i of the order, and returns it.
func draw(order []uint16, i int, random *random) int {
	j := i + random.below(len(order)-i)
	order[i], order[j] = order[j], order[i]
	return int(order[i])
}

// entropy returns the entropy of the labels on both sides of a threshold.
func (s *splitter) entropy(r *ring, feature int, threshold float32) float64 {
	clear(s.sides)
	c := len(s.sides) / 2
	for _, slot := range s.slots {
		at := int(r.label[slot])
		if model.Above(r.x[int(slot)*r.d+feature], threshold) {
			at += c
		}
		s.sides[at] += float64(r.weight[slot])
	}
	return entropy(s.sides)
}
