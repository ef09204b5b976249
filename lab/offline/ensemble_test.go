package offline

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/lab/labtest"
	"edge/test/golden"
)

// problem is 60 rows of the waveform stream, with that many kernels.
func problem(kernels, updates int) *lab.Problem {
	d := labtest.Waveform(60, 3)
	return &lab.Problem{Data: d, Start: lab.Start(d, 6, kernels, rand.New(rand.NewPCG(1, 1))), Updates: updates}
}

func TestEnsemblePredicts(t *testing.T) {
	p := problem(3, 20)
	got := predict(t, p, TrainEnsemble)
	right := 0
	for i, y := range p.Data.Y {
		probs := got.RawRowView(i)
		if sum := probs[0] + probs[1] + probs[2]; math.Abs(sum-1) > 1e-9 {
			t.Errorf("row %d: probabilities %v", i, probs)
		}
		if probs[y] == slices.Max(probs) {
			right++
		}
	}
	if right < 50 {
		t.Errorf("%d of 60 rows learnt are right", right)
	}
}

// predict learns a problem and returns the probabilities of its rows.
func predict(t *testing.T, p *lab.Problem, method lab.Method) *mat.Dense {
	t.Helper()
	c, err := method(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	probs, err := c.Predict(p.Data.X)
	if err != nil {
		t.Fatal(err)
	}
	return probs
}

// Models of one kind, which differ in the seed, are averaged.
func TestEnsembleIsTheMean(t *testing.T) {
	p := problem(1, 6)
	cfg, err := config(p)
	if err != nil {
		t.Fatal(err)
	}
	how := Default()
	how.Passes = p.Updates
	want := mat.NewDense(60, 3, nil)
	for range 3 {
		want.Add(want, predict(t, p, func(ctx context.Context, p *lab.Problem) (lab.Classifier, error) {
			return learn(ctx, cfg, how, p.Data, nil)
		}))
		cfg.Seed++
	}
	want.Scale(1.0/3, want)
	golden.Close(t, "probabilities", predict(t, p, TrainEnsemble).RawMatrix().Data, want.RawMatrix().Data, 1e-12)
}

// The pool is fitted to rows that the models have not learnt, and combines the means of the kinds.
func TestEnsembleOfFolds(t *testing.T) {
	p := problem(3, 3)
	cfg, err := config(p)
	if err != nil {
		t.Fatal(err)
	}
	how := Default()
	how.Passes = p.Updates
	held, y, err := cross(t.Context(), cfg, how, p.Data)
	if err != nil {
		t.Fatal(err)
	}
	rows := rand.New(rand.NewPCG(cfg.Seed, 0)).Perm(60)
	for i, r := range rows {
		if y[i] != p.Data.Y[r] {
			t.Fatalf("label %d is %d, want %d", i, y[i], p.Data.Y[r])
		}
	}
	c, err := learn(t.Context(), cfg, how, p.Data.Rows(rows[20:]), nil)
	if err != nil {
		t.Fatal(err)
	}
	first, err := c.Predict(p.Data.Rows(rows[:20]).X)
	if err != nil {
		t.Fatal(err)
	}
	golden.Close(t, "probabilities of the first fold", held[0][:60], first.RawMatrix().Data, 1e-12)

	c, err = TrainEnsemble(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	e := c.(*ensemble)
	var fitted pool
	fitted.fit(held, y)
	if *e.pool != fitted || len(e.kinds[0]) != 2 || len(e.kinds[1]) != 1 {
		t.Fatalf("exponents %v, %d and %d models; want %v, 2 and 1", e.pool, len(e.kinds[0]), len(e.kinds[1]), fitted)
	}
	var parts []*mat.Dense
	for _, c := range slices.Concat(e.kinds[0], e.kinds[1]) {
		probs, err := c.Predict(p.Data.X)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, probs)
	}
	want := mat.NewDense(60, 3, nil)
	for i := range 60 {
		row := want.RawRowView(i)
		for k := range row {
			row[k] = math.Pow((parts[0].At(i, k)+parts[1].At(i, k))/2, fitted.a[0]) * math.Pow(parts[2].At(i, k), fitted.a[1])
		}
		sum := row[0] + row[1] + row[2]
		for k := range row {
			row[k] /= sum
		}
	}
	got, err := e.Predict(p.Data.X)
	if err != nil {
		t.Fatal(err)
	}
	golden.Close(t, "combined probabilities", got.RawMatrix().Data, want.RawMatrix().Data, 1e-10)
}

func TestEnsembleEnds(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := TrainEnsemble(ctx, problem(3, 20)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that of the context", err)
	}
}
