package train

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"edge/online"
)

// An ensemble predicts the mean of trainers that are made one by one.
func TestEnsembleIsTheMean(t *testing.T) {
	set, cfg, how := newCloud(30, 3, 3, 4), trainConfig(3, 5, online.PerClass), fullBatch(6)
	how.Sites, how.Start, how.Prior = Merged, PerClassKMeans, 0.3
	e, err := NewEnsemble(cfg, how, names(3), set, Stacking{Members: 4})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Train(func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	test := newCloud(20, 3, 3, 5)
	want := make([]float64, 20*3)
	for j := range 4 {
		own, ownHow := cfg, how
		own.Seed += uint64(j)
		if j == 2 {
			own.Kernel, ownHow.Prior, ownHow.Start = online.Shared, 1, KMeans
		}
		tr := newTestTrainer(t, own, ownHow, 3, set)
		run(t, tr, 1000)
		if err := tr.Predict(test, func(i int, p []float64) {
			for k, v := range p {
				want[i*3+k] += v / 4
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	var got []float64
	if err := e.Predict(test, func(_ int, p []float64) { got = append(got, p...) }); err != nil {
		t.Fatal(err)
	}
	closeTo(t, "probabilities", got, want, 1e-12)
	s, err := e.Score(test)
	if err != nil || !(s.NLL > 0) || s.N != 20 {
		t.Errorf("scores %+v, %v", s, err)
	}
}

// The weights of the kinds are the best of a search over all, with the pseudo-observations.
func TestStack(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for name, scale := range map[string]float64{"alike": 1, "first better": 0.3, "second better": 3} {
		t.Run(name, func(t *testing.T) {
			var held [2][]float64
			for range 60 {
				held[0] = append(held[0], math.Pow(rng.Float64(), scale))
				held[1] = append(held[1], rng.Float64())
			}
			objective := func(v float64) float64 {
				sum := math.Log(v) + math.Log(1-v)
				for i, p := range held[0] {
					sum += math.Log(v*p + (1-v)*held[1][i])
				}
				return sum
			}
			got, best := stack(held), 0.5
			for v := 0.001; v < 1; v += 0.001 {
				if objective(v) > objective(best) {
					best = v
				}
			}
			if math.Abs(got[0]-best) > 2e-3 || math.Abs(got[0]+got[1]-1) > 1e-12 {
				t.Errorf("weights %v, want %.3f of the first", got, best)
			}
		})
	}
}

// Folds weigh the kinds by samples that their models have not learnt: the labels of a fold
// do not change the models that predict it.
func TestCrossPredictsHeldOut(t *testing.T) {
	set, cfg, how := newCloud(30, 3, 3, 4), trainConfig(3, 5, online.PerClass), fullBatch(3)
	how.Sites = Merged
	e, err := NewEnsemble(cfg, how, names(3), set, Stacking{Members: 3, Folds: 3})
	if err != nil {
		t.Fatal(err)
	}
	never := func() error { return nil }
	if err := e.Train(never); err != nil {
		t.Fatal(err)
	}
	w := e.Weights()
	closeTo(t, "sum of the weights", []float64{w[0] + w[1] + w[2]}, []float64{1}, 1e-12)
	closeTo(t, "second member", w[1:2], w[:1], 1e-12)
	held, err := e.cross(never)
	if err != nil {
		t.Fatal(err)
	}
	closeTo(t, "weight of the shared kernel", w[2:], []float64{stack(held)[1]}, 1e-12)
	rows := rand.New(rand.NewPCG(cfg.Seed, 0)).Perm(30)
	learn := &cloud{d: 3}
	for _, r := range rows[10:] {
		learn.x, learn.y = append(learn.x, set.x[r*3:(r+1)*3]...), append(learn.y, set.y[r])
	}
	tr := newTestTrainer(t, cfg, how, 3, learn)
	run(t, tr, 1000)
	var want []float64
	fold := subset{set, rows[:10]}
	if err := tr.Predict(fold, func(i int, p []float64) { want = append(want, p[fold.Class(i)]) }); err != nil {
		t.Fatal(err)
	}
	closeTo(t, "probabilities of the first fold", held[0][:10], want, 1e-12)
}

func TestEnsembleEnds(t *testing.T) {
	set, cfg := newCloud(30, 2, 2, 4), trainConfig(2, 4, online.Shared)
	for _, o := range []Stacking{{Members: 0}, {Members: maxMembers + 1}, {Members: 2, Folds: 1}, {Members: 2, Folds: -1}, {Members: 2, Folds: 21}} {
		if _, err := NewEnsemble(cfg, Default(), names(2), set, o); !errors.Is(err, online.ErrConfig) {
			t.Errorf("%+v: %v, want ErrConfig", o, err)
		}
	}
	e, err := NewEnsemble(cfg, Default(), names(2), set, Stacking{Members: 2})
	if err != nil {
		t.Fatal(err)
	}
	stop, steps := errors.New("stop"), 0
	err = e.Train(func() error {
		if steps++; steps > 3 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) {
		t.Errorf("%v, want the error of interrupted", err)
	}
}
