package forest

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model"
)

// A tree that knows classes of which no sample is stored any more stays as it is, and one of a
// stream that goes on is grown anew.
func TestGrowsAnewWhatIsStored(t *testing.T) {
	s := Sizes{Trees: 4, Leaves: 20, Stored: 200}
	x, labels, weights := stream(rand.New(rand.NewPCG(31, 1)), 1200)
	l := learner(s)
	l.Learn(x, labels, weights)
	before := l.forest.Clone()
	l.growAnew(0)
	if slices.Equal(before.Nodes, l.forest.Nodes) {
		t.Error("no tree is grown anew")
	}
	check(t, l)

	for range 300 { // one class, in a corner
		l.Learn([]float64{-3, 3, 2, 0, 7}, []int{2}, []float64{1})
	}
	before = l.forest.Clone()
	for tree := range s.Trees {
		l.growAnew(tree)
	}
	if !slices.Equal(before.Nodes, l.forest.Nodes) {
		t.Error("a tree is grown anew from one class alone")
	}
}

// The trees of one minibatch of many labels are those of as many minibatches of one, between which the
// learner has rested.
func TestRenewCounts(t *testing.T) {
	s := Sizes{Trees: 6, Leaves: 20, Stored: 200}
	x, labels, weights := stream(rand.New(rand.NewPCG(32, 1)), 900)
	together, one := learner(s), learner(s)
	together.Learn(x, labels, weights)
	for i := range labels {
		one.Learn(x[5*i:5*(i+1)], labels[i:i+1], weights[i:i+1])
		one.view.N++
		if i%50 == 0 {
			one.Rest()
		}
	}
	if !together.forest.Equal(one.forest) {
		t.Error("the forests differ")
	}
}

// The trees of a forest that begins when its model has learnt many labels are those of one that begins
// with its model, as long as all labels are stored.
func TestRenewOfALateForest(t *testing.T) {
	s := Sizes{Trees: 6, Leaves: 20, Stored: 400}
	x, labels, weights := stream(rand.New(rand.NewPCG(34, 1)), 399)
	early, late := learner(s), learner(s)
	late.view.N = 100_001
	early.Learn(x, labels, weights)
	late.Learn(x, labels, weights)
	if !early.forest.Equal(late.forest) {
		t.Error("the forests differ")
	}
}

// A new tree answers for the stored samples, in the mean of each leaf, what the old one did: the
// own weights, and those that are tuned to other forests, with their base.
func TestMoveKeepsMeans(t *testing.T) {
	l := tunedLearner(Sizes{Trees: 4, Leaves: 20, Stored: 200})
	x, labels, weights := stream(rand.New(rand.NewPCG(33, 1)), 1200)
	l.Learn(x, labels, weights)
	const tree = 1
	was := slices.Clone(l.placesOf(tree))
	all := func() [][]float32 {
		at, end := tree*l.forest.Leaves*3, (tree+1)*l.forest.Leaves*3
		var rows [][]float32
		for _, s := range [][]float32{l.forest.Weights, l.squares, l.tuned.forest.Weights, l.tuned.base, l.tuned.squares} {
			rows = append(rows, slices.Clone(s[at:end]))
		}
		return rows
	}
	before := all()
	l.growAnew(tree)
	for i, rows := range all() {
		factor := 1.
		if i == 1 || i == 4 {
			factor = carries
		}
		for leaf := range l.forest.Used[tree] {
			for k := range 3 {
				var sum, n float64
				for slot, place := range l.placesOf(tree) {
					if place == uint8(leaf) {
						sum += float64(before[i][int(was[slot])*3+k])
						n++
					}
				}
				if want, got := factor*sum/n, float64(rows[int(leaf)*3+k]); math.Abs(got-want) > 1e-5*(1+math.Abs(want)) {
					t.Fatalf("row %d of array %d: %v, want %v", leaf, i, got, want)
				}
			}
		}
	}
	if &l.tuned.forest.Nodes[0] != &l.forest.Nodes[0] || l.view.Pool.Stack.Tuned != l.tuned.forest {
		t.Error("the tuned forest has other partitions")
	}
	check(t, l)
}

