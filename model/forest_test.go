package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/test/golden"
)

// bound is one side of a threshold.
type bound struct {
	feature   int
	threshold float32
	above     bool
}

// randomForest has trees of every number of leaves, and random weights. Leaf l of tree t
// has the bounds boxes[t][l].
func randomForest(rng *rand.Rand, trees, leaves, classes, d int) (f *Forest, boxes [][][]bound) {
	f = NewForest(trees, leaves, classes)
	for i := range f.Weights {
		f.Weights[i] = float32(rng.NormFloat64())
	}
	for k := range f.Bias {
		f.Bias[k] = float32(rng.NormFloat64())
	}
	for t := range trees {
		box := [][]bound{nil}
		for len(box) < 1+t%leaves {
			leaf, feature, threshold := rng.IntN(len(box)), rng.IntN(d), float32(rng.NormFloat64())
			if second := f.Split(t, uint8(leaf), feature, threshold); int(second) != len(box) {
				panic("the leaves are not numbered in order")
			}
			side := func(above bool) []bound { return append(slices.Clone(box[leaf]), bound{feature, threshold, above}) }
			box = append(box, side(true))
			box[leaf] = side(false)
		}
		boxes = append(boxes, box)
	}
	return f, boxes
}

// holds reports whether a sample is within bounds; a missing feature is above all
// thresholds.
func holds(bounds []bound, x []float64) bool {
	for _, b := range bounds {
		if (math.IsNaN(x[b.feature]) || x[b.feature] > float64(b.threshold)) != b.above {
			return false
		}
	}
	return true
}

// randomInput has missing features, and some that 32 bits cannot hold.
func randomInput(rng *rand.Rand, d int) []float64 {
	x := make([]float64, d)
	for j := range x {
		switch x[j] = float64(float32(rng.NormFloat64())); rng.IntN(12) {
		case 0:
			x[j] = math.NaN()
		case 1:
			x[j] *= 1e90
		}
	}
	return x
}

// Logarithms of probabilities against the sum over all leaves that hold the sample.
func TestForestLogs(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	const d, classes = 3, 4
	f, boxes := randomForest(rng, 30, 9, classes, d)
	raw, got := make([]float32, d), make([]float64, classes)
	for range 500 {
		x := randomInput(rng, d)
		want := make([]float64, classes)
		for k, v := range f.Bias {
			want[k] = float64(v)
		}
		var leaves []uint8
		for tree, box := range boxes {
			for leaf, bounds := range box {
				if !holds(bounds, x) {
					continue
				}
				leaves = append(leaves, uint8(leaf))
				for k := range want {
					want[k] += float64(f.Weights[(tree*f.Leaves+leaf)*classes+k])
				}
			}
		}
		if len(leaves) != len(boxes) {
			t.Fatalf("%v is in %d leaves of %d trees", x, len(leaves), len(boxes))
		}
		var sum float64
		for _, a := range want {
			sum += math.Exp(a)
		}
		for k := range want {
			want[k] -= math.Log(sum)
		}
		RawTo(raw, x)
		found := make([]uint8, len(leaves))
		if f.LeavesTo(found, raw); !slices.Equal(found, leaves) {
			t.Fatalf("%v is in the leaves %v, want %v", x, found, leaves)
		}
		f.LogsTo(got, raw)
		golden.Close(t, "log probability", got, want, 1e-12)
		f.LeafLogsTo(got, leaves)
		golden.Close(t, "log probability by leaves", got, want, 1e-12)
	}
}

// A split gives freedom, and changes no answer.
func TestForestSplit(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	f, _ := randomForest(rng, 10, 12, 3, 2)
	raw, before, after := make([]float32, 2), make([]float64, 3), make([]float64, 3)
	for range 100 {
		RawTo(raw, randomInput(rng, 2))
		f.LogsTo(before, raw)
		g := f.Clone()
		for tree, used := range f.Used {
			g.Split(tree, uint8(rng.IntN(int(used))), rng.IntN(2), float32(rng.NormFloat64()))
		}
		g.LogsTo(after, raw)
		golden.Close(t, "answer after a split", after, before, 0)
		f.LogsTo(after, raw)
		golden.Close(t, "answer of the original", after, before, 0)
	}
}

// Join: the samples of the two leaves are in the one that is kept, those of the last leaf
// in the one that is gone, all others where they were; the nodes stay in the order of a state.
func TestForestJoin(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 2))
	f, _ := randomForest(rng, 12, 12, 3, 2)
	raw := make([]float32, 2)
	joined := 0
	for tree, used := range f.Used {
		for node := 1; node < int(used)-1; node++ {
			b := f.Nodes[tree*(f.Leaves-1)+node].Branch
			if b[0] >= 0 || b[1] >= 0 {
				continue
			}
			joined++
			g := f.Clone()
			kept, gone := g.Join(tree, node)
			if g.Used[tree] != used-1 || min(^b[0], ^b[1]) != int16(kept) || max(^b[0], ^b[1]) != int16(gone) {
				t.Fatalf("leaves %d and %d: kept %d, gone %d", ^b[0], ^b[1], kept, gone)
			}
			for range 200 {
				RawTo(raw, randomInput(rng, 2))
				before, want := f.Leaf(tree, raw), f.Leaf(tree, raw)
				switch {
				case before == gone:
					want = kept
				case before == uint8(used-1):
					want = gone
				}
				if got := g.Leaf(tree, raw); got != want {
					t.Fatalf("a sample of leaf %d is in %d, want %d", before, got, want)
				}
				for k, w := range g.LeafWeights(tree, want) {
					v := f.LeafWeights(tree, before)[k]
					if want == kept {
						v = (f.LeafWeights(tree, kept)[k] + f.LeafWeights(tree, gone)[k]) / 2
					}
					if w != v {
						t.Fatalf("leaf %d has weight %v, want %v", want, w, v)
					}
				}
			}
			for i, n := range g.Nodes[tree*(f.Leaves-1):][:used-2] {
				if n.Branch[0] >= 0 && int(n.Branch[0]) <= i || n.Branch[1] >= 0 && int(n.Branch[1]) <= i {
					t.Fatalf("node %d has the branches %v", i, n.Branch)
				}
			}
		}
	}
	if joined < 10 {
		t.Errorf("%d nodes joined: the test is too small", joined)
	}
}

