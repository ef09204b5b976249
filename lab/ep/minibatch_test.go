package ep

import (
	"testing"

	"edge/lab"
	"edge/lab/labtest"
	"edge/test/golden"
)

// One minibatch of all rows, in another order, is a sweep of EP.
func TestOneMinibatchIsEP(t *testing.T) {
	d, p := labtest.Twelve()
	e, err := New(d, p, lab.Jitter)
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewMinibatch(d, p, 100)
	if err != nil {
		t.Fatal(err)
	}
	rows := []int{11, 3, 0, 7, 2, 9, 4, 1, 10, 5, 8, 6}
	next := labtest.PerClass(p, 1)
	for range 4 {
		if _, err := e.Sweep(0.5); err != nil {
			t.Fatal(err)
		}
		grad, err := m.Step(rows, m.Params, 0.5)
		if err != nil {
			t.Fatal(err)
		}
		golden.Close(t, "gradient", grad, e.Gradient(), 1e-10)
		golden.Close(t, "m", m.M.RawMatrix().Data, e.M.RawMatrix().Data, 1e-10)
		if err := e.SetParams(next); err != nil {
			t.Fatal(err)
		}
		if err := m.Rebuild(next); err != nil {
			t.Fatal(err)
		}
	}
}

// Minibatches change the sums by what the sites change, and their gradients average to the
// one of all rows.
func TestMinibatchesAddUp(t *testing.T) {
	d, p := labtest.Twelve()
	m, err := NewMinibatch(d, p, 5)
	if err != nil {
		t.Fatal(err)
	}
	batches := [][]int{{0, 4, 8, 2, 6}, {1, 3, 5, 7, 9}, {10, 11}}
	for range 3 {
		for _, rows := range batches {
			if _, err := m.Step(rows, p, 0.5); err != nil {
				t.Fatal(err)
			}
		}
	}
	added := append([]float64(nil), m.a[1].RawMatrix().Data...)
	if err := m.Rebuild(p); err != nil {
		t.Fatal(err)
	}
	golden.Close(t, "A of class 1", added, m.a[1].RawMatrix().Data, 1e-10)

	got := make([]float64, len(p.Theta))
	for _, rows := range batches {
		grad, err := m.Step(rows, p, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i, g := range grad {
			got[i] += g * float64(len(rows)) / 12
		}
	}
	e, err := New(d, p, lab.Jitter)
	if err != nil {
		t.Fatal(err)
	}
	e.Sites = m.sites
	if err := e.SetParams(p); err != nil {
		t.Fatal(err)
	}
	golden.Close(t, "mean gradient", got, e.Gradient(), 1e-10)
}

func TestStochasticLearns(t *testing.T) {
	d, p := labtest.Twelve()
	before := converged(t, d, p, lab.Jitter).LogZ()
	c, err := Stochastic(5, 0.02)(t.Context(), &lab.Problem{Data: d, Start: p, Updates: 60, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if after := converged(t, d, c.(*Minibatch).Params, lab.Jitter).LogZ(); !(after > before+0.5) {
		t.Errorf("log evidence %g, at the first parameters %g", after, before)
	}
}
