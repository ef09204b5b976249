package forest

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model"
	"edge/online/wire"
)

// check reports places that are not those of the stored samples, and weights that are
// not finite.
func check(t *testing.T, l *Learner) {
	t.Helper()
	for tree := range l.cfg.Trees {
		for slot := range l.ring.n {
			if got, want := l.placesOf(tree)[slot], l.forest.Leaf(tree, l.ring.row(slot)); got != want {
				t.Fatalf("sample %d is noted in leaf %d of tree %d, is in %d", slot, got, tree, want)
			}
		}
	}
	for i, w := range l.forest.Weights {
		if w-w != 0 || !(l.squares[i] >= 0) {
			t.Fatalf("weight %v with squares %v", w, l.squares[i])
		}
	}
	if f := l.view.Pool.Stack.Forest; f != l.forest || f.Classes != len(l.view.Names) {
		t.Fatalf("the view has a forest of %d classes, not the learner's of %d", f.Classes, len(l.view.Names))
	}
}

// loss is the negative log probability of a sample's class.
func loss(l *Learner, x []float64, label int) float64 {
	raw, logs := make([]float32, len(x)), make([]float64, l.forest.Classes)
	model.RawTo(raw, x)
	l.forest.LogsTo(logs, raw)
	return -logs[label]
}

// A step against the derivative of the log loss by differences.
func TestStep(t *testing.T) {
	l := learner(Sizes{Trees: 3, Leaves: 6, Stored: 60})
	x, labels, weights := stream(rand.New(rand.NewPCG(1, 2)), 300)
	l.Learn(x, labels, weights)
	const h, weight = 0.01, 1.5
	row, label := []float64{0.3, -0.7, 0.2, 1, 7}, 1
	for tree := range 3 {
		raw := make([]float32, 5)
		model.RawTo(raw, row)
		leaf := l.forest.Leaf(tree, raw)
		before := slices.Clone(l.forest.Weights)
		squares := slices.Clone(l.squares)
		gradient := make([]float64, 3)
		for k := range gradient {
			w := &l.forest.LeafWeights(tree, leaf)[k]
			was := *w
			*w = was + h
			gradient[k] = loss(l, row, label)
			*w = was - h
			gradient[k] = weight * (gradient[k] - loss(l, row, label)) / (2 * h)
			*w = was
		}
		leaves := make([]uint8, 3)
		for i := range leaves {
			leaves[i] = l.forest.Leaf(i, raw)
		}
		l.step(leaves, label, weight)
		for i, w := range l.forest.Weights {
			want, square := float64(before[i]), float64(squares[i])
			if at := i / 3; at/6 == tree && uint8(at%6) == leaf {
				g := gradient[i%3]
				square = square*(1-1./memory) + g*g
				want -= rate * g / (math.Sqrt(square) + tiny)
			} else if uint8(at%6) == leaves[at/6] {
				continue
			}
			if math.Abs(float64(w)-want) > 1e-4 || math.Abs(float64(l.squares[i])-square) > 1e-4 {
				t.Errorf("tree %d, weight %d: %v with %v, want %v with %v", tree, i, w, l.squares[i], want, square)
			}
		}
	}
}

// Concepts that a smooth function of few points cannot represent.
func TestLearnsPartitions(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for name, c := range map[string]struct {
		label func(x []float64) bool
		most  float64 // error over the last quarter of 4000 samples
	}{
		"threshold":    {func(x []float64) bool { return x[1] > 0.3 }, 0.01},
		"parity":       {func(x []float64) bool { return x[0]*x[1]*x[2] > 0 }, 0.04},
		"checkerboard": {func(x []float64) bool { return int(math.Floor(2*x[0])+math.Floor(2*x[1]))%2 == 0 }, 0.04},
	} {
		t.Run(name, func(t *testing.T) {
			l := New(Config{Features: 3, Sizes: Sizes{50, 64, 1000}, Seed: 1}, &model.Posterior{Names: []string{"a", "b"}})
			wrong := 0
			for i := range 4000 {
				x, k := []float64{2*rng.Float64() - 1, 2*rng.Float64() - 1, 2*rng.Float64() - 1}, 0
				if c.label(x) {
					k = 1
				}
				if i >= 3000 && loss(l, x, k) > math.Ln2 {
					wrong++
				}
				l.Learn(x, []int{k}, []float64{1})
				l.view.N++
			}
			if e := float64(wrong) / 1000; e > c.most {
				t.Errorf("error %.3f, want at most %.3f", e, c.most)
			}
			check(t, l)
		})
	}
}

