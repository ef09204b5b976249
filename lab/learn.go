package lab

import (
	"context"
	"slices"

	"edge/model"
)

// Alternate takes the updates of a problem by the sign rule: refine improves the sites and
// returns the gradient at the present parameters, move goes to the next ones.
func Alternate(ctx context.Context, p *Problem, refine func() (grad []float64, err error), move func(model.Params) error) error {
	var rule SignRule
	at := model.Params{M: p.Start.M, D: p.Start.D, Theta: slices.Clone(p.Start.Theta)}
	for range p.Updates {
		if err := ctx.Err(); err != nil {
			return err
		}
		grad, err := refine()
		if err != nil {
			return err
		}
		rule.Ascend(at.Theta, grad)
		Clamp(&at)
		if err := move(at); err != nil {
			return err
		}
	}
	return nil
}

// Maximise returns the parameters with the largest value that L-BFGS finds from the start of
// a problem, with its updates as evaluations. f returns value and gradient.
func Maximise(ctx context.Context, p *Problem, f func(model.Params) (value float64, grad []float64, err error)) (model.Params, error) {
	best, err := LBFGS(p.Start.Theta, p.Updates, func(theta []float64) (float64, []float64, error) {
		if err := ctx.Err(); err != nil {
			return 0, nil, err
		}
		at, free := Clamped(p.Start, theta)
		value, grad, err := f(at)
		if err != nil {
			return 0, nil, err
		}
		return value, free(grad), nil
	})
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return model.Params{}, err
	}
	at, _ := Clamped(p.Start, best)
	return at, nil
}
