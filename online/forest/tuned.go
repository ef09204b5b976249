package forest

import (
	"math"
	"slices"

	"edge/model"
	"edge/online/wire"
)

// tuned is the own forest in the mean with the forests of a fleet's members: weights of the
// same leaves, which own labels teach by the error of the mean in place of their own. A nil one
// does nothing: there are no members' forests.
//
// The mean of n forests has a part 1/n of each, so that a step of the mean takes n times as
// large a one of the own weights. Members learn at the same time, each without the latest steps
// of the others. Their steps since the latest merge are therefore damped at the next
// one, w ← base + n^−½·(w − base), and in the contribution that a member publishes.
//
// Source: Liu & Yao (1999), "Ensemble learning via negative correlation", for learning by the
// error of the mean; McMahan et al. (2017), "Communication-efficient learning of deep networks
// from decentralized data", for many steps between two exchanges.
type tuned struct {
	forest               *model.Forest // shares the partitions of the own one
	base, biasBase       []float32     // weights after the latest merge
	squares, biasSquares []float32     // as those of the Learner
	relearnt             uint64        // labels of the model when stored samples were learnt again last
	scratch              []float64     // of the members' answers
}

// At a merge stored samples are learnt again, so many for each forest in the mean, if the model
// has that many times the labels of the last time: the forests of the others are better by then,
// and few labels have taught the mean yet.
const (
	relearnGrowth = 1.1
	relearnEach   = 12
)

// Among sets the members' forests with which the next samples are learnt; nil: there are none.
// The view may have others by the time they are.
func (l *Learner) Among(members *model.MemberForests) {
	if l != nil {
		l.members = members
	}
}

// Tune follows a merge, with the forests of its members. The first time the tuned weights begin
// with the own ones, and learn all stored samples again; without members they end.
func (l *Learner) Tune(members *model.MemberForests) {
	if l == nil {
		return
	}
	l.Among(members)
	l.Grow()
	switch {
	case members == nil:
		l.tuned = nil
		l.publishTuned()
	case l.tuned == nil:
		l.beginTuned()
		l.relearn(l.ring.n)
	default:
		l.own()
		t := l.tuned
		t.damp(t.forest, l.damping())
		copy(t.base, t.forest.Weights)
		copy(t.biasBase, t.forest.Bias)
		if float64(l.view.N) >= relearnGrowth*float64(t.relearnt) {
			l.relearn(min(relearnEach*(1+len(members.All)), l.ring.n))
		}
	}
}

// relearn learns n stored samples again, from all ages alike, by the error of the mean.
func (l *Learner) relearn(n int) {
	for i := n; i > 0; i-- {
		l.tune(l.stored(l.ring.latest(1 + (i-1)*l.ring.n/n)))
	}
	l.tuned.relearnt = l.view.N
}

// beginTuned makes tuned weights that are the own ones.
func (l *Learner) beginTuned() {
	f := *l.forest
	l.tuned = &tuned{forest: &f, base: slices.Clone(f.Weights), biasBase: slices.Clone(f.Bias), squares: slices.Clone(l.squares), biasSquares: slices.Clone(l.biasSquares)}
	l.tuned.own()
	l.publishTuned()
}

// Contributed returns the forest for other members: the tuned one, or without members the own
// one. Read only.
func (l *Learner) Contributed() *model.Forest {
	if l.tuned == nil {
		return l.forest
	}
	f := l.tuned.forest.Clone()
	l.tuned.damp(f, l.damping())
	return f
}

// damping is n^−½, for the mean number n of forests that know the class of an own label.
func (l *Learner) damping() float32 {
	var labels, known float64
	for k, n := range l.view.Counts {
		labels += float64(n)
		known += float64(n) * float64(l.knowing(k))
	}
	if known == 0 {
		return 1
	}
	return float32(math.Sqrt(labels / known))
}

// knowing is the number of forests in the mean that know class k.
func (l *Learner) knowing(k int) int {
	if l.members != nil {
		return l.members.Knowing(k)
	}
	return 1
}

// tune takes the step of a sample with the tuned weights, by the error of the mean.
func (l *Learner) tune(row []float32, leaves []uint8, label int, weight float64) {
	l.tuneBy(nil, row, leaves, label, weight)
}

