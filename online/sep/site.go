package sep

import (
	"math"

	"edge/model"
	"edge/model/dense"
)

// Bounds that keep a site proper for any data (and I + Σ s1·w·wᵀ ≥ I).
const (
	minTilted = 0.05 // of 1 − h·v: how far one site may shrink a variance

	// MinCavity bounds 1 − s1·v from below: how far removing a site may widen a
	// variance.
	MinCavity = 0.01
)

// Cavity removes the site (s1, s2) from the marginal N(mean, v) of w·e_k.
//
//	e = max(1 − s1·v, 0.01)    v_cav = v/e    a_cav = (mean − v·s2)/e
//
// Source: Minka (2001), eq. for Gaussian division, in one dimension.
func Cavity(mean, v, s1, s2 float64) (a, vcav, e float64) {
	e = max(1-s1*v, MinCavity)
	return (mean - v*s2) / e, v / e, e
}

// factors are the pairwise likelihood factors of one observation, with the part of
// the work that both kinds of sites share. Its slices hold C values each.
type factors struct {
	A, V, T   []float64 // input: cavity means and variances of w·e_k without the observation; T = q + V
	S1, S2    []float64 // output: the new site of each class
	R         float64   // output: probability that the label is right
	p         []float64 // cavity probabilities, scratch
	alpha     []float64 // +Inf at the label
	beta, cut []float64 // derivatives of log Φ(α)
	grid      model.Grid
}

// resize makes room for c classes, in more slices too.
func (s *factors) resize(c int, more ...*[]float64) {
	for _, f := range append(more, &s.A, &s.V, &s.T, &s.S1, &s.S2, &s.p, &s.alpha, &s.beta, &s.cut) {
		if cap(*f) < c {
			*f = make([]float64, c, c+c/4)
		}
		*f = (*f)[:c]
	}
}

// judge sets R from the cavity probability py of the label, which is wrong with
// probability eps.
func (s *factors) judge(eps, py float64) {
	s.R = 1
	if eps > 0 {
		right := (1 - eps) * py
		s.R = right / (right + eps/float64(len(s.A)))
	}
}

// LogZ returns log Z = Σ_{k≠y} log Φ(α_k) of the last update, without label noise.
func (s *factors) LogZ() (sum float64) {
	dense.LogPhi(s.beta, s.alpha)
	for _, v := range s.beta {
		sum += v
	}
	return sum
}

// Probability returns the probability of label y under the cavities without the
// observation. For two classes it is Z itself.
func (s *factors) Probability(y int) float64 {
	s.Probs(s.p, s.A, s.T, model.Coarse)
	return s.p[y]
}

// Probs stores the probability that each class has the largest latent value; see
// model.Grid.
func (s *factors) Probs(dst, mean, variance []float64, res model.Resolution) {
	s.grid.Probs(dst, mean, variance, res)
}

// Site is one observation's likelihood factor, approximated by one Gaussian
// factor exp(−½·s1·f² + s2·f) in f = w·e_k for each class. Its slices hold C
// values each.
type Site struct {
	factors
	G, H, D []float64 // ∂log Z/∂a, −∂²log Z/∂a², ∂log Z/∂t, before clipping
}

// Resize makes room for c classes.
func (s *Site) Resize(c int) { s.resize(c, &s.G, &s.H, &s.D) }

// Update computes the site of label y from the cavity in A, V and T.
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
func (s *Site) Update(y int, eps, py float64) {
	c := len(s.A)
	for k := range c {
		s.D[k] = 1 / (s.T[y] + s.T[k])
		s.alpha[k] = (s.A[y] - s.A[k]) * math.Sqrt(s.D[k])
	}
	s.alpha[y] = math.Inf(1)
	dense.Probit(s.beta, s.cut, s.alpha)
	var gy, hy, dy float64
	for k := range c {
		if k == y {
			continue
		}
		inv := s.D[k]
		g, h, d := s.beta[k]*math.Sqrt(inv), s.cut[k]*inv, -0.5*s.beta[k]*s.alpha[k]*inv
		s.G[k], s.H[k], s.D[k] = -g, h, d
		gy, hy, dy = gy+g, hy+h, dy+d
	}
	s.G[y], s.H[y], s.D[y] = gy, hy, dy
	s.match(eps, py)
}

// UpdateJoint computes the site of label y from the cavity in A, V and T, with the joint
// probability that f_y is the largest instead of the product of pairs, and returns its
// log:
//
//	log Z = log p,   h = g² − 2·∂log p/∂t
//
// The derivatives with eps > 0 are those of Update, with p itself in r.
//
// Source: Hernández-Lobato, Hernández-Lobato & Dupont (2011), with p by quadrature.
func (s *Site) UpdateJoint(y int, eps float64, win *model.Win) (logP float64) {
	logP = win.LogProb(s.A, s.T, y, s.G, s.D)
	for k, g := range s.G {
		s.H[k] = g*g - 2*s.D[k]
	}
	s.match(eps, math.Exp(logP))
	return logP
}

// match makes the derivatives in G, H and D those with label noise, and computes the
// sites.
func (s *Site) match(eps, py float64) {
	if s.judge(eps, py); eps > 0 {
		for k := range s.H {
			s.H[k] = s.R*s.H[k] - s.R*(1-s.R)*s.G[k]*s.G[k]
			s.G[k] *= s.R
			s.D[k] *= s.R
		}
	}
	for k := range s.H {
		h := max(s.H[k], 0)
		e := max(1-h*s.V[k], minTilted)
		s.S1[k] = h / e
		s.S2[k] = (s.G[k] + h*s.A[k]) / e
	}
}