// A snapshot keeps its forest while trees are grown anew.
func TestGrowAnewOwns(t *testing.T) {
	l := learner(Sizes{Trees: 4, Leaves: 20, Stored: 200})
	x, labels, weights := stream(rand.New(rand.NewPCG(34, 1)), 1023)
	l.Learn(x, labels, weights)
	snapshot := l.forest
	kept := snapshot.Clone()
	l.Share()
	l.view.N = 1023
	l.Learn(x[:5], labels[:1], weights[:1])
	if !snapshot.Equal(kept) {
		t.Error("the forest of a snapshot has changed")
	}
	if slices.Equal(l.forest.Nodes, kept.Nodes) {
		t.Error("no tree is grown anew after 1024 labels")
	}
}

// Whole numbers and others: the table against the logarithm.
func TestNLogN(t *testing.T) {
	for _, n := range []float64{-1e-17, 0, 1e-12, 0.5, 1, 2, 2.5, 511, 512, 1000} {
		want := 0.
		if n > 0 {
			want = n * math.Log(n)
		}
		if got := nLogN(n); got != want {
			t.Errorf("nLogN(%v) = %v, want %v", n, got, want)
		}
	}
}

// A cut separates two classes that a threshold tells apart, whatever the order of the samples, and
// there is none for few samples, for one class, and for constant features.
func TestCut(t *testing.T) {
	r := newRing(40, 2)
	r.resize(40)
	slots := []uint16{}
	for i := range 40 {
		k := 0
		if i%8 > 2 {
			k = 1
		}
		slots = append(slots, uint16(r.put([]float64{float64(i % 8), 5}, k, 1)))
	}
	c := newCutter(1, 2)
	found := 0
	for seed := range random(20) {
		got := c.choose(slots, &r, &seed)
		if got.feature != 0 {
			t.Fatalf("the constant feature is cut at %v", got.threshold)
		}
		if got.threshold == 2 {
			found++
			if want := -(15*math.Log(15./40) + 25*math.Log(25./40)); math.Abs(got.gain-want) > 1e-9 {
				t.Errorf("gain %v, want %v", got.gain, want)
			}
		}
	}
	if found < 10 {
		t.Errorf("the best threshold is found in %d of 20 draws", found)
	}
	rng := random(1)
	if got := c.choose(slots[:minSplit-1], &r, &rng); !math.IsInf(got.gain, -1) {
		t.Errorf("%d samples are cut", minSplit-1)
	}
	clear(r.label)
	if got := c.choose(slots, &r, &rng); !math.IsInf(got.gain, -1) {
		t.Error("samples of one class are cut")
	}
}

// A missing value is above each threshold: a cut beyond all known values separates the
// missing ones from them, also where they are all alike. A leaf that grows finds it as well.
func TestCutMissing(t *testing.T) {
	for _, values := range []int{3, 1} {
		r := newRing(24, 1)
		r.resize(24)
		slots := []uint16{}
		for i := range 24 {
			x, k := float64(i%values), 0
			if i%2 == 1 {
				x, k = model.Missing, 1
			}
			slots = append(slots, uint16(r.put([]float64{x}, k, 1)))
		}
		found := 0
		c, s := newCutter(1, 1), newSplitter(Config{Features: 1})
		s.slots, s.sides = slots, make([]float64, 4)
		for seed := range random(20) {
			if got := c.choose(slots, &r, &seed); got.threshold != known && values > 1 || math.Abs(got.gain-24*math.Ln2) > 1e-9 {
				t.Errorf("%d known values: cut at %v with gain %v", values, got.threshold, got.gain)
			}
			if s.choose(&r, &seed) && s.threshold == known {
				found++
			}
		}
		if found < 5 || values == 1 && found < 20 {
			t.Errorf("%d known values: a leaf that grows finds the split in %d of 20 draws", values, found)
		}
	}
}
