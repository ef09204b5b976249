package train

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"edge/online"
	"edge/test/golden"
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
	golden.Close(t, "probabilities", got, want, 1e-12)
	s, err := e.Score(test)
	if err != nil || !(s.NLL > 0) || s.N != 20 {
		t.Errorf("scores %+v, %v", s, err)
	}
}

// Folds fit the pool to samples that the models have not learnt, and it combines the
// means of the kinds.
func TestEnsembleOfFolds(t *testing.T) {
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
	held, y, err := e.cross(never)
	if err != nil {
		t.Fatal(err)
	}
	rows := rand.New(rand.NewPCG(cfg.Seed, 0)).Perm(30)
	learn := &cloud{d: 3}
	for _, r := range rows[10:] {
		learn.x, learn.y = append(learn.x, set.x[r*3:(r+1)*3]...), append(learn.y, set.y[r])
	}
	tr := newTestTrainer(t, cfg, how, 3, learn)
	run(t, tr, 1000)
	var want []float64
	if err := tr.Predict(subset{set, rows[:10]}, func(_ int, p []float64) { want = append(want, p...) }); err != nil {
		t.Fatal(err)
	}
	golden.Close(t, "probabilities of the first fold", held[0][:30], want, 1e-12)
	for i, r := range rows {
		if y[i] != set.y[r] {
			t.Fatalf("label %d is %d, want %d", i, y[i], set.y[r])
		}
	}
	var p pool
	p.fit(held, y)
	var parts [3][]float64
	for j, m := range e.members {
		if err := m.Predict(set, func(_ int, p []float64) { parts[j] = append(parts[j], p...) }); err != nil {
			t.Fatal(err)
		}
	}
	var got []float64
	if err := e.Predict(set, func(_ int, p []float64) { got = append(got, p...) }); err != nil {
		t.Fatal(err)
	}
	want = make([]float64, len(got))
	for i := 0; i < len(got); i += 3 {
		var sum float64
		for k := i; k < i+3; k++ {
			want[k] = math.Pow((parts[0][k]+parts[1][k])/2, p.a[0]) * math.Pow(parts[2][k], p.a[1])
			sum += want[k]
		}
		for k := i; k < i+3; k++ {
			want[k] /= sum
		}
	}
	golden.Close(t, "combined probabilities", got, want, 1e-10)
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