// moved adds 100 to all features.
func moved(x []float64) []float64 {
	x = slices.Clone(x)
	for i := range x {
		x[i] += 100
	}
	return x
}

// A stream that moves to another range, as by another sensor or unit: the leaves of full
// trees that no stored sample is in serve the new range. A learner that is restored meanwhile
// carries on in the same bytes, and with tuned weights their partitions stay those of the own ones.
func TestMoves(t *testing.T) {
	s := Sizes{Trees: 20, Leaves: 20, Stored: 200}
	for name, l := range map[string]*Learner{"alone": learner(s), "tuned": tunedLearner(s)} {
		x, labels, weights := stream(rand.New(rand.NewPCG(21, 1)), 3000)
		l.Learn(x[:5*1500], labels[:1500], weights[:1500])
		x = moved(x[5*1500:])
		labels, weights = labels[1500:], weights[1500:]
		again := learner(s)
		if err := decodeInto(again, encoded(l)); err != nil {
			t.Fatal(err)
		}
		again.view.Counts = l.view.Counts
		again.Among(l.members)
		for i := 0; i < 1200; i += 100 {
			for _, l := range []*Learner{l, again} {
				l.Share()
				snapshot := l.forest
				kept := snapshot.Clone()
				l.Learn(x[5*i:5*(i+100)], labels[i:i+100], weights[i:i+100])
				if check(t, l); name == "tuned" {
					checkTuned(t, l)
				}
				if !slices.Equal(snapshot.Nodes, kept.Nodes) || !slices.Equal(snapshot.Used, kept.Used) || !slices.Equal(snapshot.Weights, kept.Weights) {
					t.Fatalf("%s: the forest of a snapshot has changed", name)
				}
			}
			state := encoded(l)
			if !slices.Equal(state, encoded(again)) {
				t.Fatalf("%s: the restored learner has other bytes after %d samples", name, i+100)
			}
			if err := decodeInto(learner(s), state); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if name == "tuned" {
			continue // the mean of all forests is what it learns
		}
		var sum float64
		for i := 1200; i < 1500; i++ {
			sum += loss(l, x[5*i:5*(i+1)], labels[i]) / 300
		}
		if sum > 0.8 {
			t.Errorf("%s: log loss %.2f after the move, want at most 0.8", name, sum)
		}
	}
}

// A class that is added begins with weights of 0; one that is removed takes its weights
// and its samples along.
func TestClasses(t *testing.T) {
	l := learner(Sizes{Trees: 5, Leaves: 10, Stored: 80})
	rng := rand.New(rand.NewPCG(4, 4))
	x, labels, weights := stream(rng, 500)
	l.Learn(x, labels, weights)
	before, squares := slices.Clone(l.forest.Weights), slices.Clone(l.squares)
	l.view.Names = append(l.view.Names, "d")
	l.Grow()
	check(t, l)
	for i, w := range l.forest.Weights {
		if row, k := i/4, i%4; k == 3 && (w != 0 || l.squares[i] != 0) || k < 3 && (w != before[3*row+k] || l.squares[i] != squares[3*row+k]) {
			t.Fatalf("weight %d of row %d is %v with %v", k, row, w, l.squares[i])
		}
	}
	for i := range labels[:200] {
		labels[i] = (labels[i] + i) % 4
	}
	l.Learn(x[:200*5], labels[:200], weights[:200])
	before = slices.Clone(l.forest.Weights)
	stored, of := 0, [4]int{}
	for _, k := range l.ring.label[:l.ring.n] {
		of[k]++
	}
	stored = l.ring.n - of[1]
	newest := slices.Clone(l.ring.row((l.ring.next - 1 + 80) % 80))
	l.view.Names = []string{"a", "c", "d"}
	l.DropClass(1, []int{0, -1, 1, 2})
	check(t, l)
	for i, w := range l.forest.Weights {
		if row, k := i/3, []int{0, 2, 3}[i%3]; w != before[4*row+k] {
			t.Fatalf("weight %d is %v, want %v", i, w, before[4*row+k])
		}
	}
	if l.ring.n != stored || l.ring.next != stored || labels[199] != 1 && !same(l.ring.row(stored-1), newest) {
		t.Errorf("%d samples, the next is %d, want %d with the newest at the end", l.ring.n, l.ring.next, stored)
	}
	for _, g := range l.growth {
		if g.class >= 3 {
			t.Errorf("a leaf has samples of class %d", g.class)
		}
	}
	l.Learn(x[200*5:], slices.Repeat([]int{0, 1, 2}, 100), weights[200:])
	check(t, l)
}

// A wrong label leaves the stored samples; the others keep their order.
func TestForget(t *testing.T) {
	for _, n := range []int{30, 130} { // the ring is not full, and has begun again
		l := learner(Sizes{Trees: 3, Leaves: 8, Stored: 50})
		x, labels, weights := stream(rand.New(rand.NewPCG(5, 5)), n)
		l.Learn(x, labels, weights)
		at, had := n-7, l.ring.n
		wrong, oldest := slices.Clone(x[at*5:(at+1)*5]), make([]float32, 5)
		model.RawTo(oldest, x[(n-had)*5:(n-had+1)*5])
		l.Forget(wrong, (labels[at]+1)%3)
		if l.ring.n != had {
			t.Errorf("%d samples after another label was wrong, want %d", l.ring.n, had)
		}
		l.Forget(wrong, labels[at])
		if l.ring.n != had-1 || !same(l.ring.row(0), oldest) {
			t.Errorf("%d samples, want %d and the oldest first", l.ring.n, had-1)
		}
		check(t, l)
		l.Learn(x, labels, weights)
		check(t, l)
	}
}

// The latest samples are those that were learnt last, in their order.
func TestLatest(t *testing.T) {
	l := learner(Sizes{Trees: 3, Leaves: 8, Stored: 50})
	x, labels, weights := stream(rand.New(rand.NewPCG(5, 5)), 130)
	l.Learn(x, labels, weights)
	for n, want := range map[int]int{0: 0, 7: 7, 50: 50, 60: 50} {
		rows, classes := l.Latest(n)
		raw := make([]float32, 5*want)
		for i := range want {
			model.RawTo(raw[5*i:5*(i+1)], x[5*(130-want+i):5*(131-want+i)])
		}
		if !slices.Equal(classes, labels[130-want:]) || !same(rows, raw) || len(rows) != len(raw) {
			t.Errorf("the latest %d samples have classes %v, want %v", n, classes, labels[130-want:])
		}
	}
}

// The latest samples leave the stored ones, all of them if there are fewer.
func TestForgetLatest(t *testing.T) {
	for _, n := range []int{30, 130} {
		l := learner(Sizes{Trees: 3, Leaves: 8, Stored: 50})
		x, labels, weights := stream(rand.New(rand.NewPCG(5, 5)), n)
		l.Learn(x, labels, weights)
		had, before := l.ring.n, make([]float32, 5)
		model.RawTo(before, x[(n-8)*5:(n-7)*5])
		l.ForgetLatest(7)
		if l.ring.n != had-7 || !same(l.ring.row(l.ring.latest(1)), before) {
			t.Errorf("%d samples, want %d and the eighth latest at the end", l.ring.n, had-7)
		}
		check(t, l)
		l.ForgetLatest(100)
		if l.ring.n != 0 {
			t.Errorf("%d samples, want none", l.ring.n)
		}
		l.Learn(x, labels, weights)
		check(t, l)
	}
}

// A snapshot's forest does not change when the learner carries on.
func TestShare(t *testing.T) {
	l := learner(Sizes{Trees: 3, Leaves: 8, Stored: 50})
	x, labels, weights := stream(rand.New(rand.NewPCG(6, 6)), 300)
	l.Learn(x, labels, weights)
	snapshot, kept := l.view.Pool.Stack.Forest, l.forest.Clone()
	for _, change := range []func(){
		func() { l.Learn(x, labels, weights) },
		func() { l.view.Names = append(l.view.Names, "d"); l.Grow() },
		func() { l.view.Names = l.view.Names[:3]; l.DropClass(3, []int{0, 1, 2, -1}) },
	} {
		l.Share()
		change()
		check(t, l)
	}
	if !slices.Equal(snapshot.Weights, kept.Weights) || !slices.Equal(snapshot.Nodes, kept.Nodes) ||
		!slices.Equal(snapshot.Used, kept.Used) || !slices.Equal(snapshot.Bias, kept.Bias) {
		t.Error("the forest of a snapshot has changed")
	}
	owned := l.forest
	if l.Learn(x, labels, weights); l.forest != owned {
		t.Error("a forest that no snapshot shares was copied")
	}
}

func TestLearnDoesNotAllocate(t *testing.T) {
	s := Sizes{Trees: 20, Leaves: 60, Stored: 400}
	x, labels, weights := stream(rand.New(rand.NewPCG(7, 7)), 500)
	for name, l := range map[string]*Learner{"alone": learner(s), "tuned": tunedLearner(s)} {
		if n := testing.AllocsPerRun(5, func() { l.Learn(x, labels, weights) }); n > 0 {
			t.Errorf("%s: %v allocations by 500 samples", name, n)
		}
	}
}

// A nil learner is a forest that does not exist.
func TestNone(t *testing.T) {
	var l *Learner
	l.Learn([]float64{1}, []int{0}, []float64{1})
	l.Grow()
	l.DropClass(0, []int{-1, 0})
	l.Forget([]float64{1}, 0)
	l.ForgetLatest(1)
	l.Share()
	l.Tune(nil)
	l.Among(nil)
	var e wire.Encoder
	if l.Encode(&e); len(e.Buf) > 0 {
		t.Errorf("%d bytes", len(e.Buf))
	}
}

func encoded(l *Learner) []byte {
	var e wire.Encoder
	l.Encode(&e)
	return e.Buf
}

// decoded reads a state of these sizes.
func decoded(data []byte, s Sizes) (*Learner, error) {
	l := learner(s)
	return l, decodeInto(l, data)
}

// decodeInto reads a state of the sizes of a learner.
func decodeInto(l *Learner, data []byte) error {
	d := wire.NewDecoder(data, "", wire.ErrState)
	if got := DecodeSizes(d); got != l.cfg.Sizes {
		d.Fail("sizes are %+v, want %+v", got, l.cfg.Sizes)
	}
	l.Decode(d)
	return d.End()
}

// A restored learner carries on in the same bytes, from any moment.
func TestEncode(t *testing.T) {
	s := Sizes{Trees: 4, Leaves: 20, Stored: 70}
	x, labels, weights := stream(rand.New(rand.NewPCG(8, 8)), 600)
	straight, broken := learner(s), learner(s)
	for i, label := range labels {
		row := x[i*5 : (i+1)*5]
		straight.Learn(row, []int{label}, weights[i:i+1])
		broken.Learn(row, []int{label}, weights[i:i+1])
		if i%23 > 0 {
			continue
		}
		var err error
		if broken, err = decoded(encoded(broken), s); err != nil {
			t.Fatal(err)
		}
		check(t, broken)
		if !slices.Equal(encoded(broken), encoded(straight)) {
			t.Fatalf("after %d samples: the restored learner has other bytes", i+1)
		}
	}
}

// The size of a full state by its formula, but for numbers of two bytes.
func TestBytes(t *testing.T) {
	s := Sizes{Trees: 10, Leaves: 64, Stored: 500}
	l := learner(s)
	x, labels, weights := stream(rand.New(rand.NewPCG(9, 9)), 6000)
	for i := range labels {
		labels[i] = (labels[i] + i%2) % 3 // no leaf is pure
	}
	l.Learn(x, labels, weights)
	got, want := float64(len(encoded(l))), float64(s.Bytes(5, 3))
	if math.Abs(got/want-1) > 0.02 {
		t.Errorf("%v bytes, the formula has %v", got, want)
	}
}

// States that are damaged are refused.
func TestDecodeRefuses(t *testing.T) {
	s := Sizes{Trees: 2, Leaves: 8, Stored: 40}
	x, labels, weights := stream(rand.New(rand.NewPCG(10, 10)), 300)
	for name, spoil := range map[string]func(l *Learner){
		"weight":    func(l *Learner) { l.forest.Weights[4] = float32(math.Inf(1)) },
		"bias":      func(l *Learner) { l.forest.Bias[0] = float32(math.NaN()) },
		"square":    func(l *Learner) { l.squares[3] = -1 },
		"threshold": func(l *Learner) { l.forest.Nodes[0].Threshold = float32(math.NaN()) },
		"feature":   func(l *Learner) { l.forest.Nodes[0].Feature = 5 },
		"cycle":     func(l *Learner) { l.forest.Nodes[1].Branch[0] = 0 },
		"twice":     func(l *Learner) { l.forest.Nodes[0].Branch[0] = l.forest.Nodes[0].Branch[1] },
		"class":     func(l *Learner) { l.growth[0].class = 3 },
		"stored":    func(l *Learner) { l.ring.x[7] = float32(math.Inf(-1)) },
		"weights":   func(l *Learner) { l.ring.weight[7] = -1 },
		"label":     func(l *Learner) { l.ring.label[7] = 3 },
		"next":      func(l *Learner) { l.ring.next = 40 },

		"tuned weight": func(l *Learner) { l.tuned.forest.Weights[0] = float32(math.NaN()) },
		"tuned base":   func(l *Learner) { l.tuned.base[0] = float32(math.Inf(1)) },
		"tuned bias":   func(l *Learner) { l.tuned.biasBase[1] = float32(math.Inf(-1)) },
		"tuned square": func(l *Learner) { l.tuned.squares[0] = -1 },
	} {
		l := tunedLearner(s)
		l.Learn(x, labels, weights)
		if _, err := decoded(encoded(l), s); err != nil {
			t.Fatal(err)
		}
		spoil(l)
		if _, err := decoded(encoded(l), s); !errors.Is(err, wire.ErrState) {
			t.Errorf("%s: %v, want %v", name, err, wire.ErrState)
		}
	}
}

// A state that is accepted can be used, and has the bytes that were read.
func FuzzDecode(f *testing.F) {
	s := Sizes{Trees: 2, Leaves: 6, Stored: 20}
	x, labels, weights := stream(rand.New(rand.NewPCG(11, 11)), 100)
	for _, n := range []int{0, 5, 100} {
		l := learner(s)
		l.Learn(x[:5*n], labels[:n], weights[:n])
		f.Add(encoded(l))
	}
	f.Add(encoded(tunedLearner(s)))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := decoded(data, s)
		if err != nil {
			if !errors.Is(err, wire.ErrState) {
				t.Errorf("refused with %v", err)
			}
			return
		}
		again, err := decoded(encoded(l), s)
		if err != nil || !slices.Equal(encoded(again), encoded(l)) {
			t.Fatalf("the second decoding: %v", err)
		}
		l.Learn(x, labels, weights)
		check(t, l)
	})
}
