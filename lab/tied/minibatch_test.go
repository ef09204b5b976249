package tied

import (
	"testing"

	"edge/lab"
	"edge/lab/labtest"
	"edge/test/golden"
)

// One minibatch of all rows, in another order, is a sweep.
func TestOneMinibatchIsASweep(t *testing.T) {
	d, p := labtest.Twelve()
	for _, kind := range []Kind{Total, Touched, Merged, Robust} {
		t.Run(string(kind), func(t *testing.T) {
			s, err := New(d, p, kind, eps, lab.TrainNodes)
			if err != nil {
				t.Fatal(err)
			}
			m, err := NewMinibatch(d, p, kind, eps, lab.TrainNodes, 100)
			if err != nil {
				t.Fatal(err)
			}
			for range 4 {
				_, want, err := s.Sweep(0.5)
				if err != nil {
					t.Fatal(err)
				}
				grad, err := m.Step([]int{11, 3, 0, 7, 2, 9, 4, 1, 10, 5, 8, 6}, p, 0.5, false)
				if err != nil {
					t.Fatal(err)
				}
				golden.Close(t, "gradient", grad, want, 1e-10)
				golden.Close(t, "A", m.A[2].RawMatrix().Data, s.A[2].RawMatrix().Data, 1e-10)
			}
		})
	}
}

// The first pass adds up the sites; a later one renews the share of its rows.
func TestMinibatchRenewsItsShare(t *testing.T) {
	d, p := labtest.Twelve()
	rows := []int{2, 5, 7}
	m, err := NewMinibatch(d, p, Total, 0, lab.TrainNodes, len(rows))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Step(rows, p, 1, true); err != nil {
		t.Fatal(err)
	}
	first := append([]float64(nil), m.B[0].RawVector().Data...)
	if err := m.cavity(); err != nil {
		t.Fatal(err)
	}
	_, _, _, s1, s2 := m.factors.update(m.SEP)
	_, fresh := m.Natural(0, s1, s2)
	want := make([]float64, len(first))
	for j := range want {
		want[j] = (1-0.8*3.0/12)*first[j] + 0.8*fresh.AtVec(j)
	}
	if _, err := m.Step(rows, p, 0.8, false); err != nil {
		t.Fatal(err)
	}
	golden.Close(t, "b", m.B[0].RawVector().Data, want, 1e-11)
}
