package online

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"edge/model"
)

func TestAskingValidate(t *testing.T) {
	for _, c := range []struct {
		how  Asking
		want string
	}{
		{DefaultAsking(), ""},
		{Asking{Strategy: AskBALD, Budget: 1}, ""},
		{Asking{Strategy: "often", Budget: 0.1}, "strategy: often: want off, margin"},
		{Asking{Strategy: AskMargin}, "budget: 0: want a fraction"},
		{Asking{Strategy: AskMargin, Budget: 1.5}, "budget: 1.5"},
		{Asking{Strategy: AskMargin, Budget: math.NaN()}, "budget: NaN"},
		{Asking{Budget: 0.1, PerHour: -1}, "budget_per_hour: -1: want 0"},
	} {
		err := c.how.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.how, err, c.want)
		}
	}
}

// Whatever the scores do, no more is asked for than the budget allows, and what
// it allows is asked for where there is no end of good samples.
func TestAskerKeepsItsBudget(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	scores := map[string]func(i int) float64{
		"independent": func(int) float64 { return rng.Float64() },
		"constant":    func(int) float64 { return 0.5 },
		"zero":        func(int) float64 { return 0 },
		"rising":      func(i int) float64 { return math.Exp(float64(i) / 500) },
		"falling":     func(i int) float64 { return math.Exp(-float64(i) / 500) },
		"bursts":      func(i int) float64 { return float64(i / 700 % 2) },
	}
	for name, score := range scores {
		for _, budget := range []float64{0.001, 0.01, 0.1, 0.5, 1} {
			const samples = 20000
			a := NewAsker(Asking{Strategy: AskMargin, Budget: budget}, 1)
			asked := 0.0
			for i := range samples {
				if a.Ask(score(i), uint64(asked), 0) {
					asked++
				}
				n := float64(i + 1)
				if most := min(n, max(budget*n, max(2400*budget, 20)+budget*n/2)); asked > most {
					t.Fatalf("%s, budget %g: %g asked for of %g samples, want at most %g", name, budget, asked, n, most)
				}
			}
			if least := 0.9 * budget * samples; name != "falling" && asked < least {
				t.Errorf("%s, budget %g: %g asked for of %d, want %g or more", name, budget, asked, samples, least)
			}
		}
	}
}

func TestAskerKeepsItsHourlyBudget(t *testing.T) {
	for _, perHour := range []float64{0.5, 6, 60} {
		a := NewAsker(Asking{Strategy: AskRandom, Budget: 1, PerHour: perHour}, 1)
		var asked []time.Duration
		for now := time.Duration(0); now < 20*time.Hour; now += 7 * time.Second {
			if a.Ask(1, 0, now) {
				asked = append(asked, now)
			}
		}
		within := max(time.Hour, time.Duration(float64(time.Hour)/perHour))
		for i, from := range asked {
			n := 0
			for _, at := range asked[i:] {
				if at < from+within {
					n++
				}
			}
			if most := max(perHour, 1); float64(n) > most {
				t.Fatalf("%g an hour: %d in the time from %v", perHour, n, from)
			}
		}
		if float64(len(asked)) < 0.9*20*perHour {
			t.Errorf("%g an hour: %d in 20 hours", perHour, len(asked))
		}
	}
}

// The same samples give the same questions; another seed gives others. What is
// asked for is worth more than what is not.
func TestAskerIsDeterministicAndChooses(t *testing.T) {
	run := func(seed uint64) (asked []int, gain float64) {
		a, rng := NewAsker(Asking{Strategy: AskEntropy, Budget: 0.1}, seed), rand.New(rand.NewPCG(5, 5))
		var chosen, all float64
		for i := range 5000 {
			score := rng.ExpFloat64()
			all += score / 5000
			if a.Ask(score, 100, 0) {
				asked = append(asked, i)
				chosen += score
			}
		}
		return asked, chosen / float64(len(asked)) / all
	}
	one, gain := run(1)
	if again, _ := run(1); !slices.Equal(one, again) {
		t.Error("a second run asks other questions")
	}
	if other, _ := run(2); slices.Equal(one, other) {
		t.Error("another seed asks the same questions")
	}
	if gain < 1.5 {
		t.Errorf("the samples asked for are worth %.2f times the mean, want 1.5 or more", gain)
	}
}

