package studentt

import (
	"math"

	"edge/model/dense"
)

// Link is how a label depends on the latents.
type Link int

const (
	// Logistic has one latent for two classes, p(y = 1 | f) = 1/(1 + e^−f).
	Logistic Link = iota
	// Pairs has a latent for each class, of noise v_k, and the factors
	// Φ((f_y − f_k)/√(v_y + v_k)) of all k ≠ y.
	Pairs
)

// growth is the power of |d| as which −log p grows for d → −∞.
func (l Link) growth() float64 {
	if l == Logistic {
		return 1
	}
	return 2
}

// width is the distance of differences within which a factor bends.
func (l Link) width(noise float64) float64 {
	if l == Logistic {
		return 1
	}
	return math.Sqrt(noise)
}

// factors computes log p and its derivative at the differences d. noise is the variance of a
// difference; the logistic link has its own. scratch is as long as d, twice.
func (l Link) factors(logP, slope, d []float64, noise float64, scratch []float64) {
	if l == Logistic {
		for i, v := range d {
			e := math.Exp(-math.Abs(v))
			logP[i], slope[i] = min(v, 0)-math.Log1p(e), 1/(1+e)
			if v > 0 {
				slope[i] *= e
			}
		}
		return
	}
	root := math.Sqrt(noise)
	alpha, curvature := scratch[:len(d)], scratch[len(d):2*len(d)]
	for i, v := range d {
		alpha[i] = v / root
	}
	dense.LogPhi(logP, alpha)
	dense.Probit(slope, curvature, alpha)
	for i := range slope {
		slope[i] /= root
	}
}

// marginals are the latents at some rows per unit of the scale, which s multiplies.
type marginals struct {
	link   Link
	y      []int // N, empty if the labels are unknown
	c      int   // latents
	mean   []float64
	spread []float64 // both N×C; variance with the residual, without noise
	noise  []float64 // C
}

// expected is Σ E[log p(y_i | f_i)] with its derivatives.
type expected struct {
	sum          float64
	mean, spread []float64 // N×C
	noise        []float64 // C, in log v_k
	scale, dof   float64   // in the factor of the spread, and in the degrees of freedom
}

func newExpected(m *marginals) *expected {
	return &expected{mean: make([]float64, len(m.mean)), spread: make([]float64, len(m.mean)), noise: make([]float64, m.c)}
}

// add adds weight times o, but to the sum.
func (e *expected) add(weight float64, o *expected) {
	dense.Axpy(weight, o.mean, e.mean)
	dense.Axpy(weight, o.spread, e.spread)
	dense.Axpy(weight, o.noise, e.noise)
}

// term is one latent in a difference, with its sign.
type term struct {
	sign float64
	k    int
}

// differences calls f with the latents whose sum each factor depends on: that of the label
// less that of another class, or the one latent with the sign of the label.
func (m *marginals) differences(f func(i int, terms []term)) {
	var pair [2]term
	for i, y := range m.y {
		if m.link == Logistic {
			pair[0] = term{2*float64(y) - 1, 0}
			f(i, pair[:1])
			continue
		}
		for k := range m.c {
			if k != y {
				pair = [2]term{{1, y}, {-1, k}}
				f(i, pair[:])
			}
		}
	}
}

// expect averages log_t p over the latents at location·mean + √(scale·spread) x, with x of
// the rules. log_t p = (p^(1−t) − 1)/(1−t), the log for t = 1. The derivatives are
//
//	in a mean    ± location E[p']
//	in a spread  ½ √(scale/B) E[p' x]
//	in scale     ½ √(B/scale) E[p' x]
//	in log v_k   −½ E[p' d] v_k/(v_y + v_k)
func (m *marginals) expect(r *rules, t, location, scale float64) *expected {
	e := newExpected(m)
	var d, logP, slope, scratch []float64
	m.differences(func(i int, terms []term) {
		var mean, b, noise float64
		for _, u := range terms {
			mean += u.sign * m.mean[i*m.c+u.k]
			b += m.spread[i*m.c+u.k]
			noise += m.noise[u.k]
		}
		sd := math.Sqrt(scale * b)
		rule := r.at(sd / m.link.width(noise))
		if n := len(rule.x); cap(d) < n {
			d, logP, slope, scratch = make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, 2*n)
		}
		d, logP, slope = d[:len(rule.x)], logP[:len(rule.x)], slope[:len(rule.x)]
		for j, x := range rule.x {
			d[j] = location*mean + sd*x
		}
		m.link.factors(logP, slope, d, noise, scratch)
		relax(t, logP, slope)
		var g, gx, gd float64
		for j, w := range rule.w {
			e.sum += w * logP[j]
			e.dof += rule.dw[j] * logP[j]
			g += w * slope[j]
			gx += w * slope[j] * rule.x[j]
			gd += w * slope[j] * d[j]
		}
		e.scale += 0.5 * math.Sqrt(b/scale) * gx
		for _, u := range terms {
			e.mean[i*m.c+u.k] += u.sign * location * g
			e.spread[i*m.c+u.k] += 0.5 * math.Sqrt(scale/b) * gx
			if m.link == Pairs {
				e.noise[u.k] -= 0.5 * gd * m.noise[u.k] / noise
			}
		}
	})
	return e
}

// relax turns log p and its slope into log_t p and its slope.
func relax(t float64, logP, slope []float64) {
	if t == 1 {
		return
	}
	for i, l := range logP {
		p := math.Exp((1 - t) * l)
		logP[i], slope[i] = (p-1)/(1-t), p*slope[i]
	}
}
