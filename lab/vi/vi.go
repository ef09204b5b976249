// Package vi is scalable variational inference: q(e_k) = N(m_k, R_k R_kᵀ) maximises a lower
// bound of the log evidence of the robust likelihood, which is 1−ε+ε/C for the label whose
// latent is the largest and ε/C for the others,
//
//	ELBO = (N/n) Σ E_i − Σ KL_k,  E_i = log(ε/C) + Λ p_i,  Λ = log(1−ε+ε/C) − log(ε/C)
//
// with p_i the probability that y_i is the largest under q. Residual variance and noise are
// inside the expectation, so that the bound pays for them. It rewards certainty: the mean of
// the log is seen, not the log of the mean. That its predictions are too certain where
// classes overlap is a property of the objective. It can have several optima.
//
// Batch maximises the bound by L-BFGS over q and the parameters together, Stochastic by Adam
// on minibatches, Natural by natural gradients on q with steps of the parameters between.
//
// Source: Hensman, Matthews & Ghahramani (AISTATS 2015); Villacampa-Calvo &
// Hernández-Lobato (ICML 2017), Section 4.
package vi

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/model"
)

// VI is the approximation on all rows, or on a minibatch of them.
type VI struct {
	*lab.Gaussians
	Weight float64 // N/n
	Eps    float64

	expected []float64  // E_i
	g, t     *mat.Dense // its derivatives in mean and variance of the latents
	win      *model.Win
}

// New returns q = N(0, I) on data, each row of which stands for itself.
func New(data *lab.Data, p model.Params, eps float64, nodes int) (*VI, error) {
	q, err := lab.NewGaussians(data, p)
	if err != nil {
		return nil, err
	}
	v := &VI{Gaussians: q, Eps: eps, win: model.NewWin(nodes)}
	v.setRows(data, 1)
	return v, nil
}

// setRows moves to other rows, each of which stands for weight rows.
func (v *VI) setRows(data *lab.Data, weight float64) {
	v.Weight = weight
	v.SetRows(data)
	if len(v.expected) != data.N() {
		v.expected, v.g, v.t = make([]float64, data.N()), lab.NewTable(data), lab.NewTable(data)
	}
}

// expect computes E, G and T of all rows under q.
func (v *VI) expect() {
	least, span := levels(v.Eps, v.C)
	t := make([]float64, v.C)
	for i, y := range v.Y {
		for k := range t {
			t[k] = v.Q.At(i, k) + v.Var.At(i, k)
		}
		g, dt := v.g.RawRowView(i), v.t.RawRowView(i)
		p := span * math.Exp(v.win.LogProb(v.Mean.RawRowView(i), t, y, g, dt))
		v.expected[i] = least + p
		for k := range t {
			g[k], dt[k] = p*g[k], p*dt[k]
		}
	}
}

// ExpectedLog is E[log p(y)] of a label that is the largest with probability p. The bound
// contains it; predictions are scored by log E[p(y)].
func (v *VI) ExpectedLog(p float64) float64 {
	least, span := levels(v.Eps, v.C)
	return least + span*p
}

// levels are log(ε/C) and Λ.
func levels(eps float64, c int) (least, span float64) {
	e := eps / float64(c)
	return math.Log(e), math.Log(1-eps+e) - math.Log(e)
}

// KL is the divergence of q from the prior.
func (v *VI) KL() float64 {
	n := v.Norms()
	return n.KL()
}

// Bound returns the ELBO and its derivatives.
func (v *VI) Bound() (elbo float64, d lab.Derivatives) {
	v.expect()
	for _, e := range v.expected {
		elbo += v.Weight * e
	}
	elbo -= v.KL()
	var g, t mat.Dense
	g.Scale(v.Weight, v.g)
	t.Scale(v.Weight, v.t)
	return elbo, v.Derivatives(&g, &t, lab.FromPrior())
}

// SetVector moves q and the parameters to a vector of the optimisers. The function that it
// returns is Bound in the same coordinates.
func (v *VI) SetVector(x []float64) (bound func() (float64, []float64), err error) {
	flat, err := v.Gaussians.SetVector(x)
	if err != nil {
		return nil, err
	}
	return func() (float64, []float64) {
		elbo, d := v.Bound()
		return elbo, flat(d)
	}, nil
}

// Predict returns the probabilities of the labels as they are reported, n×C.
func (v *VI) Predict(x []float64) (*mat.Dense, error) {
	mean, variance := v.Latent(x)
	return lab.Robust(lab.Probabilities(mean, variance), v.Eps), nil
}
