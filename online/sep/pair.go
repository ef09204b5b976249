package sep

import (
	"math"

	"edge/model/dense"
)

// PairSite is the likelihood factors of one observation of class y, one for each
// other class k, approximated by a Gaussian factor exp(−½·s1·f² + s2·f) in f = w·e_k
// and another, exp(−½·p1·f² + p2·f), in f = w·e_y. The site of class y is the sum of
// p over the pairs. Its slices hold C values each; P1[y] and P2[y] are 0.
type PairSite struct {
	factors
	LA, LV  []float64 // input: cavity means and variances of w·e_y without the pair of class k alone
	LT      []float64 // input: q_y + LV
	G, H, D []float64 // of the pair of k: ∂log Z/∂a of the label's side, −∂²log Z/∂a², ∂log Z/∂t
	P1, P2  []float64 // output: the label's side of each pair; S1 and S2 at y are their sums
}

// Resize makes room for c classes.
func (s *PairSite) Resize(c int) {
	s.resize(c, &s.LA, &s.LV, &s.LT, &s.G, &s.H, &s.D, &s.P1, &s.P2)
}

// Update computes the sites of an observation of class y.
//
//	α_k = (la_k − a_k)/√B_k,   B_k = lt_k + t_k,   log Z = Σ_{k≠y} log Φ(α_k)
//	g = β/√B,   h = β(β + α)/B,   β = N(α)/Φ(α)
//	class k:  s1 = h/e,   s2 = (h·a − g)/e,    e = 1 − h·v
//	label:    p1 = h/e,   p2 = (h·la + g)/e,   e = 1 − h·lv
//
// The first time, all pairs have the posterior before the observation as their
// cavity; their product is then matched at once, with e = 1 − lv·Σh. That is the
// merged site of Site, and assumed-density filtering; afterwards each pair is
// refined for itself.
//
// With eps > 0 the label is wrong with that probability: every pair's derivatives
// are those of Site.Update, with its responsibility r.
//
// Source: Villacampa-Calvo & Hernández-Lobato (2017), eqs. 6-8 and supplement;
// the robust derivatives by the chain rule.
func (s *PairSite) Update(y int, first bool, eps, py float64) {
	c := len(s.A)
	for k := range c {
		s.D[k] = 1 / (s.LT[k] + s.T[k])
		s.alpha[k] = (s.LA[k] - s.A[k]) * math.Sqrt(s.D[k])
	}
	s.alpha[y] = math.Inf(1)
	dense.Probit(s.beta, s.cut, s.alpha)
	s.judge(eps, py)
	r := s.R
	var total float64
	for k := range c {
		inv := s.D[k]
		g := s.beta[k] * math.Sqrt(inv)
		s.H[k] = max(r*s.cut[k]*inv-r*(1-r)*g*g, 0)
		s.D[k] = -0.5 * r * s.beta[k] * s.alpha[k] * inv
		s.G[k] = r * g
		if k != y {
			total += s.H[k]
		}
	}
	s.G[y], s.H[y], s.D[y] = 0, 0, 0
	together := max(1-total*s.V[y], minTilted)
	var p1, p2 float64
	for k := range c {
		g, h := s.G[k], s.H[k]
		e := max(1-h*s.V[k], minTilted)
		s.S1[k], s.S2[k] = h/e, (h*s.A[k]-g)/e
		if e = max(1-h*s.LV[k], minTilted); first {
			e = together
		}
		s.P1[k], s.P2[k] = h/e, (h*s.LA[k]+g)/e
		p1, p2 = p1+s.P1[k], p2+s.P2[k]
	}
	s.S1[y], s.S2[y] = p1, p2
}
