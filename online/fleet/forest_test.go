package fleet

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model"
	"edge/online/wire"
)

// centred are the means of features around 0.
var centred = make([]float64, 8)

// grown returns a forest of some trees, with leaves of all numbers up to 6 and rounded
// weights.
func grown(seed uint64, classes, features int) *model.Forest {
	rng := rand.New(rand.NewPCG(seed, 6))
	f := model.NewForest(7, 6, classes)
	for t := range f.Used {
		for i := 1; i < 1+t%6; i++ {
			f.Split(t, uint8(rng.IntN(i)), rng.IntN(features), float32(rng.NormFloat64()))
		}
	}
	for i := range f.Weights {
		f.Weights[i] = float32(rng.NormFloat64())
	}
	for k := range f.Bias {
		f.Bias[k] = float32(rng.NormFloat64())
	}
	return f
}

// A forest answers as before after it was encoded and decoded, but for the rounding of its
// weights, of the classes that were selected.
func TestForestIsEncoded(t *testing.T) {
	const features = 2
	f := grown(1, 4, features)
	f.Weights[0], f.Weights[4] = float32(math.Inf(1)), -1e30
	classes := []int{2, 0, 3}
	selected := Select(f, centred, classes)
	var e wire.Encoder
	encodeForest(&e, selected)
	d := wire.NewDecoder(e.Buf, "", ErrContribution)
	got := decodeForest(d, len(classes), features)
	if err := d.End(); err != nil {
		t.Fatal(err)
	}
	var again wire.Encoder
	encodeForest(&again, got)
	if !bytes.Equal(again.Buf, e.Buf) || !slices.Equal(got.Nodes, selected.Nodes) || !slices.Equal(got.Used, f.Used) {
		t.Fatal("another forest after decoding")
	}
	x := make([]float32, features)
	rng := rand.New(rand.NewPCG(2, 2))
	for range 100 {
		for j := range x {
			x[j] = float32(rng.NormFloat64())
		}
		for tree := range f.Used {
			leaf := f.Leaf(tree, x)
			if got.Leaf(tree, x) != leaf {
				t.Fatalf("tree %d: another leaf", tree)
			}
			for i, k := range classes {
				want := min(max(float64(f.LeafWeights(tree, leaf)[k]), -maxWeight), maxWeight)
				if v := float64(got.LeafWeights(tree, leaf)[i]); math.Abs(v-want) > math.Abs(want)/256+step/2 {
					t.Errorf("tree %d, leaf %d, class %d: weight %g, want %g", tree, leaf, k, v, want)
				}
			}
		}
	}
}

