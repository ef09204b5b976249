// Package ep is expectation propagation with a site for each observation i and class
// k ≠ y_i: the factor Φ((f_y − f_k)/√…) of each pair under a cavity of its own.
//
// An EP is made by New; Sweep and Run refine its sites, Evidence is its log evidence, and
// Gradient and ExactGradient are the derivatives in the parameters. Inner, InnerExact and
// Outer are the three schedules of learning the parameters as methods of the laboratory.
//
// Memory 4 N(C−1) + C M²; a sweep costs C(N M² + 3 M³) and N(C−1) factors.
//
// Source: Villacampa-Calvo & Hernández-Lobato (ICML 2017), Sections 2 and 3.
package ep

import (
	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/model"
)

// EP is the approximation at some parameters.
type EP struct {
	*lab.Sparse
	Sites   lab.PairSites
	Factors *lab.PairFactors
}

// New returns an EP whose sites are all 1.
func New(data *lab.Data, p model.Params, jitter float64) (*EP, error) {
	s, err := lab.NewSparse(data, p, jitter)
	if err != nil {
		return nil, err
	}
	return &EP{Sparse: s, Sites: lab.NewPairSites(data), Factors: lab.NewPairFactors(data)}, nil
}

// SetParams moves the parameters and computes the posterior from the stored sites, which
// are functions of f and need no projection.
func (e *EP) SetParams(p model.Params) error {
	if err := e.Sparse.SetParams(p); err != nil {
		return err
	}
	return e.refresh()
}

func (e *EP) refresh() error {
	s1, s2 := e.Sites.Totals(e.Y)
	return e.Solve(s1, s2)
}

// match computes the factors under the present posterior.
func (e *EP) match() { e.Factors.Update(e.Y, e.Mean, e.Var, e.Q, &e.Sites) }

// Sweep updates all sites in parallel, new = (1−rho) old + rho matched, and the posterior.
// It returns the largest relative change. Undamped sweeps of many observations oscillate;
// 0.5 is for a sweep between steps of the parameters, 0.7 to converge.
func (e *EP) Sweep(rho float64) (change float64, err error) {
	e.match()
	change = e.Sites.Blend(&e.Factors.Next, rho)
	return change, e.refresh()
}

// Run sweeps until the largest relative change is below tolerance, at most that many times.
func (e *EP) Run(sweeps int, rho, tolerance float64) error {
	return lab.Converge(sweeps, tolerance, func() (float64, error) { return e.Sweep(rho) })
}

// LogZ is the log evidence, Σ logN_k + Σ [log Z − D_y − D_k] over the factors. At a fixed
// point it is stationary in every site.
func (e *EP) LogZ() float64 {
	e.match()
	return e.Evidence() + e.Factors.Evidence(e.Y, &e.Sites)
}

// Gradient is the derivative of Σ log Z with the whitened cavities held fixed, which at a
// fixed point is the total derivative of LogZ (eq. 10; whitened there is no prior term):
//
//	∂F/∂w_ik = Σ [ ±g m_k + (±g (s1 mean_ik − s2) + 2T)/e V_k w_i ],  ∂F/∂q_ik = Σ T
//
// over the factors of class k, + where k is the label.
func (e *EP) Gradient() []float64 {
	e.match()
	f, s := e.Factors, &e.Sites
	a, c, q := lab.NewTable(e.Data), lab.NewTable(e.Data), lab.NewTable(e.Data)
	for i, y := range e.Y {
		for k := range e.C {
			if k == y {
				continue
			}
			g, t := f.G.At(i, k), f.T.At(i, k)
			add(a, i, y, g)
			add(a, i, k, -g)
			add(c, i, y, (g*(s.S1Y.At(i, k)*e.Mean.At(i, y)-s.S2Y.At(i, k))+2*t)/f.EY.At(i, k))
			add(c, i, k, (-g*(s.S1K.At(i, k)*e.Mean.At(i, k)-s.S2K.At(i, k))+2*t)/f.EK.At(i, k))
			add(q, i, y, t)
			add(q, i, k, t)
		}
	}
	return e.Sparse.Gradient(lab.Features{W: e.AlongPosterior(a, c), Q: q})
}

// ExactGradient is the total derivative of LogZ with the sites held fixed, right before
// convergence as well. For every factor and each of its sites:
//
//	da = ±g − ∂D/∂a,  dT = T − ∂D/∂v
//	∂F/∂mean += da/e,  ∂F/∂v += (da (s1 mean − s2) + dT)/e²,  ∂F/∂q += T
//
// and then reverse mode through the posterior.
func (e *EP) ExactGradient() []float64 {
	e.match()
	f, s := e.Factors, &e.Sites
	dMean, dVar, q := lab.NewTable(e.Data), lab.NewTable(e.Data), lab.NewTable(e.Data)
	site := func(i, k int, s1, s2, a, v, share, g, t float64) {
		_, gd, td := lab.Normaliser(s1, s2, a, v)
		da, dt := g-gd, t-td
		add(dMean, i, k, da/share)
		add(dVar, i, k, (da*(s1*e.Mean.At(i, k)-s2)+dt)/(share*share))
		add(q, i, k, t)
	}
	for i, y := range e.Y {
		for k := range e.C {
			if k == y {
				continue
			}
			g, t := f.G.At(i, k), f.T.At(i, k)
			site(i, y, s.S1Y.At(i, k), s.S2Y.At(i, k), f.AY.At(i, k), f.VY.At(i, k), f.EY.At(i, k), g, t)
			site(i, k, s.S1K.At(i, k), s.S2K.At(i, k), f.AK.At(i, k), f.VK.At(i, k), f.EK.At(i, k), -g, t)
		}
	}
	s1, s2 := e.Sites.Totals(e.Y)
	return e.Sparse.Gradient(lab.Features{W: e.ThroughPosterior(s1, s2, dMean, dVar), Q: q})
}

func add(t *mat.Dense, i, k int, v float64) { t.Set(i, k, t.At(i, k)+v) }

// Predict returns class probabilities, n×C.
func (e *EP) Predict(x []float64) (*mat.Dense, error) {
	mean, variance := e.Latent(x)
	return lab.Probabilities(mean, variance), nil
}
