package lab

import (
	"context"
	"math/rand/v2"

	"edge/model"
)

// Converge takes steps until the change of one is below tolerance, at most that many.
func Converge(steps int, tolerance float64, step func() (change float64, err error)) error {
	for range steps {
		change, err := step()
		if err != nil || change < tolerance {
			return err
		}
	}
	return nil
}

// Alternate takes the updates of a problem by the sign rule: refine improves the sites of
// now and returns the gradient at the present parameters, move goes to the next ones.
func Alternate(ctx context.Context, p *Problem, now Classifier, refine func() (grad []float64, err error), move func(model.Params) error) error {
	var rule SignRule
	at := p.Start.Clone()
	for range p.Updates {
		if err := ctx.Err(); err != nil {
			return err
		}
		grad, err := refine()
		if err != nil {
			return err
		}
		p.watch(now)
		p.hold(grad)
		rule.Ascend(at.Theta, grad)
		Clamp(&at)
		if err := move(at); err != nil {
			return err
		}
	}
	return nil
}

// Maximise returns the parameters with the largest value that L-BFGS finds from the start of
// a problem, with its updates as evaluations. f moves now to parameters, and returns value
// and gradient.
func Maximise(ctx context.Context, p *Problem, now Classifier, f func(model.Params) (value float64, grad []float64, err error)) (model.Params, error) {
	best, err := Search(ctx, p, now, p.Start.Theta, func(theta []float64) (float64, []float64, error) {
		at, free := clamped(p.Start, theta)
		value, grad, err := f(at)
		if err != nil {
			return 0, nil, err
		}
		return value, free(grad), nil
	})
	if err != nil {
		return model.Params{}, err
	}
	at, _ := clamped(p.Start, best)
	return at, nil
}

// Search is Maximise over a vector x that ends with the parameters. now is watched where the
// value is the largest so far.
func Search(ctx context.Context, p *Problem, now Classifier, x []float64, f func(x []float64) (value float64, grad []float64, err error)) ([]float64, error) {
	var most float64
	seen := false
	best, err := LBFGS(x, p.Updates, func(x []float64) (float64, []float64, error) {
		if err := ctx.Err(); err != nil {
			return 0, nil, err
		}
		value, grad, err := f(x)
		if err != nil {
			return 0, nil, err
		}
		p.hold(grad[len(x)-len(p.Start.Theta):])
		if !seen || value > most {
			seen, most = true, value
			p.watch(now)
		}
		return value, grad, nil
	})
	if err == nil {
		err = ctx.Err()
	}
	return best, err
}

// Minibatches takes the updates of a problem as passes over its rows in minibatches, in
// a new order each. step learns some rows and returns the gradient at x, which ends with the
// parameters; x takes a step of Adam, in place. begin is called before each pass, from 0.
func Minibatches(ctx context.Context, p *Problem, size int, rate float64, now Classifier, x []float64, begin func(pass int) error, step func(rows []int) (grad []float64, err error)) error {
	adam, r := Adam{Rate: rate}, rand.New(rand.NewPCG(p.Seed, 1))
	n := p.Data.N()
	for pass := range p.Updates {
		if err := begin(pass); err != nil {
			return err
		}
		order := r.Perm(n)
		for from := 0; from < n; from += size {
			if err := ctx.Err(); err != nil {
				return err
			}
			grad, err := step(order[from:min(from+size, n)])
			if err != nil {
				return err
			}
			p.watch(now)
			p.hold(grad[len(x)-len(p.Start.Theta):])
			adam.Ascend(x, grad)
		}
	}
	return nil
}
