package fleet

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"edge/model"
	"edge/online/wire"
)

// Forest is a member's forest as its own labels have taught it. The weights of the leaves are
// numbers of 16 bits.
type Forest struct {
	Member        string
	N             uint64   // labels learnt
	Classes       []string // of the forest
	Counts        []uint64 // labels learnt of each
	*model.Forest          // nil: the one of that member and as many labels that the receiver has, see Merge.Forests
	data          []byte   // what encodeForest would append, of a contribution; none: it is not kept
}

// Bounds of a forest. Those of an edge model are narrower.
const (
	// MaxForests bounds the forests that a merge takes over: of the members with the most
	// labels.
	MaxForests = 15

	maxTrees  = 100
	maxLeaves = 64
	maxWeight = 9984 // magnitude of a weight: 39·2⁸
)

// Select returns a copy of a forest with the weights of some of its classes, rounded, and
// thresholds rounded by the means of the D features. Its leaves are numbered as encodeForest has
// them.
func Select(f *model.Forest, mean []float64, classes []int) *model.Forest {
	c := model.NewForest(len(f.Used), f.Leaves, len(classes))
	copy(c.Used, f.Used)
	for i, k := range classes {
		c.Bias[i] = rounded(f.Bias[k])
	}
	for t, used := range f.Used {
		first := t * (f.Leaves - 1)
		leaves := renumber(c.Nodes[first:], f.Nodes[first:first+int(used)-1])
		for i := range c.Nodes[first:][:used-1] {
			n := &c.Nodes[first+i]
			n.Threshold = short(n.Threshold, mean[n.Feature])
		}
		for leaf, from := range leaves[:used] {
			to, weights := c.LeafWeights(t, uint8(leaf)), f.LeafWeights(t, from)
			for i, k := range classes {
				to[i] = rounded(weights[k])
			}
		}
	}
	return c
}

// renumber stores the nodes of a tree with leaves in the order in which they were split off:
// of those below node i the first one on the second side has number i+1. Where leaves were
// joined they have another order. It returns the former number of each.
func renumber(dst, nodes []model.Node) (former [maxLeaves]uint8) {
	copy(dst, nodes)
	if len(nodes) == 0 {
		return former
	}
	former[0] = firstLeaf(nodes, 0)
	for i, n := range nodes {
		former[i+1] = firstLeaf(nodes, n.Branch[1])
	}
	var number [maxLeaves]uint8
	for now, leaf := range former[:len(nodes)+1] {
		number[leaf] = uint8(now)
	}
	for i := range nodes {
		for side, branch := range nodes[i].Branch {
			if branch < 0 {
				dst[i].Branch[side] = ^int16(number[^branch])
			}
		}
	}
	return former
}

// rounded returns v in whole steps as bfloat16 holds it, within maxWeight. Its zero has no sign.
func rounded(v float32) float32 {
	var two [2]byte
	n := math.Round(float64(min(max(v, -maxWeight), maxWeight)) / step)
	r, _ := Bfloat16.store(two[:], n*step+0)
	return float32(r)
}

// short returns a threshold that is rounded by 2⁻¹² of its distance to 0 and to the feature's mean
// at most: a message packs one with fewer digits better, and features are of any unit and offset.
func short(threshold float32, mean float64) float32 {
	v := float64(threshold)
	_, exponent := math.Frexp(min(math.Abs(v), math.Abs(v-mean)))
	unit := math.Ldexp(1, exponent-12)
	r := math.Round(v/unit) * unit
	if v == mean || !(math.Abs(r) <= math.MaxFloat32) {
		return threshold
	}
	return float32(r)
}

// encodeForest appends a forest whose weights are rounded. Of each split it has the leaf,
// which keeps its number for the samples up to the threshold.
func encodeForest(e *wire.Encoder, f *model.Forest) {
	e.Int(len(f.Used))
	e.Int(f.Leaves)
	encodeWeights(e, f.Bias)
	for t, used := range f.Used {
		e.Int(int(used))
		nodes := f.Nodes[t*(f.Leaves-1):][:used-1]
		for i, n := range nodes {
			e.Int(int(firstLeaf(nodes, int16(i)))) // which node i has split
			e.Int(int(n.Feature))
			e.Floats32([]float32{n.Threshold})
		}
		at := t * f.Leaves * f.Classes
		encodeWeights(e, f.Weights[at:at+int(used)*f.Classes])
	}
}

