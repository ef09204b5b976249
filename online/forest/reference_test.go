package forest

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model"
)

// reference is the same learner, slow and in 64 bits: its trees are linked, a leaf holds
// its weights, and the stored samples of a leaf are found by asking all of them.
type reference struct {
	cfg     Config
	classes int
	bias    *refNode
	roots   []*refNode
	used    []int
	samples []refSample // the latest; stored in slots as the ring does, for the same draws
	next    int
	learnt  int
	grown   int // trees that were due to be grown anew
	random  random
}

type refSample struct {
	x      []float64
	label  int
	weight float64
}

type refNode struct {
	feature     int
	threshold   float64
	left, right *refNode // nil: a leaf
	w, squares  []float64
	wait        int
	labels      map[int]bool
}

func (n *refNode) leaf(x []float64) *refNode {
	for n.left != nil {
		if x[n.feature] <= n.threshold {
			n = n.left
		} else {
			n = n.right
		}
	}
	return n
}

func newReference(cfg Config, classes int) *reference {
	r := &reference{cfg: cfg, classes: classes, random: random(cfg.Seed), used: slices.Repeat([]int{1}, cfg.Trees)}
	r.bias = r.newLeaf()
	for range cfg.Trees {
		r.roots = append(r.roots, r.newLeaf())
	}
	return r
}

func (r *reference) newLeaf() *refNode {
	return &refNode{w: make([]float64, r.classes), squares: make([]float64, r.classes), wait: minSplit, labels: map[int]bool{}}
}

func (r *reference) probs(x []float64) []float64 {
	p, sum := slices.Clone(r.bias.w), 0.
	for _, root := range r.roots {
		for k, w := range root.leaf(x).w {
			p[k] += w
		}
	}
	for k := range p {
		p[k] = math.Exp(p[k])
		sum += p[k]
	}
	for k := range p {
		p[k] /= sum
	}
	return p
}

func (r *reference) step(s refSample) {
	p := r.probs(s.x)
	for _, leaf := range append([]*refNode{r.bias}, r.leaves(s.x)...) {
		for k := range p {
			m := s.weight * p[k]
			if k == s.label {
				m -= s.weight
			}
			if math.Abs(m) < least {
				continue
			}
			leaf.squares[k] = leaf.squares[k]*(1-1./memory) + m*m
			leaf.w[k] -= rate * m / (math.Sqrt(leaf.squares[k]) + tiny)
		}
	}
}

func (r *reference) leaves(x []float64) (all []*refNode) {
	for _, root := range r.roots {
		all = append(all, root.leaf(x))
	}
	return all
}

func (r *reference) learn(x []float64, label int, weight float64) {
	s := refSample{make([]float64, len(x)), label, weight}
	for j, v := range x {
		s.x[j] = float64(float32(v))
	}
	if len(r.samples) < r.cfg.Stored {
		r.samples = append(r.samples, s)
	} else {
		r.samples[r.next] = s
	}
	r.next = (r.next + 1) % r.cfg.Stored
	r.step(s)
	for t, leaf := range r.leaves(s.x) {
		leaf.wait--
		leaf.labels[label] = true
		if leaf.wait <= 0 && len(leaf.labels) > 1 && r.used[t] < r.cfg.Leaves {
			r.split(t, leaf)
		}
	}
	r.step(r.samples[r.random.below(len(r.samples))])
	r.learnt++
	if r.due() {
		r.growAnew((4*8 + r.grown) % (r.cfg.Trees / 2))
		r.grown++
	}
}

// due reports whether a tree is grown anew: after each eighth of 64, 128, 256 … labels.
func (r *reference) due() bool {
	eighth := 8
	for 16*eighth <= r.learnt {
		eighth *= 2
	}
	return r.learnt >= 64 && r.learnt%eighth == 0
}

