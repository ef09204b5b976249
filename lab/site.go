package lab

import "math"

// minShare is the smallest share of a marginal's precision that a site may leave to its
// cavity.
const minShare = 0.01

// Cavity removes a site exp(−½ s1 f² + s2 f) from a marginal N(mean, v):
//
//	e = max(1 − s1 v, 0.01),   v_c = v/e,   a_c = (mean − v s2)/e
func Cavity(s1, s2, mean, v float64) (a, vc, e float64) {
	e = max(1-s1*v, minShare)
	return (mean - v*s2) / e, v / e, e
}

// Site is the Gaussian that, times its cavity N(a, v), has the moments of the tilted
// distribution, from g = ∂log Z/∂a and h = −∂²log Z/∂a²:
//
//	E = max(1 − h v, floor),   s1 = h/E,   s2 = (g + h a)/E
func Site(g, h, a, v, floor float64) (s1, s2 float64) {
	e := max(1-h*v, floor)
	return h / e, (g + h*a) / e
}

// Normaliser is D = log ∫ N(f; a, v) exp(−½ s1 f² + s2 f) df, with its derivatives in a
// and v:
//
//	D = −½ log(1 + s1 v) + (s2² v + 2 s2 a − s1 a²) / (2 (1 + s1 v))
func Normaliser(s1, s2, a, v float64) (d, da, dv float64) {
	o := 1 + s1*v
	da = (s2 - s1*a) / o
	return -0.5*math.Log(o) + (s2*s2*v+2*s2*a-s1*a*a)/(2*o), da, 0.5 * (da*da - s1/o)
}
