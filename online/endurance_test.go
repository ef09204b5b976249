package online

import (
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// enduranceSamples is the number of samples of a long test: EDGE_ENDURE times the
// usual one.
func enduranceSamples(t *testing.T, usual int) int {
	t.Helper()
	text := os.Getenv("EDGE_ENDURE")
	if text == "" {
		return usual
	}
	times, err := strconv.Atoi(text)
	if err != nil || times < 1 {
		t.Fatalf("EDGE_ENDURE=%s: want a number of at least 1", text)
	}
	return usual * times
}

// endure feeds n samples, checks the state ten times, and at the end compares the
// counters: every sample is judged, and every minibatch is learnt or counted as
// refused.
func endure(t *testing.T, cfg Config, n int, draw func(i int, x []float64) (label string)) *Learner {
	t.Helper()
	l := newTestLearner(t, cfg)
	x := make([]float64, len(l.cfg.Features))
	var closed, stepped, refused, idle uint64
	var size int // of the state
	for i := range n {
		y := draw(i, x)
		before := l.Counters()
		out := l.Add(&Event{Kind: Observe, X: x, Label: y})
		after := l.Counters()
		if out.Closed {
			closed++
		}
		if out.Stepped {
			stepped++
			if after.Steps == before.Steps {
				idle++ // the warm-up has no model to step yet
			}
		}
		if out.Refused != nil {
			refused++
		}
		if out.Closed && out.Stepped == (out.Refused != nil) {
			t.Fatalf("sample %d: stepped %v, refused with %v", i, out.Stepped, out.Refused)
		}
		if (i+1)%(n/10) == 0 {
			checkSound(t, l)
			var state, drift, forest int
			for _, part := range l.StateSize() {
				switch part.Name {
				case "drift": // grows with the logarithm of n, up to a bound
					drift = part.Bytes
				case "forest": // grows until its ring and its trees are full
					forest = part.Bytes
				default:
					state += part.Bytes
				}
			}
			if most := FullForest.sizes(len(x)).Bytes(len(x), len(l.classes.names)); uint64(forest) > most+most/20 {
				t.Errorf("the forest takes %d bytes, want at most %d", forest, most)
			}
			if size == 0 {
				size = state
			}
			if state > size+64 { // the digits of counters
				t.Errorf("the state grows from %d to %d bytes", size, state)
			}
			if most := 17*(1+5*16) + 100; drift > most {
				t.Errorf("the detector takes %d bytes, want at most %d", drift, most)
			}
			if t.Failed() {
				t.Fatalf("after %d samples", i+1)
			}
		}
	}
	c := l.Counters()
	if closed != stepped+refused || refused != c.StepsRefused+c.LabelsRefused || closed != uint64(n/cfg.Batch.MaxSize) {
		t.Errorf("%d minibatches of %d samples: %d learnt, %d refused, %d counted as refused", closed, n, stepped, refused, c.StepsRefused+c.LabelsRefused)
	}
	if got := l.Scores().N; got != uint64(n) {
		t.Errorf("%d samples are judged, want %d", got, n)
	}
	t.Logf("%d samples: %d minibatches learnt (%d of them before there was a model), %d refused, %d retries of a factorisation; error %.4f over the last %d",
		n, stepped, idle, refused, c.CholeskyRetries, l.Scores().Window.Error, l.Scores().Window.N)
	return l
}

// A model that forgets is as sound and as accurate after a million single-sample steps
// as after a thousand.
func TestEndureForgetting(t *testing.T) {
	cfg := testConfig(2, "a", "b")
	cfg.Inducing, cfg.Window, cfg.Batch.MaxSize = 5, 5, 1
	cfg.Horizons = []Horizon{100}
	cfg.Track = 300
	rng := rand.New(rand.NewPCG(1, 0))
	n := enduranceSamples(t, 20_000)
	l := endure(t, cfg, n, func(i int, x []float64) string {
		// Two blobs whose means are four standard deviations apart: the best
		// possible error is 0.023. Every 5000 samples the classes change places.
		k := rng.IntN(2)
		x[0], x[1] = rng.NormFloat64(), rng.NormFloat64()+4*float64(k)
		return string(rune('a' + (k+i/5000)%2))
	})
	if s := l.Scores(); s.Window.Error > 0.08 {
		t.Errorf("error %.3f over the last %d samples", s.Window.Error, s.Window.N)
	}
	if r := l.Counters().StepsRefused; r > 0 {
		t.Errorf("%d steps refused", r)
	}
}

// A hundred thousand labels of one class do not make the evidence for it overflow,
// and do not prevent the other class from being learnt afterwards.
func TestEndureOneClass(t *testing.T) {
	for name, horizons := range map[string][]Horizon{"forgetting": {100}, "never forgetting": {Horizon(math.Inf(1))}, "the default bank": DefaultConfig().Horizons} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(2, "a", "b")
			cfg.Inducing, cfg.Window, cfg.Batch.MaxSize = 5, 5, 1
			cfg.Horizons = horizons
			rng := rand.New(rand.NewPCG(2, 0))
			n := enduranceSamples(t, 5_000)
			l := endure(t, cfg, n, func(_ int, x []float64) string {
				x[0], x[1] = rng.NormFloat64(), rng.NormFloat64()
				return "a"
			})
			if e := l.Scores().Window.Error; e > 0 {
				t.Errorf("error %g where every label is the same", e)
			}
			for range 500 {
				x := []float64{8 + rng.NormFloat64(), rng.NormFloat64()}
				if out := l.Add(&Event{Kind: Observe, X: x, Label: "b"}); out.Refused != nil {
					t.Fatalf("the other class is refused: %v", out.Refused)
				}
			}
			checkSound(t, l)
			if e := l.Scores().Window.Error; e > 0.5 {
				t.Errorf("the other class, far from the first, is not learnt: error %g over its 500 samples", e)
			}
		})
	}
}
