package online

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model"
	"edge/test/golden"
)

// cells labels points of a plane by the cell of a checkerboard.
func cells(l *Learner, rng *rand.Rand, n int) {
	for range n {
		x := []float64{3 * rng.Float64(), 3 * rng.Float64()}
		label := "a"
		if (int(x[0])+int(x[1]))%2 == 1 {
			label = "b"
		}
		l.Add(&Event{Kind: Observe, X: x, Label: label})
	}
}

// cellsConfig is of a model that learns two classes without an order.
func cellsConfig(size ForestSize) Config {
	cfg := testConfig(2, "a", "b")
	cfg.Experts.Forest = size
	return cfg
}

// forestWeights are the weights of the forest that predicts.
func forestWeights(l *Learner) []float32 { return slices.Clone(l.view.Pool.Stack.Forest.Weights) }

// The forest learns what the Gaussian process cannot; restored, it carries on in the
// same bytes.
func TestForestLearnsCells(t *testing.T) {
	scores := map[ForestSize]float64{}
	for _, size := range []ForestSize{FullForest, SmallForest, NoForest} {
		cfg := cellsConfig(size)
		l, rng := newTestLearner(t, cfg), rand.New(rand.NewPCG(1, 1))
		cells(l, rng, 2003)
		scores[size] = l.Scores().Window.NLL
		data, _ := l.AppendBinary(nil)
		again, err := Restore(cfg, data)
		if err != nil {
			t.Fatal(err)
		}
		rng, same := rand.New(rand.NewPCG(2, 2)), rand.New(rand.NewPCG(2, 2))
		cells(l, rng, 101)
		cells(again, same, 101)
		if l.Digest() != again.Digest() {
			t.Errorf("forest %s: the restored learner carries on in another way", size)
		}
		checkSound(t, l)
	}
	if !(scores[FullForest] < 0.5*scores[NoForest] && scores[SmallForest] < 0.6*scores[NoForest]) {
		t.Errorf("log loss over the last 500 samples: %v", scores)
	}
}

// A state is carried on under another size of the forest, which then begins empty with
// the exponent 0, and without a forest.
func TestForestOfAnotherSize(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	l := newTestLearner(t, cellsConfig(FullForest))
	cells(l, rng, 1200)
	data, _ := l.AppendBinary(nil)
	was, at := l.view.Pool.Stack.Plain.Exponents, len(l.cfg.Horizons)+1
	for _, size := range []ForestSize{SmallForest, NoForest} {
		again, err := Restore(cellsConfig(size), data)
		if err != nil {
			t.Fatal(err)
		}
		now := again.view.Pool.Stack.Plain.Exponents
		for h := range again.cfg.Horizons {
			if want := was[h] + was[at]/float64(len(again.cfg.Horizons)); math.Abs(now[h]-want) > 1e-12 {
				t.Errorf("%s: exponent of horizon %d is %v, want %v", size, h, now[h], want)
			}
		}
		if f := again.view.Pool.Stack.Forest; size == NoForest && f != nil || size == SmallForest && (now[at] != 0 || slices.Max(f.Weights) > 0) {
			t.Errorf("%s: exponents %v, and a forest that does not begin empty", size, now)
		}
		other, _ := again.AppendBinary(nil)
		cells(again, rng, 200)
		checkSound(t, again)
		back, err := Restore(cellsConfig(FullForest), other)
		if err != nil {
			t.Fatal(err)
		}
		cells(back, rng, 200)
		checkSound(t, back)
	}
}

// A reader without the model's configuration has the forest of the state.
func TestForestWithoutConfiguration(t *testing.T) {
	for _, size := range []ForestSize{FullForest, SmallForest, NoForest} {
		l := newTestLearner(t, cellsConfig(size))
		cells(l, rand.New(rand.NewPCG(4, 4)), 300)
		data, _ := l.AppendBinary(nil)
		cfg, err := ConfigOfShape(l.cfg.Shape())
		if err != nil {
			t.Fatal(err)
		}
		reader, err := Restore(cfg, data)
		if err != nil {
			t.Fatal(err)
		}
		if reader.Digest() != l.Digest() || reader.cfg.EncodedSize(2) != l.cfg.EncodedSize(2) {
			t.Errorf("forest %s: read as %q with another digest, or size %d instead of %d", size, reader.cfg.Experts.Forest,
				reader.cfg.EncodedSize(2), l.cfg.EncodedSize(2))
		}
	}
}

// The forest learns a minibatch whose step is refused, as the counts of the classes and
// the chain do: its samples are sound.
func TestForestLearnsRefusedStep(t *testing.T) {
	l := newTestLearner(t, cellsConfig(FullForest))
	cells(l, rand.New(rand.NewPCG(5, 5)), 300)
	l.Add(&Event{Kind: Boundary})
	before := forestWeights(l)
	l.Posterior() // the step works on copies
	l.bank.Own()
	l.view.Bases[0].Noise = math.NaN() // then no site is a number
	l.batch.add([]float64{0.5, 0.5}, 0, 1, 1)
	l.batch.ll = append(l.batch.ll, -1, -2, -3)
	var out Outcome
	if l.flush(&out); out.Refused == nil {
		t.Fatal("the step was not refused")
	}
	if slices.Equal(before, forestWeights(l)) {
		t.Error("the forest has not learnt the sample")
	}
	checkSound(t, l)
}

