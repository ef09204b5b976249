// Package gfitc is expectation propagation on the marginal prior of the observed latents
// f~, the generalised FITC approximation: given e_k, f~_ik ~ N(w_ik·e_k, q_ik), independent,
// and the factor of a pair is the step function of f~_iy − f~_ik itself. The inducing values
// are integrated out last, so that all pairs of an observation share its noise and residual.
//
// No N×N matrix appears: integrating f~ leaves a site in w·e, and V is M×M. The gradient is
// that of a fixed point, and not a sum over observations: hence full batches, EP to
// convergence at every evaluation, and L-BFGS. With the rows as inducing points it is the
// full multi-class process with sites that factorise over classes.
//
// Memory 4 N(C−1) + C M²; an evaluation costs sweeps × C(N M² + 3 M³).
//
// Source: Naish-Guzman & Holden (NIPS 2007); Villacampa-Calvo & Hernández-Lobato (ICML
// 2017), Section 4.
package gfitc

import (
	"context"
	"math"

	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/model"
)

// GFITC is the approximation at some parameters.
type GFITC struct {
	*lab.Sparse
	Sites       lab.PairSites // in f~
	Factors     *lab.PairFactors
	FMean, FVar *mat.Dense // N×C, marginals of f~

	c1, c2   *mat.Dense // N×C, the sites that are left in w·e
	residual float64    // log ∫ of f~ given e, summed
}

// New returns a GFITC whose sites are all 1.
func New(data *lab.Data, p model.Params, jitter float64) (*GFITC, error) {
	s, err := lab.NewSparse(data, p, jitter)
	if err != nil {
		return nil, err
	}
	g := &GFITC{
		Sparse: s, Sites: lab.NewPairSites(data), Factors: lab.NewPairFactors(data),
		FMean: lab.NewTable(data), FVar: lab.NewTable(data), c1: lab.NewTable(data), c2: lab.NewTable(data),
	}
	return g, g.refresh()
}

// SetParams moves the parameters and computes the posterior from the stored sites.
func (g *GFITC) SetParams(p model.Params) error {
	if err := g.Sparse.SetParams(p); err != nil {
		return err
	}
	return g.refresh()
}

// refresh computes the posterior from the totals T, ν of the sites on f~:
//
//	o = 1 + qT,  c1 = T/o,  c2 = ν/o
//	mean of f~ = (mean + qν)/o,  variance = q/o + v/o²
func (g *GFITC) refresh() error {
	total, nu := g.Sites.Totals(g.Y)
	g.residual = 0
	for i := range g.Y {
		for k := range g.C {
			q, t, n := g.Q.At(i, k), total.At(i, k), nu.At(i, k)
			o := 1 + q*t
			g.c1.Set(i, k, t/o)
			g.c2.Set(i, k, n/o)
			g.residual += -0.5*math.Log(o) + 0.5*q*n*n/o
		}
	}
	if err := g.Solve(g.c1, g.c2); err != nil {
		return err
	}
	for i := range g.Y {
		for k := range g.C {
			q := g.Q.At(i, k)
			o := 1 + q*total.At(i, k)
			g.FMean.Set(i, k, (g.Mean.At(i, k)+q*nu.At(i, k))/o)
			g.FVar.Set(i, k, q/o+g.Var.At(i, k)/(o*o))
		}
	}
	return nil
}

func (g *GFITC) match() { g.Factors.Update(g.Y, g.FMean, g.FVar, nil, &g.Sites) }

// Sweep updates all sites in parallel and the posterior, and returns the largest relative
// change.
func (g *GFITC) Sweep(rho float64) (change float64, err error) {
	g.match()
	change = g.Sites.Blend(&g.Factors.Next, rho)
	return change, g.refresh()
}

// Run sweeps until the largest relative change is below tolerance, at most that many times.
func (g *GFITC) Run(sweeps int, rho, tolerance float64) error {
	return lab.Converge(sweeps, tolerance, func() (float64, error) { return g.Sweep(rho) })
}

// LogZ is the log evidence,
// Σ logN_k + Σ_ik [ −½ log o + ½ qν²/o ] + Σ_pairs [ log Φ(α) − D_y − D_k ].
func (g *GFITC) LogZ() float64 {
	g.match()
	return g.Evidence() + g.residual + g.Factors.Evidence(g.Y, &g.Sites)
}

// Gradient is the derivative of LogZ at a fixed point, where only the prior moves:
//
//	u = c2 − c1 mean,  ∂F/∂w = u m − c1 V w,  ∂F/∂q = ½ (u² − c1 + c1² v)
func (g *GFITC) Gradient() []float64 {
	u, c, q := lab.NewTable(g.Data), lab.NewTable(g.Data), lab.NewTable(g.Data)
	for i := range g.Y {
		for k := range g.C {
			c1 := g.c1.At(i, k)
			v := g.c2.At(i, k) - c1*g.Mean.At(i, k)
			u.Set(i, k, v)
			c.Set(i, k, -c1)
			q.Set(i, k, 0.5*(v*v-c1+c1*c1*g.Var.At(i, k)))
		}
	}
	return g.Sparse.Gradient(lab.Features{W: g.AlongPosterior(u, c), Q: q})
}

// Predict returns class probabilities, n×C.
func (g *GFITC) Predict(x []float64) (*mat.Dense, error) {
	mean, variance := g.Latent(x)
	return lab.Probabilities(mean, variance), nil
}

// Damping and tolerances of an evaluation.
const (
	damping    = 0.7
	sweeps     = 40
	closeTo    = 1e-5
	lastSweeps = 60
	lastClose  = 1e-6
)

// Train learns inducing points and kernels by L-BFGS on the evidence, with EP from the sites
// of the last evaluation to convergence.
func Train(ctx context.Context, p *lab.Problem) (lab.Classifier, error) {
	g, err := New(p.Data, p.Start, lab.Jitter)
	if err != nil {
		return nil, err
	}
	best, err := lab.Maximise(ctx, p, g, func(at model.Params) (float64, []float64, error) {
		if err := g.SetParams(at); err != nil {
			return 0, nil, err
		}
		if err := g.Run(sweeps, damping, closeTo); err != nil {
			return 0, nil, err
		}
		return g.LogZ(), g.Gradient(), nil
	})
	if err == nil {
		err = g.SetParams(best)
	}
	if err != nil {
		return nil, err
	}
	return g, g.Run(lastSweeps, damping, lastClose)
}
