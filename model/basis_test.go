package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The tasks of a basis, in any order, have the bits of Set and of the first order, and their numbers
// are the kernel's.
func TestBasisByTasks(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const d = 5
	for _, m := range []int{1, 7, 23, 24, 47, 50, 100} {
		p := NewParams(m, d)
		for i := range p.Z() {
			p.Z()[i] = rng.NormFloat64()
		}
		for j := range p.LogEll() {
			p.LogEll()[j] = 0.5 * rng.NormFloat64()
		}
		*p.LogAmp(), *p.LogNoise(), *p.LogitEps() = 0.3, -2, -4
		whole, parts := NewBasis(m, d), NewBasis(m, d)
		if _, err := whole.Set(&p); err != nil {
			t.Fatal(err)
		}
		parts.Begin(&p)
		for i := RowTasks(m) - 1; i >= 0; i-- {
			parts.SetRows(i)
		}
		if _, err := parts.Factor(); err != nil || !slices.Equal(whole.L, parts.L) {
			t.Errorf("M = %d: the tasks' factor differs from that of Set (%v)", m, err)
		}
		z := slices.Clone(p.Z())
		slices.Reverse(z)
		dst, zs, zz := make([]float64, m*m), make([]float64, m*d), make([]float64, m)
		want := slices.Clone(dst)
		whole.ScaleTo(zs, zz, z)
		for i := range RowTasks(m) {
			whole.CrossRows(i, want, zs, zz)
		}
		for i := RowTasks(m) - 1; i >= 0; i-- {
			whole.CrossRows(i, dst, zs, zz)
		}
		if !slices.Equal(dst, want) {
			t.Errorf("M = %d: the covariance differs with the order of the tasks", m)
		}
		kernel := func(a, b []float64) float64 {
			var sum float64
			for j := range a {
				diff := (a[j] - b[j]) / math.Exp(p.LogEll()[j])
				sum += diff * diff
			}
			return math.Exp(*p.LogAmp() - sum/2)
		}
		own := whole.Covariance(make([]float64, m*m))
		for i := range m {
			for j := range m {
				a, b := p.Z()[i*d:(i+1)*d], p.Z()[j*d:(j+1)*d]
				if got, want := own[i*m+j], kernel(a, b); math.Abs(got-want) > 1e-12 {
					t.Fatalf("M = %d: c(z_%d, z_%d) is %v, want %v", m, i, j, got, want)
				}
				if got, want := dst[i*m+j], kernel(a, z[j*d:(j+1)*d]); math.Abs(got-want) > 1e-12 {
					t.Fatalf("M = %d: covariance %d, %d is %v, want %v", m, i, j, got, want)
				}
			}
		}
	}
}