// A model that has learnt already has no head start.
func TestAskerHeadStart(t *testing.T) {
	first := func(learnt uint64, samples int) (n int) {
		a := NewAsker(Asking{Strategy: AskMargin, Budget: 0.1}, 1)
		for range samples {
			if a.Ask(1, learnt, 0) {
				n++
			}
		}
		return n
	}
	if n := first(0, 8); n != 8 {
		t.Errorf("a new model asks %d times in its first 8 samples", n)
	}
	if n := first(0, 400); n < 100 || n > 160 {
		t.Errorf("a new model asks %d times in its first 400 samples, want 100 to 160", n)
	}
	if n := first(0, 4800); n < 450 || n > 480 {
		t.Errorf("a new model asks %d times in its first 4800 samples, want 450 to 480", n)
	}
	if n := first(1000, 400); n < 30 || n > 60 {
		t.Errorf("a model of 1000 samples asks %d times in 400 samples, want about 40", n)
	}
}

func TestAskerScores(t *testing.T) {
	l := newTestLearner(t, testConfig(2))
	feed(l, rand.New(rand.NewPCG(2, 2)), 64)
	p, ws := l.Posterior(), model.NewWorkspace()
	probs, _, err := p.PredictTo(nil, []float64{12, 12}, ws)
	if err != nil {
		t.Fatal(err)
	}
	for s, want := range map[Strategy]float64{
		AskMargin: 1 - model.Margin(probs), AskEntropy: model.Entropy(probs), AskBALD: math.Sqrt(ws.BALD(p) * (1 - model.Margin(probs))), AskRandom: 1,
	} {
		a := NewAsker(Asking{Strategy: s, Budget: 0.1}, 1)
		if got := a.Score(probs, p, ws); got != want || got <= 0 {
			t.Errorf("%s: %v, want %v", s, got, want)
		}
		if n := testing.AllocsPerRun(10, func() { a.Ask(a.Score(probs, p, ws), 100, 0) }); n != 0 {
			t.Errorf("%s: %v allocations", s, n)
		}
	}
}

// Where labels are asked for, the model is suited to few of them, unless the
// configuration says something itself or every label is asked for.
func TestAskingSuitsTheModel(t *testing.T) {
	suited := func(a Asking, change func(*Config)) (inducing, gradient, warmup, passes int) {
		c := testConfig(2, "a", "b")
		c.Inducing, c.Gradient, c.Warmup = 0, 0, 0
		change(&c)
		a.Suit(&c)
		return c.Inducing, c.Gradient, c.Warmup, c.Passes
	}
	some := Asking{Strategy: AskMargin, Budget: 0.1}
	for _, c := range []struct {
		how                                Asking
		change                             func(*Config)
		inducing, gradient, warmup, passes int
	}{
		{some, func(*Config) {}, fewInducing, fewGradient, 600, fewPasses},
		{some, func(c *Config) { c.Inducing = 200 }, 200, fewGradient, 1200, fewPasses},
		{some, func(c *Config) { c.Inducing, c.Gradient, c.Warmup = 20, 3, 4 }, 20, 3, 4, fewPasses},
		{DefaultAsking(), func(*Config) {}, 50, 0, 0, 0},
		{DefaultAsking(), func(c *Config) { c.Inducing = 20 }, 20, 0, 0, 0},
		{Asking{Strategy: AskMargin, Budget: 1}, func(*Config) {}, 50, 0, 0, 0},
	} {
		if m, g, w, p := suited(c.how, c.change); m != c.inducing || g != c.gradient || w != c.warmup || p != c.passes {
			t.Errorf("%+v: M = %d, gradient %d, warm-up %d, %d passes, want %d, %d, %d, %d", c.how, m, g, w, p, c.inducing, c.gradient, c.warmup, c.passes)
		}
	}
}
