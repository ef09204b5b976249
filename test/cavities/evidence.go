// Package cavities computes the objective of the learner's gradients again, for their tests: the
// tilted evidence of samples whose whitened cavities are held fixed.
package cavities

import (
	"testing"

	"edge/model"
	"edge/model/dense"
)

// Evidence is Σ log Z_i of N samples as a function of the parameters, with the cavities of the C
// whitened latent functions held fixed.
type Evidence struct {
	M, D   int
	X      []float64      // N×D standardised inputs
	Y      []int          // N   latent functions of the labels
	Cavity model.Gaussian // of all samples
	Probs  []float64      // N   cavity probabilities of the labels, at the latest parameters

	// Site returns the cavity probability of label y and log Z, without label noise, by means,
	// variances and variances with noise of the C latent functions.
	Site func(mean, variance, noisy []float64, y int) (prob, logZ float64)
}

// At returns the evidence at the parameters theta.
func (e *Evidence) At(t testing.TB, theta []float64) (total float64) {
	t.Helper()
	m, n, c := e.M, len(e.Y), e.Cavity.Classes()
	p := model.Params{M: m, D: e.D, Theta: theta}
	groups := p.Groups()
	w, q := make([][]float64, groups), make([][]float64, groups)
	for g := range groups {
		basis, group := model.NewBasis(m, e.D), p.Group(g)
		if _, err := basis.Set(&group); err != nil {
			t.Fatal(err)
		}
		w[g], q[g] = make([]float64, n*m), make([]float64, n)
		basis.FeaturesTo(make([]float64, n*m), w[g], q[g], n, e.X, make([]float64, n*e.D), make([]float64, n))
	}
	mean, variance, noisy, u := make([]float64, c), make([]float64, c), make([]float64, c), make([]float64, m)
	e.Probs = e.Probs[:0]
	for i, y := range e.Y {
		for k := range c {
			g := min(k, groups-1)
			wi := w[g][i*m : (i+1)*m]
			dense.MulTriTrans(1, m, wi, m, e.Cavity.U[k*m*m:], m, u, m)
			mean[k], variance[k] = dense.Dot(wi, e.Cavity.Mean[k*m:(k+1)*m]), dense.Dot(u, u)
			noisy[k] = q[g][i] + variance[k]
		}
		prob, logZ := e.Site(mean, variance, noisy, y)
		e.Probs = append(e.Probs, prob)
		total += logZ
	}
	return total
}
