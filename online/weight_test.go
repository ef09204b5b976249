package online

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// weightConfig learns sites alone, without the parts that count minibatches or samples,
// so that a sample of weight 2 and the sample twice are the same likelihood.
func weightConfig() Config {
	cfg := testConfig(3, "a", "b", "c")
	cfg.Horizons = []Horizon{Horizon(math.Inf(1))}
	cfg.LearningRate, cfg.Temporal, cfg.Window, cfg.Warmup = 0, TemporalOff, 400, 8
	return cfg
}

// gap is the largest difference of the answers of the Gaussian processes of two
// learners at some points, before the pool corrects them, which counts samples.
func gap(t *testing.T, a, b *Learner) (largest float64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, 3))
	for range 50 {
		x := blob(rng, 3).X
		for _, l := range []*Learner{a, b} {
			if _, _, err := l.Posterior().PredictTo(nil, x, &l.ws); err != nil {
				t.Fatal(err)
			}
		}
		for k, p := range a.ws.PerHorizon() {
			largest = max(largest, math.Abs(p-b.ws.PerHorizon()[k]))
		}
	}
	return largest
}

// A sample of weight 2 has the effect of the sample twice in one minibatch: the copies
// have the same cavity, and the sites add up. Learnt one after the other they differ
// by the effect of the order of samples on the approximation, which is far smaller
// than that of the weight.
func TestWeightTwoIsLearningTwice(t *testing.T) {
	cfg := weightConfig()
	cfg.Batch.MaxSize, cfg.Window = 10, 0 // a step refines older sites by their number, not their weight
	heavy, pair, sequel, plain := newTestLearner(t, cfg), newTestLearner(t, cfg), newTestLearner(t, cfg), newTestLearner(t, cfg)
	start := rand.New(rand.NewPCG(1, 1))
	for i := range 10 { // the same model to begin with
		ev := blob(start, 3)
		for _, l := range []*Learner{heavy, pair, sequel, plain} {
			if l.Add(&ev); i%5 == 4 {
				l.Add(&Event{Kind: Boundary})
			}
		}
	}
	rng := rand.New(rand.NewPCG(2, 2))
	for i := range 100 {
		ev := blob(rng, 3)
		plain.Add(&ev)
		for range 2 {
			pair.Add(&ev)
			sequel.Add(&ev)
			sequel.Add(&Event{Kind: Boundary})
		}
		ev.Weight = 2
		heavy.Add(&ev)
		if i%5 == 4 { // 5 of weight 2, as against 10
			heavy.Add(&Event{Kind: Boundary})
			plain.Add(&Event{Kind: Boundary})
		}
	}
	for _, l := range []*Learner{heavy, pair, sequel, plain} {
		l.Add(&Event{Kind: Boundary})
		checkSound(t, l)
	}
	same, near, far := gap(t, heavy, pair), gap(t, heavy, sequel), gap(t, heavy, plain)
	if same > 1e-9 {
		t.Errorf("probabilities of weight 2 and of learning twice at once differ by %g", same)
	}
	if near > far/3 {
		t.Errorf("probabilities differ by %g from learning twice in sequence, by %g from learning once", near, far)
	}
}

// A weight below 1 has an effect between none and that of weight 1, and it rises with
// the weight.
func TestSmallWeights(t *testing.T) {
	x := []float64{13, 10, 10}
	var last float64
	for i, w := range []float64{1e-6, 0.25, 0.5, 1, 3} {
		l := newTestLearner(t, weightConfig())
		feed(l, rand.New(rand.NewPCG(1, 1)), 20)
		for range 20 {
			l.Add(&Event{Kind: Observe, X: x, Label: "b", Weight: w})
		}
		probs, _, _ := l.Posterior().PredictTo(nil, x, &l.ws)
		if i > 0 && probs[1] <= last {
			t.Errorf("weight %v: P(b) = %v, not above %v", w, probs[1], last)
		}
		last = probs[1]
		checkSound(t, l)
	}
}