// tuneBy is tune with the answers of the members, as MemberForests.MeanTo takes them.
func (l *Learner) tuneBy(answers []float64, row []float32, leaves []uint8, label int, weight float64) {
	t := l.tuned
	if t == nil {
		return
	}
	t.forest.LeafLogsTo(l.logs, leaves)
	if l.members != nil {
		t.scratch = l.members.MeanTo(l.logs, answers, row, t.scratch)
	}
	l.differentiate(label, weight)
	l.descend(t.forest, t.squares, t.biasSquares, leaves, rate*float32(l.knowing(label)))
}

// publishTuned stores the tuned forest in the view.
func (l *Learner) publishTuned() {
	if l.view.Pool.Stack.Tuned = nil; l.tuned != nil {
		l.view.Pool.Stack.Tuned = l.tuned.forest
	}
}

// damp moves the weights of f, which are those of t, back towards the base.
func (t *tuned) damp(f *model.Forest, by float32) {
	damp(f.Weights, t.base, by)
	damp(f.Bias, t.biasBase, by)
}

func damp(w, base []float32, by float32) {
	for i, b := range base {
		w[i] = b + float32(by*(w[i]-b))
	}
}

// follow takes over the partitions of the own forest.
func (t *tuned) follow(own *model.Forest) {
	if t != nil {
		f := *t.forest // snapshots may share it
		f.Nodes, f.Used = own.Nodes, own.Used
		t.forest = &f
	}
}

// own copies the weights, which a snapshot shares.
func (t *tuned) own() {
	if t != nil {
		f := *t.forest
		f.Weights, f.Bias = slices.Clone(f.Weights), slices.Clone(f.Bias)
		t.forest = &f
	}
}

// change applies a change of the classes to all rows of weights, as Learner.change does.
func (t *tuned) change(classes, rows int, of func(s []float32, rows int) []float32) {
	if t != nil {
		f := *t.forest
		f.Classes, f.Weights, f.Bias = classes, of(f.Weights, rows), of(f.Bias, 1)
		t.forest, t.base, t.biasBase = &f, of(t.base, rows), of(t.biasBase, 1)
		t.squares, t.biasSquares = of(t.squares, rows), of(t.biasSquares, 1)
	}
}

// widen makes room for that many leaves of a tree.
func (t *tuned) widen(leaves int, widen func([]float32) []float32) {
	if t != nil {
		f := *t.forest
		f.Leaves, f.Weights = leaves, widen(f.Weights)
		t.forest, t.base, t.squares = &f, widen(t.base), widen(t.squares)
	}
}

// split gives the second leaf of a split the values of the first one, as try does.
func (t *tuned) split(from, to, classes int) {
	if t != nil {
		w := t.forest.Weights
		copy(w[to:to+classes], w[from:from+classes])
		copy(t.base[to:to+classes], t.base[from:from+classes])
		inherit(t.squares, from, to, classes)
	}
}

// encode appends the tuned weights, as far as the leaves of the own forest are used.
func (t *tuned) encode(e *wire.Encoder) {
	e.Uint64(t.relearnt)
	e.Floats32(t.biasBase)
	e.Floats32(t.forest.Bias)
	e.Floats32(t.biasSquares)
	for i := range t.forest.Used {
		base, w, squares := t.tree(i)
		e.Floats32(base)
		e.Floats32(w)
		e.Floats32(squares)
	}
}

// tree returns base, weights and squares of the leaves of a tree that are used.
func (t *tuned) tree(i int) (base, w, squares []float32) {
	f := t.forest
	at := i * f.Leaves * f.Classes
	end := at + int(f.Used[i])*f.Classes
	return t.base[at:end], f.Weights[at:end], t.squares[at:end]
}

// join follows Learner.join, by the rows of the leaves.
func (t *tuned) join(kept, gone, last, classes int) {
	if t == nil {
		return
	}
	for _, s := range [][]float32{t.forest.Weights, t.base} {
		for k := range classes {
			s[kept*classes+k] = (s[kept*classes+k] + s[gone*classes+k]) / 2
		}
		copyRow(s, gone, last, classes)
	}
	copyRow(t.squares, gone, last, classes)
}
