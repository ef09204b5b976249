package fleet

import (
	"encoding/binary"
	"math"

	"edge/model"
	"edge/online/wire"
)

// Forest is what a member's own labels have taught its forest. The weights of the leaves
// are numbers of 16 bits.
type Forest struct {
	Member  string
	N       uint64   // labels learnt
	Classes []string // of the forest
	Counts  []uint64 // labels learnt of each
	*model.Forest
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

// Select returns a copy of a forest with the weights of some of its classes, rounded.
func Select(f *model.Forest, classes []int) *model.Forest {
	c := model.NewForest(len(f.Used), f.Leaves, len(classes))
	copy(c.Used, f.Used)
	copy(c.Nodes, f.Nodes)
	for i, k := range classes {
		c.Bias[i] = rounded(f.Bias[k])
		for row := range len(f.Used) * f.Leaves {
			c.Weights[row*len(classes)+i] = rounded(f.Weights[row*f.Classes+k])
		}
	}
	return c
}

// rounded returns v as bfloat16 holds it, within maxWeight.
func rounded(v float32) float32 {
	var two [2]byte
	r, _ := Bfloat16.store(two[:], float64(min(max(v, -maxWeight), maxWeight)))
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
			e.Int(splitLeaf(nodes, i))
			e.Int(int(n.Feature))
			e.Floats32([]float32{n.Threshold})
		}
		at := t * f.Leaves * f.Classes
		encodeWeights(e, f.Weights[at:at+int(used)*f.Classes])
	}
}

// splitLeaf is the leaf that node i has split: the first below it.
func splitLeaf(nodes []model.Node, i int) int {
	at := int16(i)
	for at >= 0 {
		at = nodes[at].Branch[0]
	}
	return int(^at)
}

func encodeWeights(e *wire.Encoder, w []float32) {
	for _, v := range w {
		e.Buf = binary.LittleEndian.AppendUint16(e.Buf, uint16(math.Float32bits(v)>>16))
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
	d := wire.NewDecoder(c.forest, "", ErrContribution)
	return decodeForest(d, len(c.Classes), c.Params.D)
}

// decodeForest reads a forest of so many classes, for a number of features. All is checked
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

// readForest reads what follows the sizes, into f unless that is nil.
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
		for i := 1; i < used && d.Err() == nil; i++ {
			leaf, feature := d.Int(i-1, "leaf"), d.Int(features-1, "feature")
			if threshold := d.Float32("threshold"); f != nil {
				f.Split(t, uint8(leaf), feature, float32(threshold))
			}
		}
		var weights []float32
		if f != nil {
			weights = f.Weights[t*leaves*classes:][:used*classes]
		}
		readWeights(d, used*classes, weights)
	}
}

// readWeights reads n weights, into w unless that is nil.
func readWeights(d *wire.Decoder, n int, w []float32) {
	for data := d.Bytes(2*n, "weights"); len(data) > 0; data = data[2:] {
		v := math.Float32frombits(uint32(binary.LittleEndian.Uint16(data)) << 16)
		if !(v >= -maxWeight && v <= maxWeight) {
			d.Fail("weight %g of a leaf", v)
			return
		}
		if w != nil {
			w[0], w = v, w[1:]
		}
	}
}

// EncodeForests appends forests.
func EncodeForests(e *wire.Encoder, all []Forest) {
	e.Int(len(all))
	for i := range all {
		f := &all[i]
		e.String(f.Member)
		e.Uint(f.N)
		e.Int(len(f.Classes))
		for k, name := range f.Classes {
			e.String(name)
			e.Uint(f.Counts[k])
		}
		encodeForest(e, f.Forest)
	}
}

// DecodeForests reads the forests that EncodeForests wrote, for a number of features.
func DecodeForests(d *wire.Decoder, features int) (all []Forest) {
	for range d.Count(MaxForests, 8, "number of forests") {
		f := Forest{Member: d.String(maxName), N: d.Uint()}
		for range d.Count(model.MaxClasses, 2, "number of classes") {
			f.Classes, f.Counts = append(f.Classes, d.String(maxName)), append(f.Counts, d.Uint())
		}
		if f.Forest = decodeForest(d, len(f.Classes), features); d.Err() != nil {
			return nil
		}
		all = append(all, f)
	}
	return all
}
