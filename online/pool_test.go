package online

import (
	"math/rand/v2"
	"testing"
)

// walk draws labels that mostly follow a rule of their own, and features that
// say little about them.
func walk(rng *rand.Rand, last *int, step func(int) int) Event {
	if rng.Float64() < 0.95 {
		*last = step(*last)
	} else {
		*last = rng.IntN(3)
	}
	x := []float64{rng.NormFloat64(), rng.NormFloat64()}
	x[0] += float64(*last) / 2
	return Event{Kind: Observe, X: x, Label: string(rune('a' + *last))}
}

func stay(k int) int  { return k }
func cycle(k int) int { return (k + 1) % 3 }

// scored returns the log loss on 2000 labels that follow step.
func scored(t *testing.T, temporal Temporal, step func(int) int, late bool) float64 {
	cfg := testConfig(2, "a", "b", "c")
	cfg.Temporal = temporal
	l := newTestLearner(t, cfg)
	rng := rand.New(rand.NewPCG(4, 4))
	var last int
	for range 2000 {
		ev := walk(rng, &last, step)
		if late {
			ev.Probs, _, _ = l.Posterior().PredictTo(nil, ev.X, &l.ws)
		}
		l.Add(&ev)
	}
	checkSound(t, l)
	return l.Scores().NLL
}

// Labels that follow each other in an order are predicted by it; where the
// order says nothing, or is not known in time, it costs nothing.
func TestTemporal(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	random := func(int) int { return rng.IntN(3) }
	for name, c := range map[string]struct {
		step     func(int) int
		late     bool
		min, max float64 // of the gain, nats a label
	}{
		"labels stay":             {stay, false, 0.3, 1.1},
		"labels cycle":            {cycle, false, 0.3, 1.1},
		"labels have no order":    {random, false, -0.01, 0.01},
		"labels come later":       {stay, true, -0.01, 0.01},
		"labels cycle, and later": {cycle, true, -0.01, 0.01},
	} {
		t.Run(name, func(t *testing.T) {
			rng = rand.New(rand.NewPCG(5, 5))
			off := scored(t, TemporalOff, c.step, c.late)
			rng = rand.New(rand.NewPCG(5, 5))
			auto := scored(t, TemporalAuto, c.step, c.late)
			if gain := off - auto; gain < c.min || gain > c.max {
				t.Errorf("nll %.4f without the order of labels, %.4f with it: gain %.4f, want %g to %g", off, auto, gain, c.min, c.max)
			}
			if c.min > 0 {
				if on := scored(t, TemporalOn, c.step, c.late); on > off-c.min {
					t.Errorf("nll %.4f with the order of labels always on, %.4f without", on, off)
				}
			}
		})
	}
}

// Weights follow the evidence, and forget it.
func TestPoolWeights(t *testing.T) {
	cfg := testConfig(2, "a", "b", "c")
	l := newTestLearner(t, cfg)
	for m := range l.pendPool { // members 0 to 3 share the exponent of the chain
		l.pendPool[m] = -float64(m % 4)
	}
	l.weighPool(10)
	w := l.view.Pool.Weights
	if !(w[0] > w[1] && w[1] > w[2] && w[2] > w[3]) || w[0] != w[4] || w[0] != w[8] {
		t.Errorf("weights %v do not follow the evidence", w)
	}
	before := w[3]
	for range 100 { // evidence is forgotten
		l.weighPool(50)
	}
	if w[3] < before*1.5 || w[3] > w[0] {
		t.Errorf("weight of the worst member %v, was %v, of the best %v", w[3], before, w[0])
	}
}
