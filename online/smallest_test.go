package online

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Features and weights that are the smallest numbers leave a state that can be read, and answers.
func TestSmallestNumbers(t *testing.T) {
	const least = math.SmallestNonzeroFloat64
	for name, change := range map[string]func(cfg *Config, ev *Event){
		"features": func(_ *Config, ev *Event) {
			for j, v := range ev.X {
				ev.X[j] = math.Round(v) * least
			}
		},
		"features that are followed": func(cfg *Config, ev *Event) {
			cfg.Track = 10
			for j, v := range ev.X {
				ev.X[j] = math.Round(v) * least
			}
		},
		"weights": func(_ *Config, ev *Event) { ev.Weight = least },
		"balanced weights": func(cfg *Config, ev *Event) {
			if cfg.ClassWeights.Mode, ev.Weight = Balanced, least; ev.X[0] < 14 {
				ev.Label = "a" // as most of them: each counts for less than a half
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, rng := testConfig(3), rand.New(rand.NewPCG(1, 1))
			ev := blob(rng, 3)
			change(&cfg, &ev)
			l := newTestLearner(t, cfg)
			for i := range 150 {
				ev := blob(rng, 3)
				change(&cfg, &ev)
				if l.Add(&ev); i%25 == 0 || i > 140 {
					checkSound(t, l)
					sums(t, l.Posterior(), ev.X)
				}
			}
		})
	}
}
