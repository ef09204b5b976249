package lab

import (
	"math"

	"edge/model"
	"edge/model/dense"
)

// Likelihood is the factor of one observation, a function of the latents of all classes.
type Likelihood interface {
	// LogZ returns log Z, the log of its mean over independent Gaussian latents of means a
	// and variances t, and stores the derivatives of log Z: g in a, −h twice in a, dt in t.
	LogZ(a, t []float64, y int, g, h, dt []float64) float64
}

// Joint is 1 where the label has the largest latent, else 0. Its log Z is log-concave in a,
// and h = g² − 2 dt, the textbook identity of a factor of Gaussian latents.
type Joint struct{ win *model.Win }

// NewJoint uses that number of nodes.
func NewJoint(nodes int) *Joint { return &Joint{model.NewWin(nodes)} }

// LogZ implements Likelihood.
func (j *Joint) LogZ(a, t []float64, y int, g, h, dt []float64) float64 {
	logP := j.win.LogProb(a, t, y, g, dt)
	for k := range a {
		h[k] = g[k]*g[k] - 2*dt[k]
	}
	return logP
}

// Product is the product of the probabilities that the label is above each other class, as
// if the pairs were independent: the factor of the learner. With α_k = (a_y − a_k)/√B_k,
// B_k = t_y + t_k, h_k = β(β+α)/B and h_y = Σ h_k are the derivatives pair by pair.
type Product struct{ root, alpha, logPhi, beta, t []float64 }

// LogZ implements Likelihood.
func (p *Product) LogZ(a, t []float64, y int, g, h, dt []float64) float64 {
	c := len(a)
	if len(p.alpha) != c {
		*p = Product{make([]float64, c), make([]float64, c), make([]float64, c), make([]float64, c), make([]float64, c)}
	}
	for k := range a {
		p.root[k] = math.Sqrt(t[y] + t[k])
		p.alpha[k] = (a[y] - a[k]) / p.root[k]
	}
	dense.LogPhi(p.logPhi, p.alpha)
	dense.Probit(p.beta, p.t, p.alpha)
	g[y], h[y], dt[y] = 0, 0, 0
	var logZ float64
	for k := range a {
		if k == y {
			continue
		}
		b := p.root[k] * p.root[k]
		g[k], h[k], dt[k] = -p.beta[k]/p.root[k], p.t[k]/b, -0.5*p.beta[k]*p.alpha[k]/b
		g[y], h[y], dt[y] = g[y]-g[k], h[y]+h[k], dt[y]+dt[k]
		logZ += p.logPhi[k]
	}
	return logZ
}

// robustly mixes a likelihood with a uniform label of probability eps, in place:
//
//	Z' = (1−ε) Z + ε/C,  r = (1−ε) Z/Z',  g' = r g,  dt' = r dt,  h' = r h − r(1−r) g²
func robustly(eps, logZ float64, g, h, dt []float64) float64 {
	if eps == 0 {
		return logZ
	}
	right, wrong := math.Log1p(-eps)+logZ, math.Log(eps/float64(len(g)))
	hi := max(right, wrong)
	mixed := hi + math.Log1p(math.Exp(min(right, wrong)-hi))
	r := math.Exp(right - mixed)
	for k := range g {
		h[k] = r*h[k] - r*(1-r)*g[k]*g[k]
		g[k], dt[k] = r*g[k], r*dt[k]
	}
	return mixed
}
