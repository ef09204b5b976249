package studentt

import (
	"context"
	"math"

	"edge/lab"
	"edge/lab/binary"
	"edge/model"
)

// Nu is the degrees of freedom that the methods start from: those of most published
// experiments.
const Nu = 3.0

// Approximation is how rows are learnt.
type Approximation struct {
	start func(d *lab.Data, p model.Params, link Link) (*Bound, error)
}

// Gaussian is the variational Gaussian process.
func Gaussian() Approximation { return Approximation{NewGaussian} }

// Tied has q(s) at the prior with ν degrees of freedom, or free.
func Tied(nu float64, free bool) Approximation {
	return Approximation{func(d *lab.Data, p model.Params, link Link) (*Bound, error) {
		return NewTied(d, p, link, nu, free)
	}}
}

// NonCentred has 13 nodes of the scale.
func NonCentred(nu float64) Approximation {
	return Approximation{func(d *lab.Data, p model.Params, link Link) (*Bound, error) {
		return NewNonCentred(d, p, link, NewScale(nu, sharedNodes))
	}}
}

// Published has a published objective, for two classes.
func Published(nu float64, o Objective) Approximation {
	return Approximation{func(d *lab.Data, p model.Params, _ Link) (*Bound, error) { return NewRelaxed(d, p, nu, o) }}
}

// Options of a training.
type Options struct {
	Full      bool // the rows as inducing points
	Isotropic bool // one lengthscale
}

// firstShare is the share of the evaluations in which free inducing points stay.
const firstShare = 0.2

// Train learns q and the kernel together by L-BFGS: the updates of the problem are
// evaluations. Two classes have the logistic link, with the amplitude of binary.Kernel, and
// more the link of pairs.
func (a Approximation) Train(o Options) lab.Method {
	return func(ctx context.Context, p *lab.Problem) (lab.Classifier, error) {
		link, at := linkAndKernel(p, o.Full)
		b, err := a.start(p.Data, at, link)
		if err != nil {
			return nil, err
		}
		first := int(math.Round(firstShare * float64(p.Updates)))
		b.Held = Held{Points: true, Isotropic: o.Isotropic}
		if o.Full {
			return b, b.Fit(ctx, p.Updates)
		}
		if err := b.Fit(ctx, max(first, 1)); err != nil {
			return nil, err
		}
		b.Held.Points = false
		return b, b.Fit(ctx, max(p.Updates-first, 1))
	}
}

func linkAndKernel(p *lab.Problem, full bool) (Link, model.Params) {
	link, at := Pairs, p.Start
	if p.Data.C == 2 {
		link, at = Logistic, binary.Kernel(p.Start)
	}
	if full {
		at = lab.AtRows(p.Data, at)
	}
	return link, at
}

// Convergence of an evaluation of Grid.
const (
	gridRounds = 5
	gridClose  = 1e-6
)

// TrainGrid learns the kernel by L-BFGS, with the optimal q of each of 9 nodes.
func TrainGrid(nu float64, o Options) lab.Method {
	return func(ctx context.Context, p *lab.Problem) (lab.Classifier, error) {
		link, at := linkAndKernel(p, o.Full)
		g, err := NewGrid(p.Data, at, link, NewScale(nu, ownNodes))
		if err != nil {
			return nil, err
		}
		one, held := *p, Held{Points: o.Full, Isotropic: o.Isotropic}
		one.Start = at
		converge := func(at model.Params) error {
			if err := g.SetParams(at); err != nil {
				return err
			}
			return g.Run(gridRounds, gridClose)
		}
		best, err := lab.Maximise(ctx, &one, g, func(at model.Params) (float64, []float64, error) {
			if err := converge(at); err != nil {
				return 0, nil, err
			}
			grad := g.Gradient()
			held.hold(grad, at)
			return g.LogZ(), grad, nil
		})
		if err == nil {
			err = converge(best)
		}
		if err != nil {
			return nil, err
		}
		return g, nil
	}
}

// Damping and tolerances of EP, as in package rep.
const (
	damping    = 0.5
	lastSweeps = 10
	lastClose  = 1e-4
)

// TrainEP learns by one sweep of all of 9 nodes and one step of the parameters in turn.
func TrainEP(nu float64) lab.Method {
	return func(ctx context.Context, p *lab.Problem) (lab.Classifier, error) {
		e, err := NewEP(p.Data, p.Start, NewScale(nu, ownNodes))
		if err != nil {
			return nil, err
		}
		step := func() ([]float64, error) {
			if err := e.Sweep(damping); err != nil {
				return nil, err
			}
			return e.Gradient(), nil
		}
		if err := lab.Alternate(ctx, p, e, step, e.SetParams); err != nil {
			return nil, err
		}
		return e, e.Run(lastSweeps, damping, lastClose)
	}
}
