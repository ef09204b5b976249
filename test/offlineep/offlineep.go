// Package offlineep is expectation propagation on a fixed set, with an explicit site for
// each observation, as an oracle for tests.
package offlineep

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model"
	"edge/model/dense"
	"edge/online/sep"
)

// EP is expectation propagation on n observations, composed of sep.Site, sep.Cavity and
// sep.Evidence.
type EP struct {
	Params    model.Params
	Posterior model.Gaussian
	X         []float64 // n×D, standardised
	Y         []int     // n
	C         int
	S1, S2    []float64 // n×C

	basis    *model.Basis
	eps      float64
	kx, w, q []float64
}

// New returns the prior: sites of 0.
func New(t *testing.T, p model.Params, x []float64, y []int, c int, eps float64) *EP {
	t.Helper()
	n, m := len(y), p.M
	e := &EP{
		Params: p, Posterior: model.Gaussian{M: m}, X: x, Y: y, C: c, S1: make([]float64, n*c), S2: make([]float64, n*c),
		basis: model.NewBasis(m, p.D), eps: eps, kx: make([]float64, n*m), w: make([]float64, n*m), q: make([]float64, n),
	}
	for range c {
		e.Posterior.Grow()
	}
	if _, err := e.basis.Set(&p); err != nil {
		t.Fatal(err)
	}
	e.basis.FeaturesTo(e.kx, e.w, e.q, n, x, make([]float64, n*p.D), make([]float64, n))
	return e
}

// Marginal returns mean and variance of w·e_k.
func (e *EP) Marginal(i, k int) (mean, v float64) {
	m := e.Params.M
	w := e.w[i*m : (i+1)*m]
	u := make([]float64, m)
	dense.MulTriTrans(1, m, w, m, e.Posterior.U[k*m*m:], m, u, m)
	return dense.Dot(w, e.Posterior.Mean[k*m:(k+1)*m]), dense.Dot(u, u)
}

// Sweep replaces all sites in parallel, undamped, and returns Σ log Z_i and the largest change.
func (e *EP) Sweep(t *testing.T, visit func(i int, s *sep.Site)) (logZ, change float64) {
	t.Helper()
	m := e.Params.M
	var s sep.Site
	s.Resize(e.C)
	s1, s2 := make([]float64, len(e.S1)), make([]float64, len(e.S2))
	for i, y := range e.Y {
		for k := range e.C {
			mean, v := e.Marginal(i, k)
			s.A[k], s.V[k], _ = sep.Cavity(mean, v, e.S1[i*e.C+k], e.S2[i*e.C+k])
			s.T[k] = e.q[i] + s.V[k]
		}
		s.Update(y, 0, 1)
		if e.eps > 0 {
			s.Update(y, e.eps, math.Exp(s.LogZ()))
			logZ += math.Log((1-e.eps)*math.Exp(s.LogZ()) + e.eps/float64(e.C))
		} else {
			logZ += s.LogZ()
		}
		copy(s1[i*e.C:], s.S1)
		copy(s2[i*e.C:], s.S2)
		if visit != nil {
			visit(i, &s)
		}
	}
	for i := range s1 {
		change = max(change, math.Abs(s1[i]-e.S1[i]), math.Abs(s2[i]-e.S2[i]))
	}
	e.S1, e.S2 = s1, s2
	bt, scratch := make([]float64, m), make([]float64, m)
	for k := range e.C {
		clear(e.Posterior.U[k*m*m : (k+1)*m*m])
		dense.WeightedGram(len(e.Y), m, e.S1[k:], e.C, e.w, m, e.Posterior.U[k*m*m:], m)
		clear(bt)
		for i := range e.Y {
			dense.Axpy(e.S2[i*e.C+k], e.w[i*m:(i+1)*m], bt)
		}
		if err := e.Posterior.Factor(k, bt, scratch); err != nil {
			t.Fatal(err)
		}
	}
	return logZ, change
}