// firstLeaf is the first leaf below a branch of a node.
func firstLeaf(nodes []model.Node, branch int16) uint8 {
	for branch >= 0 {
		branch = nodes[branch].Branch[0]
	}
	return uint8(^branch)
}

// encodeWeights appends weights that are rounded.
func encodeWeights(e *wire.Encoder, w []float32) {
	at := len(e.Buf)
	e.Buf = slices.Grow(e.Buf, 2*len(w))[:at+2*len(w)]
	for i, v := range w {
		binary.LittleEndian.PutUint16(e.Buf[at+2*i:], uint16(math.Float32bits(v)>>16))
	}
}

// SetForest adds a forest, of the contribution's classes in their order, or with nil removes
// the one there is.
func (c *Contribution) SetForest(f *model.Forest) {
	var e wire.Encoder
	if f != nil {
		encodeForest(&e, f)
	}
	c.forest = e.Buf
}

// Forest returns the forest; nil if there is none.
func (c *Contribution) Forest() *model.Forest {
	if len(c.forest) == 0 {
		return nil
	}
	d := wire.NewDecoder(c.forest, "", ErrContribution) // Decode has checked it
	f := model.NewForest(d.Int(maxTrees, ""), d.Int(maxLeaves, ""), len(c.Classes))
	readForest(d, len(f.Used), f.Leaves, f.Classes, c.Params.D, f)
	return f
}

// decodeForest checks a forest and keeps a copy.
func (c *Contribution) decodeForest(d *wire.Decoder, data []byte) {
	part := d.Part(data, "forest: ")
	checkForest(part, len(c.Classes), c.Params.D)
	part.End()
	d.Join(part)
	c.forest = bytes.Clone(data)
}

// decodeForest reads a forest of some classes, for a number of features. All is checked
// before memory is made; nil after an error.
func decodeForest(d *wire.Decoder, classes, features int) *model.Forest {
	check := *d
	if trees, leaves := checkForest(&check, classes, features); check.Err() == nil {
		f := model.NewForest(trees, leaves, classes)
		d.Int(maxTrees, "")
		d.Int(maxLeaves, "")
		readForest(d, trees, leaves, classes, features, f)
		return f
	}
	d.Abort(check.Err())
	return nil
}

// checkForest reads a forest and returns its sizes.
func checkForest(d *wire.Decoder, classes, features int) (trees, leaves int) {
	trees, leaves = d.Int(maxTrees, "trees"), d.Int(maxLeaves, "leaves")
	if d.Err() == nil && (trees < 1 || leaves < 2) {
		d.Fail("a forest of %d trees with %d leaves", trees, leaves)
	}
	if d.Err() == nil {
		readForest(d, trees, leaves, classes, features, nil)
	}
	return trees, leaves
}

// readForest reads the rest of a forest after its sizes, into f unless that is nil.
func readForest(d *wire.Decoder, trees, leaves, classes, features int, f *model.Forest) {
	var bias []float32
	if f != nil {
		bias = f.Bias
	}
	readWeights(d, classes, bias)
	for t := range trees {
		used := d.Int(leaves, "leaves")
		if d.Err() == nil && used < 1 {
			d.Fail("tree %d has no leaf", t)
		}
		var s splitter
		if f != nil {
			s.nodes = f.Nodes[t*(leaves-1) : (t+1)*(leaves-1)]
			f.Used[t] = uint16(used)
		}
		for i := 1; i < used && d.Err() == nil; i++ {
			leaf, feature := d.Int(i-1, "leaf"), d.Int(features-1, "feature")
			if threshold := d.Float32("threshold"); f != nil {
				s.split(i, leaf, model.Node{Threshold: float32(threshold), Feature: uint16(feature)})
			}
		}
		var weights []float32
		if f != nil {
			weights = f.Weights[t*leaves*classes:][:used*classes]
		}
		readWeights(d, used*classes, weights)
	}
}

