package sep

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A step of a bank that has learnt for long has the rate of one that has not, times the larger of two
// factors: the weight of the horizons that forget, and the quotient of settledAfter and its labels.
func TestSettledKernelMovesLess(t *testing.T) {
	moved := func(labels uint64, weights ...float64) float64 {
		rng := rand.New(rand.NewPCG(7, 7))
		cfg := testConfig(3)
		cfg.Batch = 8
		b := newTestBank(t, cfg, rng)
		feed(t, b, rng, 1)
		b.view.N = labels
		copy(b.view.Weights, weights)
		before := b.params.LogEll()[0]
		feed(t, b, rng, 1)
		return math.Abs(b.params.LogEll()[0] - before)
	}
	for name, c := range map[string]struct {
		labels  uint64
		weights []float64 // of the horizons inf, 500 and 100
		want    float64
	}{
		"few labels":                 {settledAfter, []float64{1, 0, 0}, 1},
		"twice as many":              {2 * settledAfter, []float64{1, 0, 0}, 0.5},
		"ten times":                  {10 * settledAfter, []float64{1, 0, 0}, 0.1},
		"a part of it still forgets": {10 * settledAfter, []float64{0.7, 0.1, 0.2}, 0.3},
		"the stream has changed":     {10 * settledAfter, []float64{0, 0, 1}, 1},
	} {
		of := moved(1, c.weights...) // Adam's first step does not depend on the size of the gradient
		if got := moved(c.labels, c.weights...) / of; math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%s: a step moves the kernel %.6f times as far, want %g", name, got, c.want)
		}
	}
}

// The latent functions of a bank that has learnt for long come to vary at least ten times as much as
// their noise, by little in each step. Both parts of the quotient move alike.
func TestSettledSignalStays(t *testing.T) {
	b := newTestBank(t, testConfig(3), rand.New(rand.NewPCG(8, 8)))
	b.live = true
	for _, c := range []struct {
		labels             uint64
		steps              int
		amp, noise         float64
		wantAmp, wantNoise float64
	}{
		{settledAfter, 1, -3, 1, -3, 1},
		{settledAfter + 1, 1, -3, 1, -2.99, 0.99},
		{settledAfter + 1, 1000, -3, 1, -1 + math.Log(10)/2, -1 - math.Log(10)/2},
		{settledAfter + 1, 1, 1, -3, 1, -3},
	} {
		b.view.N = c.labels
		*b.params.LogAmp(), *b.params.LogNoise() = c.amp, c.noise
		for range c.steps {
			b.keepSignal()
		}
		if amp, noise := *b.params.LogAmp(), *b.params.LogNoise(); math.Abs(amp-c.wantAmp) > 1e-12 || math.Abs(noise-c.wantNoise) > 1e-12 {
			t.Errorf("%d labels, %d steps: variances exp(%g) and exp(%g) became exp(%g) and exp(%g), want exp(%g) and exp(%g)", c.labels, c.steps, c.amp, c.noise, amp, noise, c.wantAmp, c.wantNoise)
		}
	}
}