// A corrected sample is stored with its right label alone.
func TestForestCorrection(t *testing.T) {
	l := newTestLearner(t, cellsConfig(FullForest))
	cells(l, rand.New(rand.NewPCG(6, 6)), 200)
	x := []float64{0.5, math.NaN()}
	for _, ev := range []Event{{Kind: Observe, X: x, Label: "b"}, {Kind: Correct, X: x, Label: "a", Name: "b"}} {
		if out := l.Add(&ev); out.Refused != nil {
			t.Fatal(out.Refused)
		}
	}
	if _, stored := l.forest.Latest(1000); len(stored) != 201 {
		t.Errorf("%d samples are stored, want 201", len(stored))
	}
}

// The state of a model with a full forest by its formula, and beside one without.
func TestForestSize(t *testing.T) {
	for name, c := range map[string]struct {
		classes, features int
		most              float64 // times the state without a forest
	}{"small": {6, 33, 3}, "wide": {10, 784, 3}, "many classes": {40, 21, 3}} {
		cfg := DefaultConfig()
		for j := range c.features {
			cfg.Features = append(cfg.Features, string(rune('A'+j)))
		}
		with := cfg.EncodedSize(c.classes)
		cfg.Experts.Forest = NoForest
		if ratio := float64(with) / float64(cfg.EncodedSize(c.classes)); ratio > c.most {
			t.Errorf("%s: %.2f times the state without a forest", name, ratio)
		} else {
			t.Logf("%s: %d bytes, %.2f times the state without a forest", name, with, ratio)
		}
	}
	l := newTestLearner(t, cellsConfig(FullForest))
	rng := rand.New(rand.NewPCG(7, 7))
	for range 8000 {
		label := "a"
		if rng.IntN(2) == 1 {
			label = "b" // every leaf is split
		}
		l.Add(&Event{Kind: Observe, X: []float64{rng.Float64(), rng.Float64()}, Label: label})
	}
	var got float64
	for _, part := range l.StateSize() {
		if part.Name == "model" || part.Name == "regression" || part.Name == "forest" {
			got += float64(part.Bytes)
		}
	}
	if want := float64(l.cfg.EncodedSize(2)); math.Abs(got/want-1) > 0.05 {
		t.Errorf("the parts of the formula take %v bytes, it has %v: %+v", got, want, l.StateSize())
	}
}

// The memory for a state has room for the ranks of the scaling, which are a large part of it
// where features are many.
func TestSizeWithRanks(t *testing.T) {
	l := taught(t, fleetConfig(), 1, 300, "c0", "c1")
	l.view.Scale.Ranks = nil
	bytes, size := len(stateOf(l)), l.encodedSize()
	l.view.Scale.Ranks = make([]float64, model.RankPoints*len(l.cfg.Features))
	if more, room := len(stateOf(l))-bytes, l.encodedSize()-size; room < 8*len(l.view.Scale.Ranks) || more < room {
		t.Errorf("ranks take %d bytes more of a state, and get room for %d", more, room)
	}
}

// The regression is no expert where it is switched off, and begins again where it is
// switched on.
func TestRegressionOff(t *testing.T) {
	cfg := cellsConfig(NoForest)
	cfg.Experts.Regression = Off
	l, rng := newTestLearner(t, cfg), rand.New(rand.NewPCG(8, 8))
	cells(l, rng, 300)
	at := len(cfg.Horizons)
	if s := l.view.Pool.Stack; len(s.Linear.W) > 0 || s.Plain.Exponents[at] != 0 {
		t.Errorf("%d weights, exponent %v", len(s.Linear.W), s.Plain.Exponents[at])
	}
	data, _ := l.AppendBinary(nil)
	again, err := Restore(cellsConfig(NoForest), data)
	if err != nil {
		t.Fatal(err)
	}
	cells(again, rng, 100)
	if len(again.view.Pool.Stack.Linear.W) == 0 {
		t.Error("the regression that was switched on has no weights")
	}
	data, _ = again.AppendBinary(nil)
	if l, err = Restore(cfg, data); err != nil || len(l.view.Pool.Stack.Linear.W) > 0 {
		t.Errorf("%v; the regression that was switched off has weights", err)
	}
	checkSound(t, l)
}

// Predictions of a batch are those of single ones, with missing features too.
func TestForestBatch(t *testing.T) {
	l := newTestLearner(t, cellsConfig(FullForest))
	cells(l, rand.New(rand.NewPCG(9, 9)), 500)
	p, one, all := l.Posterior(), model.NewWorkspace(), model.NewWorkspace()
	x := []float64{0.5, 0.5, 2.5, math.NaN(), 1.5, 0.5}
	if err := p.Load(x, 3, all); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		want, _, err := p.PredictTo(nil, x[2*i:2*i+2], one)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := p.AnswerTo(nil, i, 0, all)
		golden.Close(t, "probability", got, want, 1e-12)
	}
}
