package forest

import (
	"math"

	"edge/online/wire"
)

// Encode appends the whole state: sizes, generator, weights and trees, as far as they
// are used, and the stored samples. The places of these follow from it.
func (l *Learner) Encode(e *wire.Encoder) {
	if l == nil {
		return
	}
	for _, v := range [3]int{l.cfg.Trees, l.cfg.Leaves, l.cfg.Stored} {
		e.Int(v)
	}
	e.Uint64(uint64(l.random))
	f := l.forest
	e.Floats32(f.Bias)
	e.Floats32(l.biasSquares)
	for t, used := range f.Used {
		e.Int(int(used))
		for _, n := range f.Nodes[t*(f.Leaves-1):][:used-1] {
			e.Floats32([]float32{n.Threshold})
			e.Int(int(n.Feature))
			for _, branch := range n.Branch {
				e.Int(branchCode(branch))
			}
		}
		weights, squares, growths := l.tree(t)
		e.Floats32(weights)
		e.Floats32(squares)
		for _, g := range growths {
			e.Int(int(g.wait))
			e.Int(int(g.class) - mixed)
		}
	}
	r := &l.ring
	e.Int(r.n)
	e.Int(r.next)
	e.Floats32(r.x[:r.n*r.d])
	e.Floats32(r.weight[:r.n])
	e.Buf = append(e.Buf, r.label[:r.n]...)
	if l.tuned != nil {
		l.tuned.encode(e)
	}
}

// Bytes is the number of bytes that Encode appends for D features and C classes, once
// all trees have their leaves and the ring is full; without numbers that take a second
// byte, and without tuned weights.
//
//	trees·(8·B·C + 8·(B−1) + 2·B) + W·(4·D + 5) + 8·C      for B leaves
func (s Sizes) Bytes(features, classes int) uint64 {
	t, b, w, d, k := uint64(s.Trees), uint64(s.Leaves), uint64(s.Stored), uint64(features), uint64(classes)
	return t*(8*b*k+8*(b-1)+2*b) + w*(4*d+5) + 8*k
}

// Memory is the memory in bytes that a Learner takes for D features and C classes, with
// the forests of two snapshots.
func (s Sizes) Memory(features, classes int) uint64 {
	t, b, w, d, k := uint64(s.Trees), uint64(s.Leaves), uint64(s.Stored), uint64(features), uint64(classes)
	const growth = 4
	return 3*s.Frozen(classes) + t*(4*b*k+growth*b) + w*(4*d+5+t)
}

// Tuned is the memory in bytes of tuned weights for C classes, with those of two snapshots.
func (s Sizes) Tuned(classes int) uint64 {
	const copies, weight = 5, 4
	return uint64(copies * weight * s.Trees * s.Leaves * classes)
}

// Frozen is the memory in bytes of a forest that answers, for C classes.
func (s Sizes) Frozen(classes int) uint64 {
	const weight, node = 4, 12
	return uint64(s.Trees * s.Leaves * (weight*classes + node))
}

// tree returns weights, squares and growth of the leaves of a tree that are used.
func (l *Learner) tree(t int) (weights, squares []float32, growths []growth) {
	f := l.forest
	at, end := t*f.Leaves, t*f.Leaves+int(f.Used[t])
	return f.Weights[at*f.Classes : end*f.Classes], l.squares[at*f.Classes : end*f.Classes], l.growth[at:end]
}

// branchCode is a branch as a count: even for an inner node, odd for a leaf.
func branchCode(branch int16) int {
	if branch >= 0 {
		return 2 * int(branch)
	}
	return 2*int(^branch) + 1
}

// DecodeSizes reads the sizes from the beginning of a state that Encode wrote.
func DecodeSizes(d *wire.Decoder) Sizes {
	return Sizes{d.Int(maxTrees, "trees"), d.Int(maxLeaves, "leaves"), d.Int(maxStored, "stored samples")}
}

