package model

import (
	"math"
	"slices"
)

// Forest is an ensemble of random partitions of the raw features, whose leaf weights
// are those of one logistic model,
//
//	P(y=k | x) ∝ exp(Bias_k + Σ_t Weights[t, leaf_t(x), k])
//
// It represents thresholds on single features and their interactions, for which a
// stationary kernel would need an inducing point for each cell. A missing feature is
// above every threshold.
//
// A nil Forest answers nothing. A Forest that a snapshot shares is not changed any more.
type Forest struct {
	Leaves  int       // for which each tree has room, at most 256
	Classes int       // C
	Bias    []float32 // C
	Weights []float32 // trees×Leaves×C
	Used    []uint16  // leaves of each tree; its inner nodes are one fewer
	Nodes   []Node    // trees×(Leaves−1); the first of a tree is its root, if it has an inner node
}

// Node is an inner node of a tree. A branch is the index of an inner node of the tree,
// or ^leaf.
type Node struct {
	Threshold float32
	Feature   uint16
	Branch    [2]int16 // for a feature up to the threshold, and for one above it or missing
}

// NewForest returns a forest of trees of one leaf, with weights of 0.
func NewForest(trees, leaves, classes int) *Forest {
	return &Forest{
		Leaves: leaves, Classes: classes, Bias: make([]float32, classes), Weights: make([]float32, trees*leaves*classes),
		Used: slices.Repeat([]uint16{1}, trees), Nodes: make([]Node, trees*(leaves-1)),
	}
}

// Clone returns a deep copy.
func (f *Forest) Clone() *Forest {
	c := *f
	c.Bias, c.Weights, c.Used, c.Nodes = slices.Clone(f.Bias), slices.Clone(f.Weights), slices.Clone(f.Used), slices.Clone(f.Nodes)
	return &c
}

// Equal reports whether both forests are the same, to the bit.
func (f *Forest) Equal(o *Forest) bool {
	return f.Leaves == o.Leaves && f.Classes == o.Classes && slices.Equal(f.Used, o.Used) && slices.Equal(f.Bias, o.Bias) &&
		slices.Equal(f.Weights, o.Weights) && slices.Equal(f.Nodes, o.Nodes)
}

// WithRoom returns a deep copy whose trees have room for that many leaves, no fewer than
// any of them has.
func (f *Forest) WithRoom(leaves int) *Forest {
	trees, c := len(f.Used), f.Classes
	w := NewForest(trees, leaves, c)
	copy(w.Bias, f.Bias)
	copy(w.Used, f.Used)
	for t, used := range f.Used {
		copy(w.Weights[t*leaves*c:], f.Weights[t*f.Leaves*c:][:int(used)*c])
		copy(w.Nodes[t*(leaves-1):], f.Nodes[t*(f.Leaves-1):][:used-1])
	}
	return w
}

var missing = float32(math.NaN())

// RawTo stores raw features in dst as a forest compares them: as 32-bit numbers,
// within their range, and NaN where one is missing.
func RawTo(dst []float32, x []float64) {
	for j, v := range x {
		if dst[j] = missing; v-v == 0 {
			dst[j] = float32(min(max(v, -math.MaxFloat32), math.MaxFloat32))
		}
	}
}

// Leaf returns the leaf of tree t in which x is, D features as RawTo stored them.
func (f *Forest) Leaf(t int, x []float32) uint8 {
	nodes, at := f.tree(t)
	return nodes.leaf(at, x)
}

// LeavesTo stores the leaf of each tree in which x is in dst.
//
//	dst  trees
//	x    D features, as RawTo stored them
func (f *Forest) LeavesTo(dst []uint8, x []float32) { f.leavesFrom(0, dst, x) }

// leavesFrom stores the leaves of the trees from t on in dst. It walks down four of them at
// once: the processor follows the branches of one while it waits for the nodes of another.
// A tree whose leaf is reached takes steps from its root, which are dropped, until the other
// three are at theirs: that costs less than to end each of them alone.
func (f *Forest) leavesFrom(t int, dst []uint8, x []float32) {
	for ; len(dst) >= 4; t, dst = t+4, dst[4:] {
		n0, a := f.tree(t)
		n1, b := f.tree(t + 1)
		n2, c := f.tree(t + 2)
		n3, d := f.tree(t + 3)
		for a&b&c&d >= 0 { // one of them is an inner node
			a, b, c, d = n0.step(a, x), n1.step(b, x), n2.step(c, x), n3.step(d, x)
		}
		dst[0], dst[1], dst[2], dst[3] = uint8(^a), uint8(^b), uint8(^c), uint8(^d)
	}
	for i := range dst {
		dst[i] = f.Leaf(t+i, x)
	}
}