// A tree takes over the partition of another, with the weights that its leaves have.
func TestForestReplant(t *testing.T) {
	rng := rand.New(rand.NewPCG(14, 2))
	f, _ := randomForest(rng, 6, 12, 3, 2)
	o, _ := randomForest(rng, 1, 9, 3, 2)
	g := f.Clone()
	g.Replant(2, o)
	raw := make([]float32, 2)
	for range 300 {
		RawTo(raw, randomInput(rng, 2))
		for tree := range f.Used {
			want := f.Leaf(tree, raw)
			if tree == 2 {
				want = o.Leaf(0, raw)
			}
			if got := g.Leaf(tree, raw); got != want {
				t.Fatalf("tree %d: leaf %d, want %d", tree, got, want)
			}
		}
	}
	if !slices.Equal(f.Weights, g.Weights) || g.Used[2] != o.Used[0] {
		t.Error("weights or the number of leaves are wrong")
	}
}

// The forest is an expert behind the regression, in both blends.
func TestStackForest(t *testing.T) {
	p, ws := stacked()
	rng := rand.New(rand.NewPCG(3, 3))
	p.Scale.Mu = make([]float64, 2)
	f, _ := randomForest(rng, 8, 4, 3, 2)
	f.Bias[1] = -40 // below the floor
	p.Pool.Stack.Forest, ws.raw = f, []float32{9, 9, 0.3, -0.2}
	s := &p.Pool.Stack
	s.Ordered.Exponents = slices.Insert(s.Ordered.Exponents, 3, 0.35)
	s.Plain.Exponents = append(s.Plain.Exponents, 0.45)
	dst := []float64{0.5, 0.3, 0.2}
	p.foresee(1, &ws.forecast)
	p.pool(dst, &ws.forecast)
	p.stack(dst, ws)
	logs := make([]float64, 3)
	f.LogsTo(logs, ws.raw[2:])
	logs[1] = math.Log(floorExpert)
	for name, c := range map[string]struct {
		out       BlendOutput
		exponents []float64
	}{"ordered": {ws.Ordered(), s.Ordered.Exponents}, "plain": {ws.Plain(p), s.Plain.Exponents}} {
		golden.Close(t, name+": logarithms of the forest", c.out.Experts[9:12], logs, 1e-12)
		want := make([]float64, 3)
		for j, exponent := range c.exponents {
			for k := range want {
				want[k] += exponent * c.out.Experts[3*j+k]
			}
		}
		softmax(want)
		golden.Close(t, name+": answer", c.out.Answer, want, 1e-12)
	}
}

// A prediction of the forest does not allocate.
func TestForestAllocations(t *testing.T) {
	f, _ := randomForest(rand.New(rand.NewPCG(4, 4)), 20, 16, 3, 2)
	x, raw, logs := []float64{0.3, -0.1}, make([]float32, 2), make([]float64, 3)
	if n := testing.AllocsPerRun(100, func() { RawTo(raw, x); f.LogsTo(logs, raw) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// A forest with more room has the same answers, and takes further leaves.
func TestForestWithRoom(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	const trees, leaves, classes, d = 11, 5, 3, 4
	f, _ := randomForest(rng, trees, leaves, classes, d)
	more := f.WithRoom(9)
	want, got, raw := make([]float64, classes), make([]float64, classes), make([]float32, d)
	for range 200 {
		RawTo(raw, randomInput(rng, d))
		f.LogsTo(want, raw)
		if more.LogsTo(got, raw); !slices.Equal(got, want) {
			t.Fatalf("with more room %v, want %v", got, want)
		}
	}
	full := slices.Index(f.Used, leaves)
	if second := more.Split(full, 0, 1, 0.5); second != leaves || f.Used[full] != leaves {
		t.Errorf("the leaf after %d is %d, and the first forest has %d", leaves, second, f.Used[full])
	}
	RawTo(raw, randomInput(rng, d))
	f.LogsTo(want, raw)
	if more.LogsTo(got, raw); !slices.Equal(got, want) {
		t.Errorf("after a split %v, want %v", got, want)
	}
}

// The answers to several samples together are those to each, to the last bit: for fewer
// samples than one group, for several groups, for trees of one leaf and missing features.
func TestForestAllLogs(t *testing.T) {
	const d, c = 3, 4
	rng := rand.New(rand.NewPCG(8, 8))
	for _, leaves := range []int{2, 9} {
		f, _ := randomForest(rng, 10, leaves, c, d)
		f.Used[3] = 1
		for _, n := range []int{0, 1, 31, 32, 75} {
			x, want, got := make([]float32, n*d), make([]float64, n*c), make([]float64, n*c)
			for i := range n {
				row := randomInput(rng, d)
				if i%5 == 0 {
					row[i%d] = math.NaN()
				}
				RawTo(x[i*d:(i+1)*d], row)
				f.LogsTo(want[i*c:(i+1)*c], x[i*d:(i+1)*d])
			}
			if f.AllLogsTo(got, n, x); !slices.Equal(got, want) {
				t.Errorf("%d leaves, %d samples: another answer", leaves, n)
			}
		}
	}
}
