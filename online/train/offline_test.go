package train

import (
	"math"
	"testing"

	"edge/model"
	"edge/model/dense"
	"edge/online/sep"
)

// offlineEP is expectation propagation on a fixed set with explicit sites for
// every observation, composed of sep.Site and sep.Cavity.
type offlineEP struct {
	p      model.Params
	b      *model.Basis
	g      model.Gaussian
	x      []float64
	y      []int
	c      int
	eps    float64
	kx, w  []float64
	q      []float64
	s1, s2 []float64 // n×C
	// r from the product of Φ rather than from the cavity probability
}

func newOffline(t *testing.T, p model.Params, x []float64, y []int, c int, eps float64) *offlineEP {
	t.Helper()
	n, m := len(y), p.M
	e := &offlineEP{p: p, b: model.NewBasis(m, p.D), g: model.Gaussian{M: m}, x: x, y: y, c: c, eps: eps,
		kx: make([]float64, n*m), w: make([]float64, n*m), q: make([]float64, n), s1: make([]float64, n*c), s2: make([]float64, n*c)}
	for range c {
		e.g.Grow()
	}
	if _, err := e.b.Set(&p); err != nil {
		t.Fatal(err)
	}
	e.b.FeaturesTo(e.kx, e.w, e.q, n, x, make([]float64, n*p.D), make([]float64, n))
	return e
}

// marginal returns mean and variance of w·e_k.
func (e *offlineEP) marginal(i, k int) (mean, v float64) {
	m := e.p.M
	w := e.w[i*m : (i+1)*m]
	u := make([]float64, m)
	dense.MulTriTrans(1, m, w, m, e.g.U[k*m*m:], m, u, m)
	return dense.Dot(w, e.g.Mean[k*m:(k+1)*m]), dense.Dot(u, u)
}

// sweep replaces all sites in parallel, undamped, and returns Σ log Z_i and the largest change.
func (e *offlineEP) sweep(t *testing.T, visit func(i int, s *sep.Site)) (logZ, change float64) {
	t.Helper()
	m := e.p.M
	var s sep.Site
	s.Resize(e.c)
	s1, s2 := make([]float64, len(e.s1)), make([]float64, len(e.s2))
	for i, y := range e.y {
		for k := range e.c {
			mean, v := e.marginal(i, k)
			s.A[k], s.V[k], _ = sep.Cavity(mean, v, e.s1[i*e.c+k], e.s2[i*e.c+k])
			s.T[k] = e.q[i] + s.V[k]
		}
		s.Update(y, 0, 1)
		if e.eps > 0 {
			s.Update(y, e.eps, math.Exp(s.LogZ()))
			logZ += math.Log((1-e.eps)*math.Exp(s.LogZ()) + e.eps/float64(e.c))
		} else {
			logZ += s.LogZ()
		}
		copy(s1[i*e.c:], s.S1)
		copy(s2[i*e.c:], s.S2)
		if visit != nil {
			visit(i, &s)
		}
	}
	for i := range s1 {
		change = max(change, math.Abs(s1[i]-e.s1[i]), math.Abs(s2[i]-e.s2[i]))
	}
	e.s1, e.s2 = s1, s2
	bt, scratch := make([]float64, m), make([]float64, m)
	for k := range e.c {
		clear(e.g.U[k*m*m : (k+1)*m*m])
		dense.WeightedGram(len(e.y), m, e.s1[k:], e.c, e.w, m, e.g.U[k*m*m:], m)
		clear(bt)
		for i := range e.y {
			dense.Axpy(e.s2[i*e.c+k], e.w[i*m:(i+1)*m], bt)
		}
		if err := e.g.Factor(k, bt, scratch); err != nil {
			t.Fatal(err)
		}
	}
	return logZ, change
}

func (e *offlineEP) converge(t *testing.T) {
	t.Helper()
	for range 500 {
		if _, change := e.sweep(t, nil); change < 1e-13 {
			return
		}
	}
	t.Fatal("expectation propagation did not converge in 500 sweeps")
}

// logZq is the approximate log evidence at the fixed point,
// Σ_k log N_k + Σ_i [log Z_i − Σ_k D_ik].
func (e *offlineEP) logZq(t *testing.T) float64 {
	m := e.p.M
	var total float64
	for k := range e.c {
		bt, y := make([]float64, m), make([]float64, m)
		for i := range e.y {
			dense.Axpy(e.s2[i*e.c+k], e.w[i*m:(i+1)*m], bt)
		}
		u := e.g.U[k*m*m : (k+1)*m*m]
		dense.MulTriTrans(1, m, bt, m, u, m, y, m)
		total += 0.5 * dense.Dot(y, y)
		for i := range m {
			total += math.Log(u[i*m+i])
		}
	}
	s1, s2 := append([]float64(nil), e.s1...), append([]float64(nil), e.s2...)
	logZ, _ := e.sweep(t, func(i int, s *sep.Site) {
		for k := range e.c {
			c1, c2, a, v := s1[i*e.c+k], s2[i*e.c+k], s.A[k], s.V[k]
			total -= -0.5*math.Log1p(c1*v) + 0.5*(c2*c2*v+2*c2*a-c1*a*a)/(1+c1*v)
		}
	})
	return total + logZ
}