// Converge sweeps until no site moves any more.
func (e *EP) Converge(t *testing.T) {
	t.Helper()
	for range 500 {
		if _, change := e.Sweep(t, nil); change < 1e-13 {
			return
		}
	}
	t.Fatal("expectation propagation did not converge in 500 sweeps")
}

// Gradient is that of Σ log Z_i with the whitened cavities held fixed.
func (e *EP) Gradient(t *testing.T) []float64 {
	t.Helper()
	m, n := e.Params.M, len(e.Y)
	var ev sep.Evidence
	ev.Resize(n, m, e.Params.D)
	u, vw := make([]float64, m), make([]float64, m)
	s1, s2 := slices.Clone(e.S1), slices.Clone(e.S2)
	g := model.Gaussian{M: m, U: slices.Clone(e.Posterior.U), Mean: slices.Clone(e.Posterior.Mean)}
	e.Sweep(t, func(i int, s *sep.Site) {
		w := e.w[i*m : (i+1)*m]
		for k := range e.C {
			dense.MulTriTrans(1, m, w, m, g.U[k*m*m:], m, u, m)
			dense.MulTri(1, m, u, m, g.U[k*m*m:], m, vw, m)
			mean, v := dense.Dot(w, g.Mean[k*m:(k+1)*m]), dense.Dot(u, u)
			_, _, cut := sep.Cavity(mean, v, s1[i*e.C+k], s2[i*e.C+k])
			dense.Axpy(s.G[k], g.Mean[k*m:(k+1)*m], ev.W[i*m:(i+1)*m])
			dense.Axpy((s.G[k]*(s1[i*e.C+k]*mean-s2[i*e.C+k])+2*s.D[k])/cut, vw, ev.W[i*m:(i+1)*m])
			ev.Q[i] += s.D[k]
		}
	})
	ev.Backprop(e.basis, &e.Params, n, e.X, e.kx, e.w)
	return ev.Grad[:len(ev.Grad)-1]
}

// LogZq is the approximate log evidence at the fixed point,
// Σ_k log N_k + Σ_i [log Z_i − Σ_k D_ik].
func (e *EP) LogZq(t *testing.T) float64 {
	m := e.Params.M
	var total float64
	for k := range e.C {
		bt, y := make([]float64, m), make([]float64, m)
		for i := range e.Y {
			dense.Axpy(e.S2[i*e.C+k], e.w[i*m:(i+1)*m], bt)
		}
		u := e.Posterior.U[k*m*m : (k+1)*m*m]
		dense.MulTriTrans(1, m, bt, m, u, m, y, m)
		total += 0.5 * dense.Dot(y, y)
		for i := range m {
			total += math.Log(u[i*m+i])
		}
	}
	s1, s2 := slices.Clone(e.S1), slices.Clone(e.S2)
	logZ, _ := e.Sweep(t, func(i int, s *sep.Site) {
		for k := range e.C {
			c1, c2, a, v := s1[i*e.C+k], s2[i*e.C+k], s.A[k], s.V[k]
			total -= -0.5*math.Log1p(c1*v) + 0.5*(c2*c2*v+2*c2*a-c1*a*a)/(1+c1*v)
		}
	})
	return total + logZ
}

// Random returns the prior for n random observations of D features and C classes, with M
// random inducing points.
func Random(t *testing.T, n, m, d, c int, eps float64, seed uint64) *EP {
	rng := rand.New(rand.NewPCG(seed, 7))
	p := model.NewParams(m, d)
	for i := range p.Z() {
		p.Z()[i] = rng.NormFloat64()
	}
	for i := range p.LogEll() {
		p.LogEll()[i] = 0.3 * rng.NormFloat64()
	}
	*p.LogAmp(), *p.LogNoise(), *p.LogitEps() = 0.2, -1.5, math.Inf(-1)
	x, y := make([]float64, n*d), make([]int, n)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	for i := range y {
		y[i] = i % c
	}
	return New(t, p, x, y, c, eps)
}
