package online

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"edge/model"
	"edge/test/golden"
)

// A batch prediction of inputs is the prediction of each of them.
func TestLoadIsOneByOne(t *testing.T) {
	for _, kernel := range []Kernel{Shared, PerClass} {
		cfg := testConfig(3, "a", "b", "c", "declared")
		cfg.Kernel, cfg.Inducing = kernel, 30
		l := newTestLearner(t, cfg)
		rng := rand.New(rand.NewPCG(1, 1))
		if n := loadedAlike(t, l, rng); n > 0 {
			t.Errorf("before the model is built %d features are clipped", n)
		}
		feed(l, rng, 200)
		if n := loadedAlike(t, l, rng); n == 0 {
			t.Error("no feature was clipped: the test should see some")
		}
	}
}

// loadedAlike compares the answers and returns the number of clipped features.
func loadedAlike(t *testing.T, l *Learner, rng *rand.Rand) (clipped int) {
	t.Helper()
	p, together, alone := l.Posterior(), model.NewWorkspace(), model.NewWorkspace()
	for _, n := range []int{0, 1, 2, 5, 16, 67} {
		var x []float64
		for i := range n {
			ev := blob(rng, 3)
			if i%4 == 1 {
				ev.X[i%3] = math.NaN()
			}
			if i%5 == 2 {
				ev.X[i%3] = 1e6
			}
			x = append(x, ev.X...)
		}
		if err := p.Load(x, n, together); err != nil {
			t.Fatal(err)
		}
		var got, want []float64
		var one, other float64
		for _, i := range rng.Perm(n) {
			got, one = p.AnswerTo(got, i, i%3, together)
			var err error
			if want, other, err = p.PredictNextTo(want, x[i*3:(i+1)*3], i%3, alone); err != nil {
				t.Fatal(err)
			}
			golden.Close(t, "probabilities", got, want, 1e-12)
			golden.Close(t, "novelty", []float64{one}, []float64{other}, 1e-12)
			if together.Clipped() != alone.Clipped() {
				t.Errorf("%d features clipped, want %d", together.Clipped(), alone.Clipped())
			}
			clipped += alone.Clipped()
			if p.Built() {
				golden.Close(t, "answers of the horizons", together.PerHorizon(), alone.PerHorizon(), 1e-12)
				golden.Close(t, "answers of the members", together.PerMember(), alone.PerMember(), 1e-12)
				golden.Close(t, "BALD", []float64{together.BALD(p)}, []float64{alone.BALD(p)}, 1e-10)
			}
		}
	}
	return clipped
}

func TestLoadRefuses(t *testing.T) {
	l := newTestLearner(t, testConfig(3, "a", "b"))
	p, ws := l.Posterior(), model.NewWorkspace()
	if err := p.Load(make([]float64, 5), 2, ws); !errors.Is(err, model.ErrDimension) {
		t.Errorf("two inputs of 5 features gave %v", err)
	}
	if err := p.Load([]float64{1, 2, 3, 4, math.Inf(1), 6}, 2, ws); !errors.Is(err, model.ErrNotFinite) {
		t.Errorf("an infinite feature gave %v", err)
	}
}

// A state goes on with smaller minibatches than those whose samples the gradient has yet to
// follow.
func TestSmallerMinibatches(t *testing.T) {
	for _, size := range []int{1, 2, 4, 8, 16} {
		cfg := testConfig(3, "a", "b", "c")
		cfg.Batch.MaxSize, cfg.Window = 16, 100
		l, rng := newTestLearner(t, cfg), rand.New(rand.NewPCG(1, 2))
		feed(l, rng, 48)
		cfg.Batch.MaxSize = size
		l, err := Restore(cfg, stateOf(l))
		if err != nil {
			t.Fatal(err)
		}
		feed(l, rng, 200)
		if c := l.Counters(); c.StepsRefused > 0 {
			t.Errorf("16 to %d: %d steps refused, %d taken", size, c.StepsRefused, c.Steps)
		}
	}
}
