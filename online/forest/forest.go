package forest

import (
	"slices"

	"edge/model"
)

// Config holds the settings of a Learner.
type Config struct {
	Features int // D
	Sizes
	Seed uint64 // of features, thresholds and repeated samples
}

// Sizes are the sizes of a forest.
type Sizes struct {
	Trees  int // 1 to 1000
	Leaves int // of a tree at most, 2 to 256
	Stored int // W, the latest samples from which leaves are split, 1 to 10000
}

// Bounds of a Config; they also bound the sizes in a state.
const (
	maxTrees  = 1000
	maxStored = 10000
	maxLeaves = 256
)

// Learner learns the forest of a posterior. It is single-threaded. A nil Learner
// does nothing: there is no forest then.
type Learner struct {
	cfg    Config
	view   *model.Posterior
	forest *model.Forest // that of view, which snapshots share if shared
	shared bool

	tuned   *tuned               // nil: there are no members' forests
	members *model.MemberForests // see Among
	cache   answerCache          // their answers to the samples of the next Learn

	squares     []float32 // trees×L×C  fading sums of squared gradients; L are the leaves for which forest has room
	biasSquares []float32 // C
	growth      []growth  // trees×L
	ring        ring
	places      []uint8 // trees×room of the ring  leaf of each stored sample; follows from trees and ring
	random      random

	leaves   []uint8   // trees  scratch
	logs     []float64 // C  scratch
	gradient []float32 // C  scratch
	split    splitter
	grower   grower
}

// New returns a learner of a forest without samples, which keeps view up to date.
func New(cfg Config, view *model.Posterior) *Learner {
	l := &Learner{cfg: cfg, view: view, ring: newRing(cfg.Stored, cfg.Features), random: random(cfg.Seed)}
	room := min(leafRoom, cfg.Leaves)
	l.growth, l.leaves = newGrowth(cfg.Trees*room), make([]uint8, cfg.Trees)
	l.split = newSplitter(cfg)
	f := model.NewForest(cfg.Trees, room, len(view.Names))
	l.squares, l.biasSquares = make([]float32, len(f.Weights)), make([]float32, len(f.Bias))
	l.setForest(f)
	return l
}

// setForest replaces the forest by one that no snapshot shares.
func (l *Learner) setForest(f *model.Forest) {
	l.forest, l.view.Pool.Stack.Forest, l.shared = f, f, false
	l.tuned.follow(f)
	l.publishTuned()
	c := f.Classes
	if len(l.logs) != c {
		l.logs, l.gradient = make([]float64, c), make([]float32, c)
		l.split.sides = make([]float64, 2*c)
	}
}

// Latest returns the latest stored samples, n at most, the oldest first: their features as
// model.RawTo stores them, and their classes.
func (l *Learner) Latest(n int) (x []float32, classes []int) {
	r := &l.ring
	for i := min(n, r.n); i > 0; i-- {
		slot := r.latest(i)
		x, classes = append(x, r.row(slot)...), append(classes, int(r.label[slot]))
	}
	return x, classes
}

// Share notes that a snapshot shares the forest: it is copied before it changes.
func (l *Learner) Share() {
	if l != nil {
		l.shared = true
	}
}

// own copies the forest if a snapshot shares it.
func (l *Learner) own() {
	if l.shared {
		l.tuned.own()
		l.setForest(l.forest.Clone())
	}
}

// Grow makes room for the classes that were added to the view: their weights are 0, so
// that they begin with the mean of the others.
func (l *Learner) Grow() {
	if l == nil || len(l.view.Names) == l.forest.Classes {
		return
	}
	old, c := l.forest.Classes, len(l.view.Names)
	l.change(c, func(s []float32, rows int) []float32 {
		wide := make([]float32, rows*c)
		for i := range rows {
			copy(wide[i*c:(i+1)*c], s[i*old:(i+1)*old])
		}
		return wide
	})
}