// nodes are the inner nodes of a tree.
type nodes []Node

// tree returns the nodes of tree t and the branch to its root.
func (f *Forest) tree(t int) (n nodes, root int16) {
	if f.Used[t] == 1 {
		root = ^0
	}
	return f.Nodes[t*(f.Leaves-1) : (t+1)*(f.Leaves-1)], root
}

// next returns the branch from inner node at that x takes.
func (n nodes) next(at int16, x []float32) int16 {
	node, side := &n[at], 0
	if Above(x[node.Feature], node.Threshold) {
		side = 1
	}
	return node.Branch[side]
}

// step is next at an inner node, and stays at a leaf.
func (n nodes) step(at int16, x []float32) int16 {
	next := n.next(at&^(at>>15), x)
	if at < 0 {
		next = at
	}
	return next
}

// leaf returns the leaf in which x is below branch at.
func (n nodes) leaf(at int16, x []float32) uint8 {
	for at >= 0 {
		at = n.next(at, x)
	}
	return uint8(^at)
}

// Above reports whether a feature is above a threshold, or missing.
func Above(v, threshold float32) bool { return !(v <= threshold) }

// Split makes two leaves of one of tree t, which has room for it, and returns the
// second, which holds the samples above the threshold. Both have the weights of the
// one, so that the answers stay as they are.
func (f *Forest) Split(t int, leaf uint8, feature int, threshold float32) (second uint8) {
	used := f.Used[t]
	nodes := f.Nodes[t*(f.Leaves-1):][:used]
	added := int16(used) - 1
	for i := range added {
		for side, branch := range nodes[i].Branch {
			if branch == ^int16(leaf) {
				nodes[i].Branch[side] = added
			}
		}
	}
	second = uint8(used)
	nodes[added] = Node{Threshold: threshold, Feature: uint16(feature), Branch: [2]int16{^int16(leaf), ^int16(second)}}
	copy(f.LeafWeights(t, second), f.LeafWeights(t, leaf))
	f.Used[t]++
	return second
}

// Join makes one leaf of the two below an inner node of tree t which is not its root. That is
// kept, with the mean of their weights; the last leaf of the tree takes the number gone.
func (f *Forest) Join(t, node int) (kept, gone uint8) {
	last := uint8(f.Used[t] - 1)
	nodes := f.Nodes[t*(f.Leaves-1):][:last]
	first, second := uint8(^nodes[node].Branch[0]), uint8(^nodes[node].Branch[1])
	kept, gone = min(first, second), max(first, second)
	copy(nodes[node:], nodes[node+1:])
	nodes[last-1] = Node{}
	for i := range nodes[:last-1] {
		for side, branch := range nodes[i].Branch {
			switch {
			case branch == int16(node):
				nodes[i].Branch[side] = ^int16(kept)
			case branch > int16(node):
				nodes[i].Branch[side]--
			case branch == ^int16(last):
				nodes[i].Branch[side] = ^int16(gone)
			}
		}
	}
	w, other := f.LeafWeights(t, kept), f.LeafWeights(t, gone)
	for k := range w {
		w[k] = (w[k] + other[k]) / 2
	}
	copy(other, f.LeafWeights(t, last))
	f.Used[t]--
	return kept, gone
}

// Replant gives tree t, which has room for them, the nodes of the only tree of o. Its weights
// stay as they are.
func (f *Forest) Replant(t int, o *Forest) {
	nodes := f.Nodes[t*(f.Leaves-1):][:f.Leaves-1]
	clear(nodes)
	copy(nodes, o.Nodes[:o.Used[0]-1])
	f.Used[t] = o.Used[0]
}

// LeafWeights returns the weights of a leaf, C.
func (f *Forest) LeafWeights(t int, leaf uint8) []float32 {
	at := (t*f.Leaves + int(leaf)) * f.Classes
	return f.Weights[at : at+f.Classes]
}