func TestClassWeights(t *testing.T) {
	cfg := testConfig(3, "a", "b", "c")
	cfg.ClassWeights = ClassWeights{Mode: Balanced, Max: 4}
	l := newTestLearner(t, cfg)
	l.view.N, l.view.Counts = 97, []uint64{90, 7, 0}
	for k, want := range []float64{100.0 / (3 * 91), 4, 4} {
		if got := l.weightOf(&Event{}, k); math.Abs(got-want) > 1e-12 {
			t.Errorf("class %d weighs %v, want %v", k, got, want)
		}
	}
	if got := l.weightOf(&Event{Weight: 0.5}, 1); got != 2 {
		t.Errorf("half a sample of weight 4 weighs %v", got)
	}
	if got := l.weightOf(&Event{Weight: MaxWeight}, 1); got != MaxWeight {
		t.Errorf("weight %v, want at most %v", got, MaxWeight)
	}
	for _, w := range []float64{-1, math.NaN(), math.Inf(1), MaxWeight + 1} {
		if out := l.Add(&Event{Kind: Observe, X: []float64{1, 2, 3}, Label: "a", Weight: w}); !errors.Is(out.Refused, ErrWeight) {
			t.Errorf("weight %v gave %v", w, out.Refused)
		}
	}
}

// Weights are kept with their samples, in the window and in both buffers.
func TestWeightsCarryOnExactly(t *testing.T) {
	cfg := testConfig(3)
	cfg.ClassWeights.Mode = Balanced
	straight, broken := newTestLearner(t, cfg), newTestLearner(t, cfg)
	rng := rand.New(rand.NewPCG(5, 5))
	for i := range 300 {
		ev := blob(rng, 3)
		ev.Weight = []float64{0, 0.3, 1, 7}[rng.IntN(4)]
		straight.Add(&ev)
		broken.Add(&ev)
		if i%7 == 0 || i < 40 {
			state, _ := broken.AppendBinary(nil)
			var err error
			if broken, err = Restore(cfg, state); err != nil {
				t.Fatal(err)
			}
		}
		if straight.Digest() != broken.Digest() {
			t.Fatalf("digests differ after %d samples", i+1)
		}
	}
	checkSound(t, straight)
}

// On a stream with a rare class that overlaps a common one, class weights find
// more of the rare one.
func TestClassWeightsFindTheRare(t *testing.T) {
	balanced := func(mode Weighting) float64 {
		cfg := testConfig(2, "common", "rare")
		cfg.ClassWeights.Mode, cfg.Temporal = mode, TemporalOff
		l := newTestLearner(t, cfg)
		rng := rand.New(rand.NewPCG(6, 6))
		for range 4000 {
			ev := Event{Kind: Observe, X: []float64{rng.NormFloat64(), rng.NormFloat64()}, Label: "common"}
			if rng.IntN(20) == 0 {
				ev.X[0], ev.Label = ev.X[0]+2, "rare"
			}
			l.Add(&ev)
		}
		return float64(l.Scores().Balanced)
	}
	// The best balanced accuracy is Φ(1) = 0.841, that of the plain Bayes rule 0.65.
	if plain, weighed := balanced(Unweighted), balanced(Balanced); weighed < plain+0.1 || weighed < 0.8 {
		t.Errorf("balanced accuracy %v with class weights, %v without", weighed, plain)
	}
}

// A state with weights that a number of 32 bits cannot hold is read again.
func TestTinyWeightsCarryOn(t *testing.T) {
	for _, weight := range []float64{5e-324, 1e-60, 1e-46, 1e-30} {
		for _, mode := range []Weighting{Unweighted, Balanced} {
			cfg := testConfig(3)
			cfg.ClassWeights.Mode = mode
			l, rng := newTestLearner(t, cfg), rand.New(rand.NewPCG(1, 2))
			feed(l, rng, 60)
			for range 5 {
				ev := blob(rng, 3)
				ev.Weight = weight
				l.Add(&ev)
			}
			feed(l, rng, 5)
			if again, err := Restore(cfg, stateOf(l)); err != nil || again.Digest() != l.Digest() {
				t.Errorf("weight %g, %s: %v", weight, mode, err)
			}
		}
	}
}

// A correction of a weight that a sample may not have is refused.
func TestCorrectionOfAWrongWeight(t *testing.T) {
	for _, weight := range []float64{math.NaN(), -5, math.Inf(1), 2 * MaxWeight} {
		l, rng := newTestLearner(t, testConfig(3, "a", "b", "c")), rand.New(rand.NewPCG(1, 2))
		feed(l, rng, 60)
		before := l.Digest()
		out := l.Add(&Event{Kind: Correct, X: []float64{1, 2, 3}, Name: "a", Label: "b", Weight: weight})
		if !errors.Is(out.Refused, ErrWeight) || l.Digest() != before {
			t.Errorf("weight %g: %v", weight, out.Refused)
		}
	}
}