// Forget removes the latest stored sample with those features and class: its label was
// wrong. Its steps stay in the weights, and fade.
//
//	x  D  raw
func (l *Learner) Forget(x []float64, class int) {
	if l == nil {
		return
	}
	row := make([]float32, l.cfg.Features)
	model.RawTo(row, x)
	if slot := l.ring.find(row, class); slot >= 0 {
		l.ring.retain(func(i int) bool { return i != slot })
		l.place()
	}
}

// ForgetLatest removes the n latest stored samples, as Forget does.
func (l *Learner) ForgetLatest(n int) {
	if l == nil {
		return
	}
	keep := max(l.ring.n-n, 0)
	at := map[int]bool{}
	for i := range l.ring.n - keep {
		at[l.ring.latest(i+1)] = true
	}
	l.ring.retain(func(slot int) bool { return !at[slot] })
	l.place()
}

// DropClass removes class k: its weights and its stored samples. To maps each class
// before to its index afterwards.
func (l *Learner) DropClass(k int, to []int) {
	if l == nil {
		return
	}
	l.change(len(to)-1, func(s []float32, rows int) []float32 {
		narrow := make([]float32, 0, rows*(len(to)-1))
		for row := range slices.Chunk(s, len(to)) {
			narrow = append(append(narrow, row[:k]...), row[k+1:]...)
		}
		return narrow
	})
	l.ring.retain(func(i int) bool { return int(l.ring.label[i]) != k })
	for i, label := range l.ring.label[:l.ring.n] {
		l.ring.label[i] = uint8(to[label])
	}
	for i := range l.growth {
		switch class := l.growth[i].class; {
		case int(class) == k:
			l.growth[i].class = noClass
		case class >= 0:
			l.growth[i].class = int16(to[class])
		}
	}
	l.place()
}

// change applies a change of the classes to all rows of weights.
func (l *Learner) change(classes int, of func(s []float32, rows int) []float32) {
	f := l.forest.Clone()
	rows := l.cfg.Trees * f.Leaves
	f.Classes, f.Bias, f.Weights = classes, of(f.Bias, 1), of(f.Weights, rows)
	l.biasSquares, l.squares = of(l.biasSquares, 1), of(l.squares, rows)
	l.tuned.change(classes, rows, of)
	l.setForest(f)
}

// Learn learns samples in order.
//
//	x        n×D  raw, not finite where one is missing
//	labels   n    classes
//	weights  n
func (l *Learner) Learn(x []float64, labels []int, weights []float64) {
	if l == nil {
		return
	}
	l.own()
	for i, label := range labels {
		l.learn(x[i*l.cfg.Features:(i+1)*l.cfg.Features], label, weights[i])
		l.renew(l.view.N + uint64(i) + 1)
	}
	l.cache.forget()
}

// learn learns one sample, and one of the ring again.
func (l *Learner) learn(x []float64, label int, weight float64) {
	l.moreSamples(min(l.ring.n+1, l.cfg.Stored))
	slot := l.ring.put(x, label, weight)
	row := l.ring.row(slot)
	l.forest.LeavesTo(l.leaves, row)
	for t, leaf := range l.leaves {
		l.placesOf(t)[slot] = leaf
	}
	l.step(l.leaves, label, weight)
	l.tuneBy(l.cache.find(row, l.members), row, l.leaves, label, weight)
	for t, leaf := range l.leaves {
		l.visit(t, leaf, label)
	}
	again := l.random.below(l.ring.n)
	row, leaves, label, weight := l.stored(again)
	l.step(leaves, label, weight)
	l.tune(row, leaves, label, weight)
}

// stored returns a sample of the ring. Its leaves are valid until the next call.
func (l *Learner) stored(slot int) (row []float32, leaves []uint8, label int, weight float64) {
	for t := range l.leaves {
		l.leaves[t] = l.placesOf(t)[slot]
	}
	return l.ring.row(slot), l.leaves, int(l.ring.label[slot]), float64(l.ring.weight[slot])
}

// place finds the leaves of all stored samples again.
func (l *Learner) place() {
	for slot := range l.ring.n {
		for t := range l.cfg.Trees {
			l.placesOf(t)[slot] = l.forest.Leaf(t, l.ring.row(slot))
		}
	}
}
