package online

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model"
	"edge/test/golden"
)

// built returns a learner at the end of a warm-up of n samples, of which the
// first of six features alone determines the class: by a line on which they alternate.
func built(t *testing.T, n int, change func(*Config)) *Learner {
	t.Helper()
	cfg := testConfig(6, "even", "odd")
	cfg.Warmup, cfg.Gradient = n, 16
	cfg.Inducing, cfg.Window = 20, 40
	change(&cfg)
	l := newTestLearner(t, cfg)
	rng := rand.New(rand.NewPCG(4, 4))
	for range n {
		l.Add(striped(rng))
	}
	if !l.WarmedUp() {
		t.Fatal("the warm-up is not over")
	}
	return l
}

func striped(rng *rand.Rand) *Event {
	x := make([]float64, 6)
	for j := range x {
		x[j] = 4 * rng.Float64()
	}
	return &Event{Kind: Observe, X: x, Label: []string{"even", "odd"}[int(x[0]/1.5)%2]}
}

// A second pass begins without the sites of the first: where no parameter moves, ten
// passes leave the state of one, byte for byte.
func TestBuildLearnsItsObservationsOnce(t *testing.T) {
	var digests []string
	for _, passes := range []int{1, 2, 10} {
		l := built(t, 60, func(c *Config) { c.Passes, c.LearningRate = passes, 0 })
		checkSound(t, l)
		l.bank.Counts.Steps = 0 // every pass makes some
		digests = append(digests, l.Digest())
	}
	if digests[0] != digests[1] || digests[1] != digests[2] {
		t.Errorf("the state depends on the number of passes: %v", digests)
	}
}

// logEll are the log lengthscales of kernel g.
func logEll(l *Learner, g int) (v []float64) {
	for _, inv := range l.view.Bases[g].InvEll {
		v = append(v, -math.Log(inv))
	}
	return v
}

// Passes after the first move the kernel, not the inducing inputs, and follow
// the evidence: the feature that matters has the shortest lengthscale by far,
// and new samples are predicted better.
func TestBuildInSeveralPasses(t *testing.T) {
	for _, kernel := range []Kernel{Shared, PerClass} {
		one := built(t, 200, func(c *Config) { c.Kernel = kernel; c.Passes = 1 })
		several := built(t, 200, func(c *Config) { c.Kernel = kernel; c.Passes = 10 })
		checkSound(t, several)
		for g := range one.view.Bases {
			a, b := logEll(one, g), logEll(several, g)
			if slices.Equal(a, b) {
				t.Errorf("%s %d: the lengthscales are those of one pass", kernel, g)
			}
			others := slices.Min(b[1:])
			if first := b[0]; first > others-0.5 {
				t.Errorf("%s %d: log ℓ of the feature that matters is %.2f, the least other %.2f", kernel, g, first, others)
			}
		}
		nll := func(l *Learner) (sum float64) {
			p, ws, rng := l.Posterior(), model.NewWorkspace(), rand.New(rand.NewPCG(5, 5))
			for range 500 {
				ev := striped(rng)
				probs, _, err := p.PredictTo(nil, ev.X, ws)
				if err != nil {
					t.Fatal(err)
				}
				sum -= math.Log(probs[l.classes.index[ev.Label]]) / 500
			}
			return sum
		}
		if a, b := nll(one), nll(several); b > 0.9*a {
			t.Errorf("%s: log loss %.3f after ten passes, %.3f after one", kernel, b, a)
		}
	}
}

// In a warm-up of several passes inducing inputs move in the first one alone.
func TestLaterPassesKeepTheInducingInputs(t *testing.T) {
	l := built(t, 60, func(c *Config) { c.Passes = 1 })
	z := func(passes int) []float64 {
		m := newTestLearner(t, l.cfg)
		m.cfg.Passes = passes
		rng := rand.New(rand.NewPCG(4, 4))
		for range 60 {
			ev := striped(rng)
			w := &m.warmup
			w.x, w.y, w.w = append(w.x, ev.X...), append(w.y, m.classes.index[ev.Label]), append(w.w, 1)
		}
		if err := m.build(nil); err != nil {
			t.Fatal(err)
		}
		b := m.view.Bases[0]
		inputs := slices.Clone(b.Zs)
		for i := range inputs {
			inputs[i] /= b.InvEll[i%b.D]
		}
		return inputs
	}
	one := z(1)
	golden.Close(t, "inducing inputs after two passes", z(2), one, 1e-12)
	golden.Close(t, "inducing inputs after five passes", z(5), one, 1e-12)
}

// A long build calls progress, also after the learner was reset.
func TestBuildReportsProgress(t *testing.T) {
	cfg := testConfig(6, "even", "odd")
	cfg.Warmup, cfg.Passes = 60, 3 // with 8 inducing points
	l := newTestLearner(t, cfg)
	calls := 0
	l.progress = func() { calls++ }
	l.Add(&Event{Kind: Reset})
	rng := rand.New(rand.NewPCG(4, 4))
	for range 60 {
		l.Add(striped(rng))
	}
	if least := 3 * 60 / cfg.Batch.MaxSize; calls < least {
		t.Errorf("%d calls, want %d or more", calls, least)
	}
}
