package online

import (
	"math"

	"edge/model"
	"edge/model/dense"
)

// Bounds that keep a site proper whatever the data (and I + Σ s1·w·wᵀ ≥ I).
const (
	minTilted = 0.05 // of 1 − h·v: how far one site may shrink a variance
	minCavity = 0.01 // of 1 − s1·v: how far removing a site may widen one
)

// cavity removes the site (s1, s2) from the marginal N(mean, v) of w·e_k.
//
//	e = max(1 − s1·v, 0.01)    v_cav = v/e    a_cav = (mean − v·s2)/e
//
// Source: Minka (2001), eq. for Gaussian division, in one dimension.
func cavity(mean, v, s1, s2 float64) (a, vcav, e float64) {
	e = max(1-s1*v, minCavity)
	return (mean - v*s2) / e, v / e, e
}

// site is one observation's likelihood factor, approximated by one Gaussian
// factor exp(−½·s1·f² + s2·f) in f = w·e_k for each class. Its slices hold C
// values each.
type site struct {
	a, v, t []float64 // in: cavity means and variances of w·e_k; t = q + v
	g, h, d []float64 // ∂log Z/∂a, −∂²log Z/∂a², ∂log Z/∂t, before clipping
	s1, s2  []float64 // out: the new site
	p       []float64 // cavity probabilities, scratch
	alpha   []float64 // +Inf at the label
	beta, c []float64 // derivatives of log Φ(α)
	grid    model.Grid
	r       float64 // probability that the label is right
	py      float64 // cavity probability of the label
}

func (s *site) resize(c int) {
	for _, f := range []*[]float64{&s.a, &s.v, &s.t, &s.g, &s.h, &s.d, &s.s1, &s.s2, &s.p, &s.alpha, &s.beta, &s.c} {
		if cap(*f) < c {
			*f = make([]float64, c, c+c/4)
		}
		*f = (*f)[:c]
	}
}

// update computes the site of label y from the cavity in a, v and t.
//
//	α_k = (a_y − a_k)/√B_k,   B_k = t_y + t_k,   log Z = Σ_{k≠y} log Φ(α_k)
//
// With eps > 0 the label is wrong with that probability: the derivatives are
// those of log((1−ε)Z + ε/C), with the responsibility
//
//	r = (1−ε)p/((1−ε)p + ε/C)
//
// taken from the cavity probability p = py of the label rather than from the
// product Z, which is far too small for many classes. The C−1 pairwise factors
// of one observation share one cavity (the paper has one for each), so that the
// sites of a class add up to one.
//
// Source: Villacampa-Calvo & Hernández-Lobato (2017), eqs. 6-8 and supplement;
// the robust derivatives by the chain rule.
func (s *site) update(y int, eps, py float64) {
	c := len(s.a)
	for k := range c {
		s.d[k] = 1 / (s.t[y] + s.t[k])
		s.alpha[k] = (s.a[y] - s.a[k]) * math.Sqrt(s.d[k])
	}
	s.alpha[y] = math.Inf(1)
	dense.Probit(s.beta, s.c, s.alpha)
	var gy, hy, dy float64
	for k := range c {
		if k == y {
			continue
		}
		inv := s.d[k]
		g, h, d := s.beta[k]*math.Sqrt(inv), s.c[k]*inv, -0.5*s.beta[k]*s.alpha[k]*inv
		s.g[k], s.h[k], s.d[k] = -g, h, d
		gy, hy, dy = gy+g, hy+h, dy+d
	}
	s.g[y], s.h[y], s.d[y] = gy, hy, dy
	s.r, s.py = 1, py
	if eps > 0 {
		right := (1 - eps) * py
		s.r = right / (right + eps/float64(c))
		for k := range c {
			s.h[k] = s.r*s.h[k] - s.r*(1-s.r)*s.g[k]*s.g[k]
			s.g[k] *= s.r
			s.d[k] *= s.r
		}
	}
	for k := range c {
		h := max(s.h[k], 0)
		e := max(1-h*s.v[k], minTilted)
		s.s1[k] = h / e
		s.s2[k] = (s.g[k] + h*s.a[k]) / e
	}
}

// logZ returns log Z = Σ_{k≠y} log Φ(α_k) of the last update, without label noise.
func (s *site) logZ() (sum float64) {
	dense.LogPhi(s.beta, s.alpha)
	for _, v := range s.beta {
		sum += v
	}
	return sum
}

// probability returns the cavity probability of label y. For two classes it is
// Z itself.
func (s *site) probability(y int) float64 {
	s.grid.Probs(s.p, s.a, s.t, model.Coarse)
	return s.p[y]
}