// LogsTo stores log P(y=k | x) in dst, C.
//
//	x  D features, as RawTo stored them
//
// Cost O(trees·(log Leaves + C)).
func (f *Forest) LogsTo(dst []float64, x []float32) {
	f.logitsTo(dst, x)
	logSoftmax(dst)
}

// logitsTo stores the logarithms without their common constant, C.
func (f *Forest) logitsTo(dst []float64, x []float32) {
	f.biasTo(dst)
	var leaves [32]uint8
	for t := 0; t < len(f.Used); t += len(leaves) {
		some := leaves[:min(len(leaves), len(f.Used)-t)]
		f.leavesFrom(t, some, x)
		f.addAllTo(dst, t, some)
	}
}

// AllLogsTo stores the LogsTo of n samples in dst, n×C. It walks through one tree after the
// other, which stays in the processor's cache.
//
//	x  n×D features, as RawTo stored them
func (f *Forest) AllLogsTo(dst []float64, n int, x []float32) {
	c, d := f.Classes, len(x)/max(n, 1)
	var leaves [32]uint8
	for i := range n {
		f.biasTo(dst[i*c : (i+1)*c])
	}
	for t := range f.Used {
		for i := 0; i < n; i += len(leaves) {
			some := leaves[:min(len(leaves), n-i)]
			f.leavesOf(some, t, x[i*d:(i+len(some))*d])
			for j, leaf := range some {
				f.addTo(dst[(i+j)*c:(i+j+1)*c], t, leaf)
			}
		}
	}
	for i := range n {
		logSoftmax(dst[i*c : (i+1)*c])
	}
}

// leavesOf stores the leaf of tree t in which each of some samples is in dst. It walks down with
// four samples at once, as leavesFrom does in four trees.
//
//	x  len(dst)×D features, as RawTo stored them
func (f *Forest) leavesOf(dst []uint8, t int, x []float32) {
	n, root := f.tree(t)
	size := len(x) / len(dst)
	for ; len(dst) >= 4; dst, x = dst[4:], x[4*size:] {
		x0, x1, x2, x3 := x[:size], x[size:2*size], x[2*size:3*size], x[3*size:4*size]
		a, b, c, d := root, root, root, root
		for a&b&c&d >= 0 { // one of them is at an inner node
			a, b, c, d = n.step(a, x0), n.step(b, x1), n.step(c, x2), n.step(d, x3)
		}
		dst[0], dst[1], dst[2], dst[3] = uint8(^a), uint8(^b), uint8(^c), uint8(^d)
	}
	for i := range dst {
		dst[i] = n.leaf(root, x[i*size:(i+1)*size])
	}
}

// LeafLogsTo is LogsTo for a sample that is in leaves, one a tree.
func (f *Forest) LeafLogsTo(dst []float64, leaves []uint8) {
	f.biasTo(dst)
	f.addAllTo(dst, 0, leaves)
	logSoftmax(dst)
}

// biasTo stores the bias in dst, C.
func (f *Forest) biasTo(dst []float64) {
	for k, v := range f.Bias {
		dst[k] = float64(v)
	}
}

// addAllTo adds the weights of leaves to dst, C, those of the trees from t on, in their order.
// It loads and stores dst once for four of them.
func (f *Forest) addAllTo(dst []float64, t int, leaves []uint8) {
	for ; len(leaves) >= 4; t, leaves = t+4, leaves[4:] {
		w0, w1 := f.LeafWeights(t, leaves[0])[:len(dst)], f.LeafWeights(t+1, leaves[1])[:len(dst)]
		w2, w3 := f.LeafWeights(t+2, leaves[2])[:len(dst)], f.LeafWeights(t+3, leaves[3])[:len(dst)]
		for k, v := range dst {
			v += float64(w0[k])
			v += float64(w1[k])
			v += float64(w2[k])
			dst[k] = v + float64(w3[k])
		}
	}
	for i, leaf := range leaves {
		f.addTo(dst, t+i, leaf)
	}
}

// addTo adds the weights of a leaf to dst, C.
func (f *Forest) addTo(dst []float64, t int, leaf uint8) {
	w := f.LeafWeights(t, leaf)
	for k := range dst {
		dst[k] += float64(w[k])
	}
}
