package vi

import (
	"context"
	"errors"
	"math/rand/v2"

	"edge/lab"
	"edge/model"
)

// Settings of the training.
const (
	eps          = 0.001 // of the published experiments
	naturalStep  = 0.3
	naturalLast  = 50   // steps after the last one of the parameters
	naturalClose = 1e-6 // change at which they end
	batch        = 100  // rows of a minibatch
	rate         = 0.01 // of Adam
)

// Batch maximises the bound over q and the parameters together by L-BFGS.
func Batch(ctx context.Context, p *lab.Problem) (lab.Classifier, error) {
	v, err := New(p.Data, p.Start, lab.Jitter, 1, eps, lab.TrainNodes)
	if err != nil {
		return nil, err
	}
	best, err := lab.LBFGS(v.Vector(), p.Updates, func(x []float64) (float64, []float64, error) {
		if err := ctx.Err(); err != nil {
			return 0, nil, err
		}
		bound, err := v.SetVector(x)
		if err != nil {
			return 0, nil, err
		}
		elbo, grad := bound()
		return elbo, grad, nil
	})
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	_, err = v.SetVector(best)
	return v, err
}

// Stochastic maximises it by Adam on minibatches; the updates of the problem are passes.
func Stochastic(ctx context.Context, p *lab.Problem) (lab.Classifier, error) {
	whole, err := New(p.Data, p.Start, lab.Jitter, 1, eps, lab.TrainNodes)
	if err != nil {
		return nil, err
	}
	x, adam, r := whole.Vector(), lab.Adam{Rate: rate}, rand.New(rand.NewPCG(p.Seed, 1))
	n := p.Data.N()
	for range p.Updates {
		order := r.Perm(n)
		for from := 0; from < n; from += batch {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			rows := order[from:min(from+batch, n)]
			v, err := New(p.Data.Rows(rows), p.Start, lab.Jitter, float64(n)/float64(len(rows)), eps, lab.TrainNodes)
			if err != nil {
				return nil, err
			}
			bound, err := v.SetVector(x)
			if err != nil {
				return nil, err
			}
			_, grad := bound()
			adam.Ascend(x, grad)
		}
	}
	_, err = whole.SetVector(x)
	return whole, err
}

// Natural takes one natural step of q and one step of the parameters by the sign rule in
// turn.
func Natural(ctx context.Context, p *lab.Problem) (lab.Classifier, error) {
	v, err := New(p.Data, p.Start, lab.Jitter, 1, eps, lab.TrainNodes)
	if err != nil {
		return nil, err
	}
	sites := NewSites(p.Data)
	step := func() ([]float64, error) {
		if _, err := v.NaturalStep(sites, naturalStep); err != nil {
			return nil, err
		}
		_, d := v.Bound()
		return d.Theta, nil
	}
	move := func(next model.Params) error {
		if err := v.SetParams(next); err != nil {
			return err
		}
		err := v.setSites(sites)
		if errors.Is(err, model.ErrFactor) { // the step was too long for the negative precisions
			sites = NewSites(p.Data)
			err = v.setSites(sites)
		}
		return err
	}
	if err := lab.Alternate(ctx, p, step, move); err != nil {
		return nil, err
	}
	return v, v.RunNatural(sites, naturalLast, naturalStep, naturalClose)
}
