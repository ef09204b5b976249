package sep

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The second of two steps with opposite gradients, by hand: the first moment is
// (β − 1)(1 − β) and is divided by 1 − β², the second one is 1 with its correction.
func TestAdamFollowsThePaper(t *testing.T) {
	for _, c := range []struct {
		beta, want float64 // decay; parameter after both steps of rate 1
		step       func(a *Adam, theta, grad []float64)
	}{
		{0.9, 1 - 0.01/0.19, func(a *Adam, theta, grad []float64) { a.Ascend(theta, grad, 1) }},
		{0.7, 1 - 0.09/0.51, func(a *Adam, theta, grad []float64) {
			a.ascend(theta, grad, 0, len(theta), a.begin(1, liveBeta1, 1-liveBeta1))
		}},
	} {
		a, theta := NewAdam(1), []float64{0}
		c.step(&a, theta, []float64{1})
		c.step(&a, theta, []float64{-1})
		if math.Abs(theta[0]-c.want) > 1e-7 {
			t.Errorf("decay %g: %.9f after two steps, want %.9f", c.beta, theta[0], c.want)
		}
	}
}

// After the warm-up a step of n samples that follows those of the step before it as well
// has the rate 0.8·2·η·√(n/32), and its first moment the decay 0.7: the first one moves each
// parameter by that rate. Single samples make a step of four.
func TestLiveStepsHaveARateOfTheirOwn(t *testing.T) {
	for _, c := range []struct{ batch, minibatches, n int }{{8, 1, 8}, {1, 4, 4}} {
		rng := rand.New(rand.NewPCG(6, 6))
		cfg := testConfig(3)
		cfg.Batch = c.batch
		b := newTestBank(t, cfg, rng)
		before := b.params.LogEll()[0]
		feed(t, b, rng, c.minibatches)
		if b.params.LogEll()[0] != before {
			t.Errorf("minibatches of %d: the first step moved the kernel", c.batch)
		}
		feed(t, b, rng, c.minibatches)
		want := 0.8 * 2 * 0.02 * math.Sqrt(float64(c.n)/32)
		if moved := math.Abs(b.params.LogEll()[0] - before); math.Abs(moved-want) > 1e-6 {
			t.Errorf("minibatches of %d: a step moved a lengthscale's logarithm by %g, want %g", c.batch, moved, want)
		}
		at := cfg.Inducing * cfg.Features // of that logarithm among the parameters
		if m, g := b.opt.M[at], b.work.grad.theta[at]; math.Abs(m-0.3*g) > 1e-12*math.Abs(g) {
			t.Errorf("minibatches of %d: first moment %g of the gradient %g", c.batch, m, g)
		}
	}
}