// Decode reads the values that Encode wrote after its sizes, which are those of l.
func (l *Learner) Decode(d *wire.Decoder) {
	l.Grow()
	l.own()
	l.random = random(d.Uint64())
	readWeights(d, l.forest.Bias, l.biasSquares)
	for t := range l.cfg.Trees {
		used := max(d.Int(l.cfg.Leaves, "leaves"), 1)
		l.moreLeaves(used)
		l.forest.Used[t] = uint16(used)
		l.decodeNodes(d, t)
		weights, squares, growths := l.tree(t)
		readWeights(d, weights, squares)
		for i := range growths {
			growths[i] = growth{uint8(d.Int(minSplit, "samples")), int16(d.Int(l.forest.Classes-1-mixed, "class")) + mixed}
		}
	}
	l.decodeRing(d)
	if d.Err() == nil {
		l.place()
	}
	if d.Err() == nil && d.Len() > 0 {
		l.decodeTuned(d)
	}
}

// readWeights reads weights and their squares.
func readWeights(d *wire.Decoder, w, squares []float32) {
	finite(d, w)
	d.Fill32(squares, "squares")
	for _, v := range squares {
		if !(v >= 0 && v <= math.MaxFloat32) {
			d.Fail("a square of a weight is negative or not finite")
		}
	}
}

// finite reads weights.
func finite(d *wire.Decoder, w []float32) {
	d.Fill32(w, "weights")
	for _, v := range w {
		if v-v != 0 {
			d.Fail("a weight is not finite")
		}
	}
}

// decodeTuned reads the tuned weights.
func (l *Learner) decodeTuned(d *wire.Decoder) {
	l.beginTuned()
	t := l.tuned
	t.relearnt = d.Uint64()
	finite(d, t.biasBase)
	readWeights(d, t.forest.Bias, t.biasSquares)
	for i := range t.forest.Used {
		base, w, squares := t.tree(i)
		finite(d, base)
		readWeights(d, w, squares)
	}
}

// decodeNodes reads the inner nodes of a tree. Each but the root is a branch of one
// before it, and each leaf a branch of one node.
func (l *Learner) decodeNodes(d *wire.Decoder, t int) {
	used := int(l.forest.Used[t])
	var seen [2][maxLeaves]bool
	for i := range used - 1 {
		n := &l.forest.Nodes[t*(l.forest.Leaves-1)+i]
		n.Threshold = float32(d.Float32("threshold"))
		n.Feature = uint16(d.Int(l.cfg.Features-1, "feature"))
		for side := range n.Branch {
			code := d.Int(2*used-1, "branch")
			at, leaf := code/2, code%2
			if leaf == 0 && (at <= i || at >= used-1) || seen[leaf][at] {
				d.Fail("the branches of a tree do not make a tree")
				return
			}
			seen[leaf][at] = true
			n.Branch[side] = int16(at)
			if leaf == 1 {
				n.Branch[side] = ^int16(at)
			}
		}
	}
}

func (l *Learner) decodeRing(d *wire.Decoder) {
	r, stored := &l.ring, l.cfg.Stored
	n := d.Int(stored, "stored samples")
	l.moreSamples(n)
	r.n, r.next = n, d.Int(stored-1, "next sample")
	if r.n < stored && r.next != r.n {
		d.Fail("the next of %d stored samples is %d", r.n, r.next)
	}
	d.Fill32(r.x[:r.n*r.d], "stored samples")
	for _, v := range r.x[:r.n*r.d] {
		if v == v && v-v != 0 {
			d.Fail("stored samples hold an infinite feature")
		}
	}
	d.Fill32(r.weight[:r.n], "weights of samples")
	for _, v := range r.weight[:r.n] {
		if !(v >= 0 && v <= math.MaxFloat32) { // 0: one of 1e-46 or less
			d.Fail("the weight of a stored sample is out of range")
		}
	}
	copy(r.label, d.Bytes(r.n, "labels"))
	for _, k := range r.label[:r.n] {
		if int(k) >= l.forest.Classes {
			d.Fail("a stored sample has class %d of %d", k, l.forest.Classes)
		}
	}
}