// growAnew grows a tree from all stored samples, the largest gain first.
func (r *reference) growAnew(t int) {
	old, root := r.roots[t], r.newLeaf()
	seen := map[*refNode]bool{}
	for _, s := range r.samples {
		seen[old.leaf(s.x)] = true
	}
	if left, all := old.squaresWithout(seen); left > mostUnseen*all {
		return
	}
	type grown struct {
		leaf *refNode
		in   []refSample
		refCut
	}
	leaves := []grown{{root, slices.Clone(r.samples), r.cut(r.samples)}}
	for len(leaves) < r.cfg.Leaves {
		best := 0
		for i, l := range leaves {
			if l.gain > leaves[best].gain+1e-9 {
				best = i
			}
		}
		l := leaves[best]
		if math.IsInf(l.gain, -1) {
			break
		}
		l.leaf.feature, l.leaf.threshold, l.leaf.left, l.leaf.right = l.feature, l.threshold, r.newLeaf(), r.newLeaf()
		from := 0
		for i, s := range l.in {
			if s.x[l.feature] <= l.threshold {
				l.in[i], l.in[from] = l.in[from], s
				from++
			}
		}
		leaves[best] = grown{l.leaf.left, l.in[:from], r.cut(l.in[:from])}
		leaves = append(leaves, grown{l.leaf.right, l.in[from:], r.cut(l.in[from:])})
	}
	for _, l := range leaves {
		for _, s := range l.in {
			was := old.leaf(s.x)
			for k := range r.classes {
				l.leaf.w[k] += was.w[k] / float64(len(l.in))
				l.leaf.squares[k] += carries * was.squares[k] / float64(len(l.in))
			}
		}
		l.leaf.labels = map[int]bool{0: true, 1: true}
	}
	r.roots[t], r.used[t] = root, len(leaves)
}

// squaresWithout returns the sum of the squares of the leaves that are not in seen, and of all.
func (n *refNode) squaresWithout(seen map[*refNode]bool) (left, all float64) {
	if n.left != nil {
		l, a := n.left.squaresWithout(seen)
		left, all = n.right.squaresWithout(seen)
		return left + l, all + a
	}
	for _, s := range n.squares {
		all += s
	}
	if !seen[n] {
		left = all
	}
	return left, all
}

type refCut struct {
	gain      float64
	feature   int
	threshold float64
}

// cut tries eight values as thresholds of each of five features at most.
func (r *reference) cut(in []refSample) refCut {
	best := refCut{gain: math.Inf(-1)}
	if len(in) < minSplit || len(labelsOf(in)) < 2 {
		return best
	}
	order := []int{0, 1, 2, 3, 4}
	for i := range order {
		j := i + r.random.below(len(order)-i)
		order[i], order[j] = order[j], order[i]
		lo, hi, missing := extremesOf(in, order[i])
		if lo > hi || lo == hi && missing == 0 {
			continue
		}
		var thresholds []float64
		for range 8 {
			v := in[r.random.below(len(in))].x[order[i]]
			if v != v {
				v = math.MaxFloat32
			} else if v == hi {
				v = float64(math.Nextafter32(float32(hi), float32(lo)))
			}
			thresholds = append(thresholds, v)
		}
		slices.Sort(thresholds)
		for _, at := range thresholds {
			sides := divided(in, order[i], at)
			if gain := entropyOf(in) - entropyOf(sides[0]) - entropyOf(sides[1]); gain > best.gain+1e-9 {
				best = refCut{gain, order[i], at}
			}
		}
	}
	return best
}

func (r *reference) split(t int, leaf *refNode) {
	var in []refSample
	for _, s := range r.samples {
		if r.roots[t].leaf(s.x) == leaf {
			in = append(in, s)
		}
	}
	leaf.labels = labelsOf(in)
	leaf.wait = retry
	if len(in) < minSplit || len(leaf.labels) < 2 {
		return
	}
	var order []int
	for j := range r.cfg.Features {
		order = append(order, j)
	}
	best := math.Inf(1)
	var left, right []refSample
	feature, threshold, tried := 0, 0., 0
	candidates := max(r.cfg.Features/3, int(math.Round(math.Sqrt(float64(r.cfg.Features)))))
	for i := range order {
		if tried == candidates {
			break
		}
		j := i + r.random.below(len(order)-i)
		order[i], order[j] = order[j], order[i]
		lo, hi, missing := extremesOf(in, order[i])
		if lo > hi || lo == hi && missing == 0 {
			continue
		}
		tried++
		at := math.MaxFloat32
		if missing == 0 || r.random.below(len(in)) >= missing && lo < hi {
			at = float64(float32(lo + r.random.fraction()*(hi-lo)))
		}
		sides := divided(in, order[i], at)
		if e := entropyOf(sides[0]) + entropyOf(sides[1]); e < best-tie {
			best, feature, threshold, left, right = e, order[i], at, sides[0], sides[1]
		}
	}
	if tried == 0 {
		return
	}
	child := func(in []refSample) *refNode {
		squares := slices.Clone(leaf.squares)
		for k := range squares {
			squares[k] *= inherits
		}
		return &refNode{w: slices.Clone(leaf.w), squares: squares, wait: minSplit - len(in), labels: labelsOf(in)}
	}
	leaf.feature, leaf.threshold, leaf.left, leaf.right = feature, threshold, child(left), child(right)
	r.used[t]++
}

