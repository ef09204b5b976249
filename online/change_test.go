package online

import (
	"math"
	"math/rand/v2"
	"testing"
)

// waveSample draws a sample of three overlapping classes, each a random mixture of two of three
// triangular waves in 21 features with normal noise. The best possible error is 0.133.
//
// Source: Breiman, Friedman, Olshen & Stone (1984), "Classification and Regression Trees", section 2.6.1.
func waveSample(rng *rand.Rand, x []float64) (class int) {
	wave := func(k, i int) float64 { return max(6-math.Abs(float64(i-[]int{6, 14, 10}[k])), 0) }
	class = rng.IntN(3)
	pair, u := [][2]int{{0, 1}, {0, 2}, {1, 2}}[class], rng.Float64()
	for i := range x {
		x[i] = u*wave(pair[0], i) + (1-u)*wave(pair[1], i) + rng.NormFloat64()
	}
	return class
}

// A model that a stream has not changed for long learns a change as fast as a young one: the
// classes change places, and after 200 labels it predicts far better than chance.
func TestEndureChange(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Features, cfg.Classes.Names, cfg.Batch.MaxSize = testConfig(21).Features, []string{"a", "b", "c"}, 1
	l, rng, x := newTestLearner(t, cfg), rand.New(rand.NewPCG(1, 1)), make([]float64, 21)
	for range enduranceSamples(t, 4000) {
		k := waveSample(rng, x)
		l.Add(&Event{Kind: Observe, X: x, Label: cfg.Classes.Names[k]})
	}
	checkSound(t, l)
	at := 0
	for _, c := range []struct {
		to   int
		most float64 // log loss
	}{{100, 2}, {200, 1.2}, {400, 0.7}, {800, 0.6}, {1600, 0.5}} {
		var loss float64
		for range c.to - at {
			k := (waveSample(rng, x) + 1) % 3
			p, err := l.Predict(x)
			if err != nil {
				t.Fatal(err)
			}
			loss -= math.Log(max(p.Probs[k], 1e-6)) / float64(c.to-at)
			l.Add(&Event{Kind: Observe, X: x, Label: cfg.Classes.Names[k]})
		}
		t.Logf("labels %d to %d after the change: log loss %.3f", at, c.to, loss)
		if loss > c.most {
			t.Errorf("labels %d to %d after the change: log loss %.3f, want at most %g", at, c.to, loss, c.most)
		}
		at = c.to
	}
}
