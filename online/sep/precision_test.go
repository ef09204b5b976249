package sep

import (
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model"
)

// A precision and the factor beside which it is stored do not change each other.
func TestPrecisionBesideFactor(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for _, m := range []int{1, 2, 3, 8, 13} {
		b := &Bank{cfg: Config{Inducing: m}, view: &model.Posterior{Bank: []model.Gaussian{{M: m}}}, state: state{sites: []horizon{{diagonal: make([]float64, 2*m)}}}}
		b.view.Bank[0].Reserve(2)
		b.view.Bank[0].Grow()
		b.view.Bank[0].Grow()
		var a, u [2][]float64 // dense copies
		for k := range a {
			a[k], u[k] = make([]float64, m*m), b.view.Bank[0].U[k*m*m:(k+1)*m*m]
			for i := range m {
				for j := range i + 1 {
					a[k][i*m+j], u[k][i*m+j] = rng.NormFloat64(), rng.NormFloat64()
				}
			}
		}
		factors := slices.Clone(lowerTriangles(b.view.Bank[0].U, m))
		for k := range a {
			b.precision(0, k).store(a[k])
		}
		pack := make([]float64, 2*packed(m))
		if rest := b.precision(0, 1).pack(b.precision(0, 0).pack(pack)); len(rest) != 0 {
			t.Errorf("M = %d: %d elements of %d are left", m, len(rest), len(pack))
		}
		if want := slices.Concat(lowerTriangles(a[0], m), lowerTriangles(a[1], m)); !slices.Equal(pack, want) {
			t.Errorf("M = %d: packed %v, want %v", m, pack, want)
		}
		for k := range a {
			b.precision(0, k).fade(0.5)
			got := make([]float64, m*m)
			b.precision(0, k).load(got)
			for i, v := range a[k] {
				if got[i] != v/2 {
					t.Fatalf("M = %d: faded %v, want half of %v", m, got, a[k])
				}
			}
			b.precision(0, k).clear()
		}
		b.precision(0, 1).unpack(b.precision(0, 0).unpack(pack))
		if got := lowerTriangles(b.view.Bank[0].U, m); !slices.Equal(got, factors) {
			t.Errorf("M = %d: the factors became %v, were %v", m, got, factors)
		}
		for k := range a {
			b.precision(0, k).load(u[k]) // in place of the factor, as a refresh does
			if got := lowerTriangles(u[k], m); !slices.Equal(got, lowerTriangles(a[k], m)) {
				t.Errorf("M = %d: restored %v, want %v", m, got, a[k])
			}
		}
	}
}

// lowerTriangles returns the elements of the lower triangles of a stack of M×M matrices.
func lowerTriangles(a []float64, m int) (all []float64) {
	for ; len(a) > 0; a = a[m*m:] {
		for i := range m {
			all = append(all, a[i*m:i*m+i+1]...)
		}
	}
	return all
}