// splitter makes the nodes of a tree from its splits, as model.Forest.Split does, in a time
// that does not depend on their number.
type splitter struct {
	nodes []model.Node
	at    [maxLeaves]struct{ node, side uint8 } // of the branch that ends in a leaf
}

// split makes two leaves of one. The second has number i, the first one keeps its own.
func (s *splitter) split(i, leaf int, n model.Node) {
	added := i - 1
	if branch := s.at[leaf]; added > 0 {
		s.nodes[branch.node].Branch[branch.side] = int16(added)
	}
	n.Branch = [2]int16{^int16(leaf), ^int16(i)}
	s.nodes[added] = n
	s.at[leaf].node, s.at[leaf].side = uint8(added), 0
	s.at[i].node, s.at[i].side = uint8(added), 1
}

// readWeights reads n weights, into w unless that is nil.
func readWeights(d *wire.Decoder, n int, w []float32) {
	const sign = 1 << 15
	largest := uint16(math.Float32bits(maxWeight) >> 16) // numbers that are not finite are above it
	data := d.Bytes(2*n, "weights")
	for i := range len(data) / 2 {
		v := binary.LittleEndian.Uint16(data[2*i:])
		if v&^sign > largest {
			d.Fail("weight %g of a leaf", math.Float32frombits(uint32(v)<<16))
			return
		}
		if w != nil {
			w[i] = math.Float32frombits(uint32(v) << 16)
		}
	}
}

// keptForest is the place of a forest in a merge that the receiver has already.
type keptForest struct {
	place  int
	member string
	n      uint64
}

// split returns the forests that are encoded, and the places of those that are not.
func split(all []Forest) (encoded []Forest, kept []keptForest) {
	for i := range all {
		if f := &all[i]; f.Forest == nil {
			kept = append(kept, keptForest{i, f.Member, f.N})
		} else {
			encoded = append(encoded, *f)
		}
	}
	return encoded, kept
}

// encodeKept appends the places of forests that are not encoded.
func encodeKept(e *wire.Encoder, kept []keptForest) {
	e.Int(len(kept))
	for _, k := range kept {
		e.Int(k.place)
		e.String(k.member)
		e.Uint(k.n)
	}
}

// decodeKept reads the places that encodeKept wrote, and adds forests there that the receiver has.
func decodeKept(d *wire.Decoder, all []Forest) []Forest {
	for range d.Count(MaxForests, 4, "number of forests") {
		place, f := d.Int(len(all), "place of a forest"), Forest{Member: d.String(MaxName), N: d.Uint()}
		if d.Err() == nil && len(all) == MaxForests {
			d.Fail("more than %d forests", MaxForests)
		}
		if d.Err() != nil {
			return nil
		}
		all = append(all, Forest{})
		copy(all[place+1:], all[place:])
		all[place] = f
	}
	return all
}

// withoutData returns forests that do not keep the bytes of their contributions.
func withoutData(all []Forest) []Forest {
	all = slices.Clone(all)
	for i := range all {
		all[i].data = nil
	}
	return all
}

// EncodeForests appends forests.
func EncodeForests(e *wire.Encoder, all []Forest) {
	e.Int(len(all))
	for i := range all {
		f := &all[i]
		e.String(f.Member)
		e.Uint(f.N)
		encodeCounts(e, f.Classes, f.Counts)
		if len(f.data) > 0 {
			e.Buf = append(e.Buf, f.data...)
		} else {
			encodeForest(e, f.Forest)
		}
	}
}

// DecodeForests reads the forests that EncodeForests wrote, for a number of features.
func DecodeForests(d *wire.Decoder, features int) (all []Forest) {
	for range d.Count(MaxForests, 8, "number of forests") {
		f := Forest{Member: d.String(MaxName), N: d.Uint()}
		for range d.Count(model.MaxClasses, 2, "number of classes") {
			f.Classes, f.Counts = append(f.Classes, d.String(MaxName)), append(f.Counts, d.Uint())
		}
		if f.Forest = decodeForest(d, len(f.Classes), features); d.Err() != nil {
			return nil
		}
		all = append(all, f)
	}
	return all
}
