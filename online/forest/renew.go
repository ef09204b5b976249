package forest

import (
	"math"
	"math/bits"

	"edge/model"
)

// A leaf is split by the dozen samples that it has first. The first half of the trees is therefore
// grown anew from all stored samples, one after the other, and ever more rarely. The other half keeps
// what its leaves have learnt from more labels than are stored.
const (
	renewals     = 8    // trees that are grown anew while the labels double; a power of two
	firstRenewal = 64   // labels
	mostUnseen   = 0.1  // part of what a tree has learnt in leaves without stored samples, for which it stays
	carries      = 0.02 // part of the squares that the leaves of the new tree begin with
)

// renew grows a tree anew if that is due after n labels of the model. As long as all labels of the forest are
// stored, these count instead: a forest may be younger than its model.
func (l *Learner) renew(n uint64) {
	if l.ring.n < l.ring.stored {
		n = uint64(l.ring.n)
	}
	shift := bits.Len64(n) - bits.Len64(renewals)
	if n >= firstRenewal && n&(1<<shift-1) == 0 {
		l.growAnew(int((renewals*uint64(shift) + n>>shift) % uint64(max(l.cfg.Trees/2, 1))))
	}
}

// growAnew grows tree t anew from the stored samples. A leaf of the new tree begins with the mean
// weights that its samples had in the old one: their answers stay nearly as they are. Of the squares
// of the gradients it takes over a small part: it soon learns what tells it from the other leaves.
//
// A tree stays as it is if more than a tenth of what it has learnt is in leaves without stored
// samples: it knows classes, or a range, to which the stream may return.
func (l *Learner) growAnew(t int) {
	if l.unseen(t) > mostUnseen {
		return
	}
	g := &l.grower
	g.grow(l)
	used := int(g.tree.Used[0])
	l.moreLeaves(used)
	f, was := l.forest, l.placesOf(t)
	from, to := t*f.Leaves*f.Classes, (t+1)*f.Leaves*f.Classes
	g.move(f.Weights[from:to], f.Classes, was, 1)
	g.move(l.squares[from:to], f.Classes, was, carries)
	if l.tuned != nil {
		g.move(l.tuned.forest.Weights[from:to], f.Classes, was, 1)
		g.move(l.tuned.base[from:to], f.Classes, was, 1)
		g.move(l.tuned.squares[from:to], f.Classes, was, carries)
	}
	f.Replant(t, g.tree)
	copy(was, g.places)
	for leaf := range used {
		l.growth[t*f.Leaves+leaf] = growth{wait: minSplit, class: mixed}
	}
}

// Rest frees the memory that only a tree that is grown anew needs, until the next one.
func (l *Learner) Rest() {
	if l != nil {
		l.grower = grower{}
	}
}

// unseen returns the part of the squares of tree t that is in leaves without stored samples.
func (l *Learner) unseen(t int) float64 {
	var taken [maxLeaves]bool
	for _, leaf := range l.placesOf(t) {
		taken[leaf] = true
	}
	all, unseen := 0., 0.
	_, squares, _ := l.tree(t)
	for i, s := range squares {
		all += float64(s)
		if !taken[i/l.forest.Classes] {
			unseen += float64(s)
		}
	}
	return unseen / max(all, math.SmallestNonzeroFloat64)
}

// grower grows a tree from all stored samples.
type grower struct {
	tree   *model.Forest // of one tree, without weights
	places []uint8       // n  leaf of each stored sample in it
	slots  []uint16      // n  of the samples, leaf by leaf
	leaves []grown
	cutter cutter
	old    []float32 // scratch
}

// grown is a leaf of the tree, with its best split.
type grown struct {
	slots []uint16 // of its samples
	cut   cut
}

// grow splits first where that takes most from the entropy of the labels.
func (g *grower) grow(l *Learner) {
	g.begin(l)
	for int(g.tree.Used[0]) < l.cfg.Leaves {
		leaf := 0
		for i := range g.leaves {
			if g.leaves[i].cut.gain > g.leaves[leaf].cut.gain+tie {
				leaf = i
			}
		}
		c, slots := g.leaves[leaf].cut, g.leaves[leaf].slots
		if math.IsInf(c.gain, -1) {
			return
		}
		other := g.tree.Split(0, uint8(leaf), c.feature, c.threshold)
		from := partition(slots, &l.ring, c)
		for _, slot := range slots[from:] {
			g.places[slot] = other
		}
		g.leaves[leaf] = g.leaf(l, slots[:from])
		g.leaves = append(g.leaves, g.leaf(l, slots[from:]))
	}
}

// begin makes a tree of one leaf.
func (g *grower) begin(l *Learner) {
	if g.tree == nil {
		g.tree = model.NewForest(1, l.cfg.Leaves, 0)
		g.cutter = newCutter(l.split.candidates, l.cfg.Features)
	}
	g.tree.Used[0] = 1
	g.places, g.slots = g.places[:0], g.slots[:0]
	for slot := range l.ring.n {
		g.places, g.slots = append(g.places, 0), append(g.slots, uint16(slot))
	}
	g.leaves = append(g.leaves[:0], g.leaf(l, g.slots))
}

// leaf is a leaf with these samples.
func (g *grower) leaf(l *Learner, slots []uint16) grown {
	return grown{slots, g.cutter.choose(slots, &l.ring, &l.random)}
}

// partition orders the samples of a leaf by the side of its split, and returns the first of the
// second side.
func partition(slots []uint16, r *ring, c cut) (from int) {
	for i, slot := range slots {
		if !model.Above(r.row(int(slot))[c.feature], c.threshold) {
			slots[i], slots[from] = slots[from], slot
			from++
		}
	}
	return from
}

// move gives each leaf of the new tree the mean of the rows that its samples had, times a factor.
//
//	rows  L×C  of the leaves of the old tree before, of the new one afterwards
//	was   n    leaf of each stored sample in the old tree
func (g *grower) move(rows []float32, classes int, was []uint8, factor float32) {
	g.old = append(g.old[:0], rows...)
	clear(rows)
	var samples [maxLeaves]float32
	for slot, leaf := range g.places {
		samples[leaf]++
		to := rows[int(leaf)*classes:][:classes]
		for k, v := range g.old[int(was[slot])*classes:][:classes] {
			to[k] += v
		}
	}
	for i := range rows[:int(g.tree.Used[0])*classes] {
		rows[i] *= factor / samples[i/classes]
	}
}
