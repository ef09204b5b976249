package active

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestConfigValidate(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Default(), ""},
		{Config{Strategy: BALD, Budget: 1}, ""},
		{Config{Strategy: "often", Budget: 0.1}, "strategy: often: want off, margin"},
		{Config{Strategy: Margin}, "budget: 0: want a fraction"},
		{Config{Strategy: Margin, Budget: 1.5}, "budget: 1.5"},
		{Config{Strategy: Margin, Budget: math.NaN()}, "budget: NaN"},
		{Config{Budget: 0.1, PerHour: -1}, "budget_per_hour: -1: want 0"},
	} {
		err := c.cfg.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.cfg, err, c.want)
		}
	}
}

// For any scores, no more labels are requested than the budget allows, and all that
// it allows where good samples do not end.
func TestSelectorKeepsItsBudget(t *testing.T) {
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
			a := NewSelector(Config{Strategy: Margin, Budget: budget}, 1)
			asked := 0.0
			for i := range samples {
				if a.Select(score(i), uint64(asked), 0) {
					asked++
				}
				n := float64(i + 1)
				if most := min(n, max(budget*n, max(2400*budget, 20)+budget*n/2)); asked > most {
					t.Fatalf("%s, budget %g: %g requests of %g samples, want at most %g", name, budget, asked, n, most)
				}
			}
			if least := 0.9 * budget * samples; name != "falling" && asked < least {
				t.Errorf("%s, budget %g: %g requests of %d, want %g or more", name, budget, asked, samples, least)
			}
		}
	}
}

func TestSelectorKeepsItsHourlyBudget(t *testing.T) {
	for _, perHour := range []float64{0.5, 6, 60} {
		a := NewSelector(Config{Strategy: Random, Budget: 1, PerHour: perHour}, 1)
		var asked []time.Duration
		for now := time.Duration(0); now < 20*time.Hour; now += 7 * time.Second {
			if a.Select(1, 0, now) {
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

// A bound whose interval is longer than a time.Duration can be is kept as well.
func TestSelectorKeepsAVerySmallHourlyBudget(t *testing.T) {
	a, asked := NewSelector(Config{Strategy: Random, Budget: 1, PerHour: 1e-9}, 1), 0
	for now := time.Duration(0); now < 20*time.Hour; now += time.Minute {
		if a.Select(1, 0, now) {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("%d requests in 20 hours, want 1", asked)
	}
}

// The same samples give the same requests; another seed gives others. The selected
// samples have higher scores than the others.
func TestSelectorIsDeterministic(t *testing.T) {
	run := func(seed uint64) (asked []int, gain float64) {
		a, rng := NewSelector(Config{Strategy: Entropy, Budget: 0.1}, seed), rand.New(rand.NewPCG(5, 5))
		var chosen, all float64
		for i := range 5000 {
			score := rng.ExpFloat64()
			all += score / 5000
			if a.Select(score, 100, 0) {
				asked = append(asked, i)
				chosen += score
			}
		}
		return asked, chosen / float64(len(asked)) / all
	}
	one, gain := run(1)
	if again, _ := run(1); !slices.Equal(one, again) {
		t.Error("a second run selects other samples")
	}
	if other, _ := run(2); slices.Equal(one, other) {
		t.Error("another seed selects the same samples")
	}
	if gain < 1.5 {
		t.Errorf("the selected samples are worth %.2f times the mean, want 1.5 or more", gain)
	}
}

// A model that has learnt already has no head start.
func TestSelectorHeadStart(t *testing.T) {
	first := func(learnt uint64, samples int) (n int) {
		a := NewSelector(Config{Strategy: Margin, Budget: 0.1}, 1)
		for range samples {
			if a.Select(1, learnt, 0) {
				n++
			}
		}
		return n
	}
	if n := first(0, 8); n != 8 {
		t.Errorf("a new model requests %d labels in its first 8 samples", n)
	}
	if n := first(0, 400); n < 100 || n > 160 {
		t.Errorf("a new model requests %d labels in its first 400 samples, want 100 to 160", n)
	}
	if n := first(0, 4800); n < 450 || n > 480 {
		t.Errorf("a new model requests %d labels in its first 4800 samples, want 450 to 480", n)
	}
	if n := first(1000, 400); n < 30 || n > 60 {
		t.Errorf("a model of 1000 samples requests %d labels in 400 samples, want about 40", n)
	}
}
