package lab

import (
	"context"

	"gonum.org/v1/gonum/mat"

	"edge/model"
)

// Jitter is added by the methods to the diagonal of c(Z, Z), in units of the amplitude.
const Jitter = model.Jitter

// Problem is the common start of every method: the same rows, kernel and inducing points.
type Problem struct {
	Data    *Data
	Start   model.Params // one kernel for each class, or one for all
	Updates int          // of the parameters, or passes of minibatches
	Seed    uint64       // of minibatches

	Hold  func(grad []float64) // clears the elements of a gradient that are not learnt; nil: all are
	Watch func(now Classifier) // called after each update, with the classifier of that moment; nil: not
}

func (p *Problem) hold(grad []float64) {
	if p.Hold != nil {
		p.Hold(grad)
	}
}

func (p *Problem) watch(now Classifier) {
	if p.Watch != nil {
		p.Watch(now)
	}
}

// Classifier is a fitted approximation.
type Classifier interface {
	// Predict returns the class probabilities, n×C, of n rows of standardised features.
	Predict(x []float64) (*mat.Dense, error)
}

// Method fits one approximation. It stops early, with an error, when ctx ends.
type Method func(ctx context.Context, p *Problem) (Classifier, error)
