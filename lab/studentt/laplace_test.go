package studentt

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/lab/labtest"
)

// The mode is a maximum of the objective, by differences of a direct evaluation.
func TestLaplaceFindsTheMode(t *testing.T) {
	const n, nu = 6, 3.0
	k, y := squared(n, 0.4, 2), []int{0, 0, 1, 1, 0, 1}
	l, err := LaplaceRelaxed(k, y, nu)
	if err != nil {
		t.Fatal(err)
	}
	var c mat.Cholesky
	c.Factorize(k)
	order := 1 + 2/(nu+n)
	psi := math.Exp((1 - order) * ((&relaxed{nu: nu}).normaliser(n) - 0.5*c.LogDet()))
	phi := func(f []float64) float64 {
		v, solved := mat.NewVecDense(n, f), new(mat.VecDense)
		if err := c.SolveVecTo(solved, v); err != nil {
			t.Fatal(err)
		}
		sum := (psi*(1+mat.Dot(v, solved)/nu) - 1) / (1 - order)
		for i, label := range y {
			p := 1 / (1 + math.Exp(-(2*float64(label)-1)*f[i]))
			sum += (math.Pow(p, 1-order) - 1) / (1 - order)
		}
		return sum
	}
	for i, slope := range labtest.Differences(l.F, 1e-5, phi) {
		if !(math.Abs(slope) < 1e-5) {
			t.Errorf("slope %g of the objective in f_%d at the mode", slope, i)
		}
	}
}

// Over a grid of kernels the printed evidence has its maximum at the smallest amplitude, and
// the corrected one at the shortest lengthscale: neither learns from labels that a smooth
// function of amplitude 5 gave.
func TestLaplaceCollapses(t *testing.T) {
	const n, nu = 40, 3.0
	r := rand.New(rand.NewPCG(2, 0))
	var c mat.Cholesky
	if !c.Factorize(squared(n, 0.25, 5)) {
		t.Fatal("no factor")
	}
	var l mat.TriDense
	c.LTo(&l)
	e := mat.NewVecDense(n, nil)
	for i := range n {
		e.SetVec(i, r.NormFloat64())
	}
	e.MulVec(&l, e)
	y := make([]int, n)
	for i := range y {
		if r.Float64() < 1/(1+math.Exp(-e.AtVec(i))) {
			y[i] = 1
		}
	}
	type best struct{ value, ell, amp float64 }
	printed, corrected := best{value: math.Inf(-1)}, best{value: math.Inf(-1)}
	for _, ell := range []float64{0.01, 0.05, 0.25, 1} {
		for _, amp := range []float64{0.01, 0.2, 5, 100} {
			a, err := LaplaceRelaxed(squared(n, ell, amp), y, nu)
			if err != nil {
				t.Fatal(err)
			}
			if a.Printed > printed.value {
				printed = best{a.Printed, ell, amp}
			}
			if a.Corrected > corrected.value {
				corrected = best{a.Corrected, ell, amp}
			}
		}
	}
	t.Logf("printed: lengthscale %g, amplitude %g; corrected: %g, %g", printed.ell, printed.amp, corrected.ell, corrected.amp)
	if printed.amp > 0.01 {
		t.Errorf("as printed the best amplitude is %g, want the smallest", printed.amp)
	}
	if corrected.ell > 0.01 {
		t.Errorf("corrected the best lengthscale is %g, want the shortest", corrected.ell)
	}
}

// squared is the kernel of n points at equal distances in [0, 1].
func squared(n int, ell, amp float64) *mat.SymDense {
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(i) / float64(n-1)
	}
	p := isotropic([][]float64{{0}}, math.Log(ell), math.Log(amp), 0)
	k := lab.Covariance(&p, x, x)
	s := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			s.SetSym(i, j, k.At(i, j))
		}
		s.SetSym(i, i, amp*(1+1e-6))
	}
	return s
}
