package ep

import (
	"context"

	"edge/lab"
)

// Damping and tolerances of the schedules.
const (
	between     = 0.5 // of a sweep between two steps of the parameters
	converging  = 0.7
	outerSweeps = 30
	outerClose  = 1e-3
	lastSweeps  = 10 // after the last step of the parameters
	lastClose   = 1e-4
)

// Inner learns by one damped sweep and one step of the parameters in turn, along the
// gradient that holds the cavities fixed. This is the schedule of the published tables.
func Inner(ctx context.Context, p *lab.Problem) (lab.Classifier, error) {
	return train(ctx, p, sweepOnce, (*EP).Gradient)
}

// InnerExact is Inner with the exact gradient.
func InnerExact(ctx context.Context, p *lab.Problem) (lab.Classifier, error) {
	return train(ctx, p, sweepOnce, (*EP).ExactGradient)
}

// Outer sweeps to convergence before every step of the parameters. It ends where Inner
// does, in about three times the time.
func Outer(ctx context.Context, p *lab.Problem) (lab.Classifier, error) {
	converge := func(e *EP) error { return e.Run(outerSweeps, converging, outerClose) }
	return train(ctx, p, converge, (*EP).Gradient)
}

func sweepOnce(e *EP) error {
	_, err := e.Sweep(between)
	return err
}

// train takes the updates of the problem by the sign rule.
func train(ctx context.Context, p *lab.Problem, refine func(*EP) error, gradient func(*EP) []float64) (lab.Classifier, error) {
	e, err := New(p.Data, p.Start, lab.Jitter)
	if err != nil {
		return nil, err
	}
	step := func() ([]float64, error) {
		if err := refine(e); err != nil {
			return nil, err
		}
		return gradient(e), nil
	}
	if err := lab.Alternate(ctx, p, e, step, e.SetParams); err != nil {
		return nil, err
	}
	return e, e.Run(lastSweeps, between, lastClose)
}
