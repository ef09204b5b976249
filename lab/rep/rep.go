// Package rep is expectation propagation on the robust likelihood: the label has the
// largest latent with probability 1−ε and is uniform otherwise. Probability and derivatives
// come from quadrature, so that the factor is the joint one, not a product of pairs. With
// ε = 0 it is EP with the exact multi-class likelihood, and nothing is ever clipped.
//
// A REP has one site for each observation and class, all from one cavity. Tied sites with
// the same factor are in package tied. With lab.Product as likelihood these are the sites of
// the learner, kept one by one (edge train --sites merged).
//
// Memory 2 NC + C M²; a sweep costs C(N M² + 3 M³) and about 50 N(C−1) log Φ.
//
// Source: Hernández-Lobato, Hernández-Lobato & Dupont (NIPS 2011).
package rep

import (
	"context"

	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/model"
)

// REP is the approximation at some parameters.
type REP struct {
	*lab.Sparse
	S1, S2  *mat.Dense // N×C
	Factors *lab.ClassFactors
	Eps     float64
}

// New returns a REP whose sites are all 1.
func New(data *lab.Data, p model.Params, jitter float64, l lab.Likelihood, eps float64) (*REP, error) {
	s, err := lab.NewSparse(data, p, jitter)
	if err != nil {
		return nil, err
	}
	return &REP{Sparse: s, S1: lab.NewTable(data), S2: lab.NewTable(data), Factors: lab.NewClassFactors(data, l, eps), Eps: eps}, nil
}

// SetParams moves the parameters and computes the posterior from the stored sites.
func (r *REP) SetParams(p model.Params) error {
	if err := r.Sparse.SetParams(p); err != nil {
		return err
	}
	return r.Solve(r.S1, r.S2)
}

func (r *REP) match() { r.Factors.Update(r.Y, r.Mean, r.Var, r.Q, r.S1, r.S2) }

// Sweep updates all sites in parallel and the posterior, and returns the largest relative
// change.
func (r *REP) Sweep(rho float64) (change float64, err error) {
	r.match()
	change = max(lab.Blend(r.S1, r.Factors.S1, rho), lab.Blend(r.S2, r.Factors.S2, rho))
	return change, r.Solve(r.S1, r.S2)
}

// Run sweeps until the largest relative change is below tolerance, at most that many times.
func (r *REP) Run(sweeps int, rho, tolerance float64) error {
	return lab.Converge(sweeps, tolerance, func() (float64, error) { return r.Sweep(rho) })
}

// LogZ is the log evidence, Σ logN_k + Σ_i [ log Z_i − Σ_k D_ik ].
func (r *REP) LogZ() float64 {
	r.match()
	sum := r.Evidence()
	for i, v := range r.Factors.LogZ {
		sum += v
		for k := range r.C {
			d, _, _ := lab.Normaliser(r.S1.At(i, k), r.S2.At(i, k), r.Factors.A.At(i, k), r.Factors.V.At(i, k))
			sum -= d
		}
	}
	return sum
}

// Gradient is the derivative of Σ log Z with the whitened cavities held fixed, which with
// lab.Joint is the total one of LogZ at a fixed point without clipped sites:
//
//	∂F/∂w_ik = G m_k + (G (s1 mean − s2) + 2T)/e V_k w_i,  ∂F/∂q_ik = T
func (r *REP) Gradient() []float64 {
	r.match()
	f, c := r.Factors, lab.NewTable(r.Data)
	c.Apply(func(i, k int, _ float64) float64 {
		return (f.G.At(i, k)*(r.S1.At(i, k)*r.Mean.At(i, k)-r.S2.At(i, k)) + 2*f.T.At(i, k)) / f.E.At(i, k)
	}, c)
	return r.Sparse.Gradient(lab.Features{W: r.AlongPosterior(f.G, c), Q: f.T})
}

// Predict returns the probabilities of the labels as they are reported, n×C.
func (r *REP) Predict(x []float64) (*mat.Dense, error) {
	mean, variance := r.Latent(x)
	return lab.Robust(lab.Probabilities(mean, variance), r.Eps), nil
}

// Damping and tolerances of the training.
const (
	eps        = 0.001 // of the published experiments
	damping    = 0.5
	lastSweeps = 10
	lastClose  = 1e-4
)

// Train learns by one damped sweep and one step of the parameters in turn.
func Train(ctx context.Context, p *lab.Problem) (lab.Classifier, error) {
	return train(ctx, p, lab.NewJoint(lab.TrainNodes), eps)
}

// TrainMerged is Train with the product of pairs and without label noise.
func TrainMerged(ctx context.Context, p *lab.Problem) (lab.Classifier, error) {
	return train(ctx, p, new(lab.Product), 0)
}

// train takes every label as right in the first sweep: from the prior each one looks like
// an error.
func train(ctx context.Context, p *lab.Problem, l lab.Likelihood, eps float64) (lab.Classifier, error) {
	r, err := New(p.Data, p.Start, lab.Jitter, l, eps)
	if err != nil {
		return nil, err
	}
	robust := r.Factors
	r.Factors = lab.NewClassFactors(p.Data, l, 0)
	step := func() ([]float64, error) {
		if _, err := r.Sweep(damping); err != nil {
			return nil, err
		}
		r.Factors = robust
		return r.Gradient(), nil
	}
	if err := lab.Alternate(ctx, p, r, step, r.SetParams); err != nil {
		return nil, err
	}
	return r, r.Run(lastSweeps, damping, lastClose)
}
