package sep

import "math"

// Adam is the optimiser's state for one parameter vector.
//
// Source: Kingma & Ba (ICLR 2015), Algorithm 1, ascending.
type Adam struct {
	M, V  []float64 // first and second moments of the gradient
	Steps uint64
}

const (
	adamBeta1 = 0.9
	liveBeta1 = 0.7 // after the warm-up, where a step follows the gradient of two
	adamBeta2 = 0.999
	adamEps   = 1e-8
)

// NewAdam returns an optimiser for n parameters.
func NewAdam(n int) Adam { return Adam{M: make([]float64, n), V: make([]float64, n)} }

// Ascend moves theta one step of rate lr along grad.
func (a *Adam) Ascend(theta, grad []float64, lr float64) {
	a.ascend(theta, grad, 0, len(grad), a.begin(lr, adamBeta1, 1-adamBeta1))
}

// ascent holds the rate and the factors of a step.
type ascent struct{ lr, beta1, rest, c1, c2 float64 }

// begin begins a step of rate lr, with a decay of the first moment, and 1 less that decay.
func (a *Adam) begin(lr, beta1, rest float64) ascent {
	a.Steps++
	t := float64(a.Steps)
	return ascent{lr, beta1, rest, 1 / (1 - math.Pow(beta1, t)), 1 / (1 - math.Pow(adamBeta2, t))}
}

// ascend moves the parameters from from to to by the step.
func (a *Adam) ascend(theta, grad []float64, from, to int, s ascent) {
	for i := from; i < to; i++ {
		g := grad[i]
		a.M[i] = float64(s.beta1*a.M[i]) + float64(s.rest*g)
		a.V[i] = float64(adamBeta2*a.V[i]) + float64((1-adamBeta2)*g*g)
		theta[i] += s.lr * a.M[i] * s.c1 / (math.Sqrt(a.V[i]*s.c2) + adamEps)
	}
}

func (a *Adam) copyFrom(o *Adam) {
	copy(a.M, o.M)
	copy(a.V, o.V)
	a.Steps = o.Steps
}