func extremesOf(in []refSample, feature int) (lo, hi float64, missing int) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, s := range in {
		if v := s.x[feature]; v == v {
			lo, hi = min(lo, v), max(hi, v)
		} else {
			missing++
		}
	}
	return lo, hi, missing
}

// divided returns the samples on both sides of a threshold.
func divided(in []refSample, feature int, threshold float64) (sides [2][]refSample) {
	for _, s := range in {
		side := 1
		if s.x[feature] <= threshold {
			side = 0
		}
		sides[side] = append(sides[side], s)
	}
	return sides
}

func labelsOf(in []refSample) map[int]bool {
	labels := map[int]bool{}
	for _, s := range in {
		labels[s.label] = true
	}
	return labels
}

// entropyOf is the weight of the samples times the entropy of their labels. It adds in the
// order of the labels: the rounding is the same in every run.
func entropyOf(in []refSample) (sum float64) {
	weights, total := map[int]float64{}, 0.
	for _, s := range in {
		weights[s.label] += s.weight
		total += s.weight
	}
	for _, label := range slices.Sorted(maps.Keys(weights)) {
		sum -= weights[label] * math.Log(weights[label]/total)
	}
	return sum
}

// stream draws samples of three classes that a threshold and a product of signs decide,
// some with missing features.
func stream(rng *rand.Rand, n int) (x []float64, labels []int, weights []float64) {
	for range n {
		a, b, c := rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()
		label := 0
		switch {
		case c > 1:
			label = 2
		case a*b > 0:
			label = 1
		}
		row := []float64{a, b, c, math.Floor(3 * rng.Float64()), 7}
		if rng.IntN(10) == 0 {
			row[rng.IntN(5)] = model.Missing
		}
		x, labels, weights = append(x, row...), append(labels, label), append(weights, 0.5+rng.Float64())
	}
	for i, v := range x {
		x[i] = float64(float32(v))
	}
	return x, labels, weights
}

// learner is one of three classes and five features.
func learner(s Sizes) *Learner {
	return New(Config{Features: 5, Sizes: s, Seed: 3}, &model.Posterior{Names: []string{"a", "b", "c"}})
}

// The learner against the reference: the same trees, and weights that differ by the
// rounding to 32 bits.
func TestReference(t *testing.T) {
	s := Sizes{Trees: 7, Leaves: 30, Stored: 150}
	l, r := learner(s), newReference(Config{Features: 5, Sizes: s, Seed: 3}, 3)
	x, labels, weights := stream(rand.New(rand.NewPCG(1, 1)), 2500)
	for i, label := range labels {
		row := x[i*5 : (i+1)*5]
		for j, v := range row {
			if v-v != 0 {
				row[j] = math.NaN()
			}
		}
		r.learn(row, label, float64(float32(weights[i])))
		l.Learn(row, labels[i:i+1], []float64{float64(float32(weights[i]))})
		l.view.N++
	}
	raw, logs := make([]float32, 5), make([]float64, 3)
	var worst float64
	for i := range labels {
		row := x[i*5 : (i+1)*5]
		model.RawTo(raw, row)
		l.forest.LogsTo(logs, raw)
		for k, p := range r.probs(row) {
			worst = max(worst, math.Abs(math.Exp(logs[k])-p))
		}
	}
	if worst > 1e-3 {
		t.Errorf("probabilities differ by %.2g", worst)
	}
	grown := 0
	for tree, used := range l.forest.Used {
		if int(used) != r.used[tree] {
			t.Errorf("tree %d has %d leaves, want %d", tree, used, r.used[tree])
		}
		grown += int(used)
	}
	if grown < 7*25 {
		t.Errorf("%d leaves: the trees hardly grow", grown)
	}
	if r.grown < 40 {
		t.Errorf("%d trees are grown anew: the test is too small", r.grown)
	}
	if l.random != r.random {
		t.Error("the learner has drawn other numbers than the reference")
	}
}
