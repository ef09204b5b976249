package vi

import (
	"context"
	"errors"

	"edge/lab"
	"edge/model"
)

// Settings of the training.
const (
	eps          = 0.001 // of the published experiments
	naturalStep  = 0.3
	naturalLast  = 50   // steps after the last one of the parameters
	naturalClose = 1e-6 // change at which they end
)

// Batch maximises the bound over q and the parameters together by L-BFGS.
func Batch(ctx context.Context, p *lab.Problem) (lab.Classifier, error) {
	v, err := New(p.Data, p.Start, eps, lab.TrainNodes)
	if err != nil {
		return nil, err
	}
	best, err := lab.Search(ctx, p, v, v.Vector(), func(x []float64) (float64, []float64, error) {
		bound, err := v.SetVector(x)
		if err != nil {
			return 0, nil, err
		}
		elbo, grad := bound()
		return elbo, grad, nil
	})
	if err != nil {
		return nil, err
	}
	_, err = v.SetVector(best)
	return v, err
}

// Stochastic returns a method that maximises it by Adam on minibatches; the updates of a problem
// are passes.
func Stochastic(size int, rate float64) lab.Method {
	return func(ctx context.Context, p *lab.Problem) (lab.Classifier, error) {
		n := p.Data.N()
		v, err := New(p.Data.Rows(make([]int, min(size, n))), p.Start, eps, lab.TrainNodes)
		if err != nil {
			return nil, err
		}
		x := v.Vector()
		step := func(rows []int) ([]float64, error) {
			v.setRows(p.Data.Rows(rows), float64(n)/float64(len(rows)))
			bound, err := v.SetVector(x)
			if err != nil {
				return nil, err
			}
			_, grad := bound()
			return grad, nil
		}
		if err := lab.Minibatches(ctx, p, size, rate, v, x, func(int) error { return nil }, step); err != nil {
			return nil, err
		}
		v.setRows(p.Data, 1)
		_, err = v.SetVector(x)
		return v, err
	}
}

// Natural takes one natural step of q and one step of the parameters by the sign rule in
// turn.
func Natural(ctx context.Context, p *lab.Problem) (lab.Classifier, error) {
	v, err := New(p.Data, p.Start, eps, lab.TrainNodes)
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
	if err := lab.Alternate(ctx, p, v, step, move); err != nil {
		return nil, err
	}
	return v, v.RunNatural(sites, naturalLast, naturalStep, naturalClose)
}
