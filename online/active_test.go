package online

import (
	"math"
	"math/rand/v2"
	"testing"

	"edge/model"
	"edge/online/active"
)

func TestSelectorScores(t *testing.T) {
	l := newTestLearner(t, testConfig(2))
	feed(l, rand.New(rand.NewPCG(2, 2)), 64)
	p, ws := l.Posterior(), model.NewWorkspace()
	probs, _, err := p.PredictTo(nil, []float64{12, 12}, ws)
	if err != nil {
		t.Fatal(err)
	}
	for s, want := range map[active.Strategy]float64{
		active.Margin: 1 - model.Margin(probs), active.Entropy: model.Entropy(probs), active.BALD: math.Sqrt(ws.BALD(p) * (1 - model.Margin(probs))), active.Random: 1,
	} {
		a := active.NewSelector(active.Config{Strategy: s, Budget: 0.1}, 1)
		if got := a.Score(probs, p, ws); got != want || got <= 0 {
			t.Errorf("%s: %v, want %v", s, got, want)
		}
		if n := testing.AllocsPerRun(10, func() { a.Select(a.Score(probs, p, ws), 100, 0) }); n != 0 {
			t.Errorf("%s: %v allocations", s, n)
		}
	}
}

// Where labels are requested, the defaults suit a model of few labels, unless every
// label is requested.
func TestApplyDefaults(t *testing.T) {
	applied := func(a active.Config, change func(*Config)) (inducing, gradient, warmup, passes int) {
		c := testConfig(2, "a", "b")
		c.Inducing, c.Gradient, c.Warmup = 0, 0, 0
		change(&c)
		c.ApplyDefaults(a)
		return c.Inducing, c.Gradient, c.Warmup, c.Passes
	}
	some := active.Config{Strategy: active.Margin, Budget: 0.1}
	for _, c := range []struct {
		cfg                                active.Config
		change                             func(*Config)
		inducing, gradient, warmup, passes int
	}{
		{some, func(*Config) {}, fewInducing, fewGradient, 600, fewPasses},
		{some, func(c *Config) { c.Inducing = 200 }, 200, fewGradient, 1200, fewPasses},
		{some, func(c *Config) { c.Inducing, c.Gradient, c.Warmup = 20, 3, 4 }, 20, 3, 4, fewPasses},
		{active.Default(), func(*Config) {}, 50, 0, 0, 0},
		{active.Default(), func(c *Config) { c.Inducing = 20 }, 20, 0, 0, 0},
		{active.Config{Strategy: active.Margin, Budget: 1}, func(*Config) {}, 50, 0, 0, 0},
	} {
		if m, g, w, p := applied(c.cfg, c.change); m != c.inducing || g != c.gradient || w != c.warmup || p != c.passes {
			t.Errorf("%+v: M = %d, gradient %d, warm-up %d, %d passes, want %d, %d, %d, %d", c.cfg, m, g, w, p, c.inducing, c.gradient, c.warmup, c.passes)
		}
	}
}