// Trees whose leaves were joined, and split elsewhere, answer as before after they were encoded
// and decoded.
func TestForestOfJoinedLeaves(t *testing.T) {
	const classes, features = 2, 2
	rng := rand.New(rand.NewPCG(3, 3))
	x := make([]float32, features)
	for seed := range uint64(200) {
		f := grown(seed, classes, features)
		for tree, used := range f.Used {
			for range 8 {
				nodes := f.Nodes[tree*(f.Leaves-1):][:f.Used[tree]-1]
				for i := len(nodes) - 1; i > 0; i-- {
					if b := nodes[i].Branch; b[0] < 0 && b[1] < 0 && rng.IntN(2) == 0 {
						f.Join(tree, i)
						break
					}
				}
				if f.Used[tree] < used {
					second := f.Split(tree, uint8(rng.IntN(int(f.Used[tree]))), rng.IntN(features), float32(rng.NormFloat64()))
					f.LeafWeights(tree, second)[0] = float32(rng.NormFloat64())
				}
			}
		}
		selected := Select(f, centred, []int{0, 1})
		var e wire.Encoder
		encodeForest(&e, selected)
		d := wire.NewDecoder(e.Buf, "", ErrContribution)
		got := decodeForest(d, classes, features)
		if err := d.End(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for range 20 {
			for j := range x {
				x[j] = float32(rng.NormFloat64())
			}
			for tree := range f.Used {
				for k, v := range f.LeafWeights(tree, f.Leaf(tree, x)) {
					if w := got.LeafWeights(tree, got.Leaf(tree, x))[k]; w != rounded(v) {
						t.Fatalf("seed %d, tree %d, class %d: weight %g, want %g", seed, tree, k, w, rounded(v))
					}
				}
			}
		}
	}
}

// A contribution carries a forest; no damaged one is accepted, nor one without its forest,
// nor an old one with something behind its sites.
func TestContributionWithForest(t *testing.T) {
	c, _ := member(t, "a", 3, 4, Bfloat16, "x", "y")
	plain := c.plain()
	if !bytes.HasPrefix(plain, []byte("EFC1")) {
		t.Fatalf("%q", plain[:4])
	}
	want := Select(grown(1, 2, 2), centred, []int{0, 1})
	c.SetForest(want)
	data := c.plain()
	if !bytes.HasPrefix(data, []byte("EFC3")) {
		t.Fatalf("%q", data[:4])
	}
	got, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if f := got.Forest(); f == nil || !slices.Equal(f.Bias, want.Bias) || !slices.Equal(f.Nodes, want.Nodes) {
		t.Error("another forest after decoding")
	}
	if old, err := Decode(plain); err != nil || old.Forest() != nil {
		t.Errorf("a contribution without a forest: %v", err)
	}
	refusesDamage(t, data, Decode, ErrContribution)
	set, m := NewSet(0), receiver(t, 5)
	set.Put(got)
	merge, err := m.Merge(set)
	if err != nil || len(merge.Forests) != 1 {
		t.Fatalf("%v: %d forests", err, len(merge.Forests))
	}
	encoded := bits(merge)
	decoded, err := DecodeMerge(encoded)
	if err != nil || !bytes.Equal(bits(decoded), encoded) || !bytes.HasPrefix(encoded, []byte("EFM2")) {
		t.Fatalf("another merge after decoding (%v)", err)
	}
	if without := bits(merge.WithoutForests()); !bytes.HasPrefix(without, []byte("EFM1")) || len(without) >= len(encoded) {
		t.Error("the merge without forests has some")
	}
	refusesDamage(t, encoded, DecodeMerge, ErrMerge)
}

// Bytes that are no forest are refused, and take no memory before they are checked.
func TestForestsOutOfRange(t *testing.T) {
	for name, write := range map[string]func(e *wire.Encoder){
		"no tree":         func(e *wire.Encoder) { e.Int(0); e.Int(6) },
		"too many trees":  func(e *wire.Encoder) { e.Int(maxTrees + 1); e.Int(6) },
		"too many leaves": func(e *wire.Encoder) { e.Int(1); e.Int(maxLeaves + 1) },
		"promises":        func(e *wire.Encoder) { e.Int(maxTrees); e.Int(maxLeaves) },
		"no leaf":         func(e *wire.Encoder) { e.Int(1); e.Int(6); encodeWeights(e, make([]float32, 2)); e.Int(0) },
		"leaf":            func(e *wire.Encoder) { tree(e, 1, 0, 0, 0) },
		"feature":         func(e *wire.Encoder) { tree(e, 0, 2, 0, 0) },
		"threshold":       func(e *wire.Encoder) { tree(e, 0, 0, float32(math.Inf(1)), 0) },
		"weight":          func(e *wire.Encoder) { tree(e, 0, 0, 0, 2*maxWeight) },
		"no number":       func(e *wire.Encoder) { tree(e, 0, 0, 0, float32(math.NaN())) },
	} {
		var e wire.Encoder
		write(&e)
		d := wire.NewDecoder(e.Buf, "", ErrContribution)
		if f := decodeForest(d, 2, 2); f != nil || !errors.Is(d.End(), ErrContribution) {
			t.Errorf("%s: %v", name, d.Err())
		}
	}
	var e wire.Encoder
	tree(&e, 0, 1, 0.5, maxWeight)
	d := wire.NewDecoder(e.Buf, "", ErrContribution)
	if f := decodeForest(d, 2, 2); f == nil || d.End() != nil {
		t.Errorf("a forest within the range: %v", d.Err())
	}
}

// tree appends a forest of one tree with one split.
func tree(e *wire.Encoder, leaf, feature int, threshold, weight float32) {
	e.Int(1)
	e.Int(6)
	encodeWeights(e, make([]float32, 2))
	e.Int(2)
	e.Int(leaf)
	e.Int(feature)
	e.Floats32([]float32{threshold})
	encodeWeights(e, []float32{0, 0, 0, weight})
}

// twoClasses returns labels of x and y that one feature tells, and a maker of forests with one
// threshold at ½ and the weights w and −w of its first two classes below it and above.
func twoClasses() (*Labels, func(w float32, names ...string) *candidate) {
	rng := rand.New(rand.NewPCG(4, 4))
	l := &Labels{Classes: []string{"x", "y", "z"}, Known: []bool{true, true, false}}
	for range 100 {
		y := rng.IntN(2)
		l.Y, l.X = append(l.Y, y), append(l.X, float32(y)+float32(0.3*rng.NormFloat64()))
	}
	return l, func(w float32, names ...string) *candidate {
		f := model.NewForest(1, 2, len(names))
		f.Split(0, 0, 0, 0.5)
		f.LeafWeights(0, 0)[0], f.LeafWeights(0, 1)[1] = w, w
		return &candidate{Forest: Forest{Classes: names, Counts: []uint64{50, 50, 50}[:len(names)], Forest: f}}
	}
}

// The test of own labels takes a forest that knows them, and refuses one that contradicts
// them, is wrong by much or is random; it says nothing about classes that are not known on
// both sides.
func TestForestTrust(t *testing.T) {
	l, threshold := twoClasses()
	for name, c := range map[string]struct {
		f      *candidate
		tested bool
		low    float64
		high   float64
	}{
		"right":       {threshold(2, "x", "y"), true, 5, 1e3},
		"wrong":       {threshold(-2, "x", "y"), true, -1e3, -5},
		"huge":        {threshold(9000, "y", "x"), true, -1e3, -5},
		"other order": {threshold(2, "y", "x"), true, -1e3, -5},
		"more":        {threshold(2, "x", "y", "z"), true, 5, 1e3},
		"one class":   {threshold(2, "x", "w"), false, 0, 0},
	} {
		l.test(c.f, 1)
		if c.f.tested != c.tested || c.f.trust < c.low || c.f.trust > c.high {
			t.Errorf("%s: trust %g, tested %v", name, c.f.trust, c.f.tested)
		}
		if bad := c.high < 0; c.f.misleads(DefaultTrust) != bad || c.f.skilled() != (c.tested && !bad) {
			t.Errorf("%s: skill %g, misleads %v", name, c.f.skill, c.f.misleads(DefaultTrust))
		}
	}
	// By the textbook, for the right one: the log odds are ±2.
	var gains, scores moments
	var counts [2]float64
	for _, y := range l.Y {
		counts[y]++
	}
	for i, y := range l.Y {
		odds := 2. // of the label
		if (l.X[i] > 0.5) != (y == 1) {
			odds = -2
		}
		gains.add(-math.Log(1+math.Exp(-odds)) - math.Log(counts[y]/100))
		scores.add(odds * counts[1-y] / 100) // log p(y) − π log p(y) − (1 − π)·log p(other)
	}
	f := threshold(2, "x", "y")
	if l.test(f, 1); math.Abs(f.trust/gains.inErrors()-1) > 1e-9 || math.Abs(f.skill/scores.inErrors()-1) > 1e-9 {
		t.Errorf("trust %g, want %g; skill %g, want %g", f.trust, gains.inErrors(), f.skill, scores.inErrors())
	}
	squared := threshold(1, "x", "y") // half of the log odds
	if l.test(squared, 2); math.Abs(squared.trust/f.trust-1) > 1e-9 || math.Abs(squared.skill/f.skill-1) > 1e-9 {
		t.Errorf("to the power of 2: trust %g, want %g; skill %g, want %g", squared.trust, f.trust, squared.skill, f.skill)
	}
	short := *l
	short.Y = l.Y[:MinWindow-1]
	short.X = l.X[:MinWindow-1]
	few := threshold(2, "x", "y")
	if short.test(few, 1); few.tested {
		t.Error("tested by few labels")
	}
}

// moments are sums of numbers and of their squares.
type moments struct{ n, sum, squares float64 }

func (m *moments) add(v float64) { m.n, m.sum, m.squares = m.n+1, m.sum+v, m.squares+v*v }

// inErrors is the mean in its standard errors.
func (m *moments) inErrors() float64 {
	mean := m.sum / m.n
	return mean / math.Sqrt((m.squares/m.n-mean*mean)/(m.n-1))
}

// The skill of a forest does not depend on how sure it is. One that is far too sure has less trust
// than none, and does not mislead; one of labels that go with no feature does.
func TestForestSkill(t *testing.T) {
	l, threshold := twoClasses()
	sure, timid := threshold(60, "x", "y"), threshold(0.01, "x", "y")
	for i := range 20 { // labels are wrong
		l.Y[i] = 1 - l.Y[i]
	}
	l.test(sure, 1)
	l.test(timid, 1)
	if sure.trust > DefaultTrust || !sure.skilled() || sure.misleads(DefaultTrust) || math.Abs(sure.skill-timid.skill) > 0.5 {
		t.Errorf("trust %g and skill %g of a forest that is too sure, skill %g of a timid one", sure.trust, sure.skill, timid.skill)
	}
	r := Receiver{Trust: DefaultTrust, Window: &Window{Classes: l.Classes, Known: l.Known}}
	c := &Contribution{Header: Header{Classes: []string{"x", "y"}, Counts: []uint64{MinKnown, MinKnown}}}
	if r.least(c, sure) != DefaultTrust-allowance || r.least(c, nil) != DefaultTrust {
		t.Errorf("least trust %g with a forest of skill, %g without one", r.least(c, sure), r.least(c, nil))
	}
	rng := rand.New(rand.NewPCG(5, 5))
	for i := range l.Y {
		l.Y[i] = rng.IntN(2)
	}
	random := threshold(3, "x", "y")
	if l.test(random, 1); !random.misleads(DefaultTrust) || random.misleads(math.Inf(-1)) {
		t.Errorf("trust %g and skill %g of a forest that knows nothing", random.trust, random.skill)
	}
}

// How far another forest must be ahead depends on what a forest gains.
func TestOutdoneByLag(t *testing.T) {
	for _, c := range []struct {
		trust, lag float64
		want       bool
	}{{-0.1, 4.1, true}, {-0.1, 3.9, false}, {1.9, 7.9, false}, {1.9, 8.1, true}, {2.1, 25, false}} {
		f := candidate{trust: c.trust, lag: c.lag, skill: 5, tested: true}
		if got := f.outdone(DefaultTrust); got != c.want {
			t.Errorf("trust %g, lag %g: %v, want %v", c.trust, c.lag, got, c.want)
		}
		if f.tested = false; f.outdone(DefaultTrust) {
			t.Errorf("trust %g, lag %g: outdone without a test", c.trust, c.lag)
		}
	}
}

// A forest that knows one of four groups of samples by chance has skill, and is outdone by one that
// knows all; without the other it is not, nor is one that is as good.
func TestForestIsOutdone(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	l := &Labels{Classes: []string{"w", "x", "y", "z"}, Known: []bool{true, true, true, true}}
	for range 100 {
		y := rng.IntN(4)
		l.Y, l.X = append(l.Y, y), append(l.X, float32(y)+float32(0.1*rng.NormFloat64()))
	}
	knows := func(groups ...int) *candidate { // the class of each group
		f := model.NewForest(1, 4, 4)
		for i := range 3 {
			f.Split(0, uint8(i), 0, float32(i)+0.5)
		}
		for x, k := range groups {
			f.LeafWeights(0, f.Leaf(0, []float32{float32(x)}))[k] = 3
		}
		return &candidate{Forest: Forest{Classes: l.Classes, Counts: []uint64{50, 50, 50, 50}, Forest: f}}
	}
	right, same, chance := knows(0, 1, 2, 3), knows(0, 1, 2, 3), knows(0, 1, 3, 2)
	all := []*candidate{nil, chance, right, same}
	for _, c := range all[1:] {
		l.test(c, 1)
	}
	compareSkills(all)
	if chance.trust > 0 || chance.misleads(DefaultTrust) || !chance.outdone(DefaultTrust) || chance.outdone(math.Inf(-1)) {
		t.Errorf("by chance: trust %g, skill %g, lag %g", chance.trust, chance.skill, chance.lag)
	}
	if right.outdone(DefaultTrust) || same.lag != 0 || right.lag != 0 {
		t.Errorf("lags of equals: %g and %g", right.lag, same.lag)
	}
	var share [4]float64
	for _, y := range l.Y {
		share[y] += 0.01
	}
	var ahead moments
	for _, y := range l.Y { // the weight 3 is that of the right class, or of the other one of two
		ahead.add([]float64{0, 0, 3 * (1 - share[2] + share[3]), 3 * (1 - share[3] + share[2])}[y])
	}
	if math.Abs(chance.lag/ahead.inErrors()-1) > 1e-9 {
		t.Errorf("lag %g, want %g", chance.lag, ahead.inErrors())
	}
	compareSkills(all[:2])
	if chance.outdone(DefaultTrust) {
		t.Error("outdone by itself")
	}
	l.Known[3] = false // scores of fewer labels than the other has
	fewer := knows(0, 1, 3, 2)
	l.test(fewer, 1)
	if compareSkills([]*candidate{right, fewer}); !(fewer.lag > 0) {
		t.Errorf("lag %g by the labels of three classes", fewer.lag)
	}
}

// FuzzForest: bytes decode to a forest that is encoded to the same bytes, or are refused.
func FuzzForest(f *testing.F) {
	var e wire.Encoder
	encodeForest(&e, Select(grown(1, 3, 2), centred, []int{0, 1, 2}))
	f.Add(e.Buf)
	f.Fuzz(func(t *testing.T, data []byte) {
		d := wire.NewDecoder(data, "", ErrContribution)
		got := decodeForest(d, 3, 2)
		if d.End() != nil {
			return
		}
		var again wire.Encoder
		encodeForest(&again, got)
		d = wire.NewDecoder(again.Buf, "", ErrContribution)
		if second := decodeForest(d, 3, 2); d.End() != nil || !slices.Equal(second.Nodes, got.Nodes) || !slices.Equal(second.Used, got.Used) {
			t.Errorf("another forest after encoding: %v", d.Err())
		}
	})
}

// A merge names the forests that the receiver has, in their places among those that it brings.
func TestKeptForests(t *testing.T) {
	set, r := NewSet(0), receiver(t, 5)
	for i, name := range []string{"a", "b", "c", "d"} {
		c, _ := member(t, name, uint64(i+1), 4, Bfloat16, "x", "y")
		c.SetForest(Select(grown(uint64(i), 2, 2), centred, []int{0, 1}))
		set.Put(c)
	}
	m, err := r.Merge(set)
	if err != nil || len(m.Forests) != 4 {
		t.Fatalf("%v: %d forests", err, len(m.Forests))
	}
	for _, kept := range [][]int{{0}, {3}, {1, 2}, {0, 1, 2, 3}} {
		some := *m
		some.Forests = slices.Clone(m.Forests)
		for _, i := range kept {
			some.Forests[i] = Forest{Member: m.Forests[i].Member, N: m.Forests[i].N}
		}
		encoded := bits(&some)
		got, err := DecodeMerge(encoded)
		if err != nil || len(got.Forests) != 4 || !bytes.Equal(bits(got), encoded) {
			t.Fatalf("%v kept: %v, another merge after decoding", kept, err)
		}
		for i, f := range got.Forests {
			if f.Member != m.Forests[i].Member || f.N != m.Forests[i].N || (f.Forest == nil) != slices.Contains(kept, i) {
				t.Errorf("%v kept: forest %d is of %q with %d labels", kept, i, f.Member, f.N)
			}
		}
		refusesDamage(t, encoded, DecodeMerge, ErrMerge)
	}
}

// A threshold in a message is rounded by its distance to the mean, whatever the unit and the
// offset of the feature are.
func TestShortThresholds(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, c := range []struct{ mean, sd float64 }{{0, 1}, {101325, 40}, {-3, 1e-6}, {5e9, 1e9}, {1e-30, 1e-31}, {0, 1e-41}} {
		digits := 0
		for range 1000 {
			v := float32(c.mean + c.sd*rng.NormFloat64())
			got := short(v, c.mean)
			if limit := min(math.Abs(float64(v)), math.Abs(float64(v)-c.mean)) / (1 << 12); math.Abs(float64(got)-float64(v)) > limit {
				t.Fatalf("short(%g, %g) = %g, further than %g", v, c.mean, got, limit)
			}
			for mantissa, _ := math.Frexp(float64(got)); mantissa != 0; mantissa = math.Mod(2*mantissa, 1) {
				digits++
			}
		}
		if want := 13 + max(0, math.Log2(math.Abs(c.mean/c.sd))); c.sd > 1e-37 && float64(digits)/1000 > want {
			t.Errorf("mean %g, standard deviation %g: %.1f binary digits, at most %.1f expected", c.mean, c.sd, float64(digits)/1000, want)
		}
	}
	for _, v := range []float32{0, 1, math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32} {
		for _, mean := range []float64{0, float64(v), -1e300} {
			if got := short(v, mean); got-got != 0 || float64(v) == mean && got != v {
				t.Errorf("short(%g, %g) = %g", v, mean, got)
			}
		}
	}
}
