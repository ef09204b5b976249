package lab

import "gonum.org/v1/gonum/mat"

// classFloor bounds 1 − h v of a site. Only the h of a product of pairs can reach 1/v.
const classFloor = 0.05

// ClassFactors are the factors of all observations, with one site for each observation and
// class, all from one cavity. eps is the probability that a label is wrong.
//
// A mixture with a wrong label can have h < 0; the site has precision 0 then, so that
// precisions stay positive definite, and gradients are no longer exact.
//
// Source: Hernández-Lobato et al. (2011), with the probability by quadrature.
type ClassFactors struct {
	LogZ    []float64  // N
	G, T    *mat.Dense // N×C, derivatives of log Z in means and variances
	A, V, E *mat.Dense // N×C, the cavities and their shares
	S1, S2  *mat.Dense // N×C, the sites that match the factors' moments
	Clipped int        // number of h < 0

	likelihood Likelihood
	eps        float64
}

// NewClassFactors makes room for the factors of all observations.
func NewClassFactors(d *Data, l Likelihood, eps float64) *ClassFactors {
	return &ClassFactors{
		LogZ: make([]float64, d.N()), G: NewTable(d), T: NewTable(d),
		A: NewTable(d), V: NewTable(d), E: NewTable(d), S1: NewTable(d), S2: NewTable(d),
		likelihood: l, eps: eps,
	}
}

// Update computes the factors from the marginals of the latents, with the sites in them,
// and the variance q of the factor itself, all N×C.
func (f *ClassFactors) Update(y []int, mean, variance, q, s1, s2 *mat.Dense) {
	c := mean.RawMatrix().Cols
	t, h := make([]float64, c), make([]float64, c)
	f.Clipped = 0
	for i, label := range y {
		for k := range c {
			a, v, e := Cavity(s1.At(i, k), s2.At(i, k), mean.At(i, k), variance.At(i, k))
			f.A.Set(i, k, a)
			f.V.Set(i, k, v)
			f.E.Set(i, k, e)
			t[k] = q.At(i, k) + v
		}
		g, dt := f.G.RawRowView(i), f.T.RawRowView(i)
		logZ := f.likelihood.LogZ(f.A.RawRowView(i), t, label, g, h, dt)
		f.LogZ[i] = robustly(f.eps, logZ, g, h, dt)
		for k := range c {
			if h[k] < 0 {
				f.Clipped, h[k] = f.Clipped+1, 0
			}
			s1, s2 := Site(g[k], h[k], f.A.At(i, k), f.V.At(i, k), classFloor)
			f.S1.Set(i, k, s1)
			f.S2.Set(i, k, s2)
		}
	}
}
