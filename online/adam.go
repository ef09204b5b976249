package online

import "math"

// adam is the optimiser's state for one parameter vector.
//
// Source: Kingma & Ba (ICLR 2015), Algorithm 1, ascending.
type adam struct {
	m, v  []float64 // first and second moments of the gradient
	steps uint64
}

const (
	adamBeta1 = 0.9
	adamBeta2 = 0.999
	adamEps   = 1e-8
)

func newAdam(n int) adam { return adam{m: make([]float64, n), v: make([]float64, n)} }

// ascend moves theta one step of rate lr along grad.
func (a *adam) ascend(theta, grad []float64, lr float64) {
	a.steps++
	t := float64(a.steps)
	c1, c2 := 1/(1-math.Pow(adamBeta1, t)), 1/(1-math.Pow(adamBeta2, t))
	for i, g := range grad {
		a.m[i] = adamBeta1*a.m[i] + (1-adamBeta1)*g
		a.v[i] = adamBeta2*a.v[i] + (1-adamBeta2)*g*g
		theta[i] += lr * a.m[i] * c1 / (math.Sqrt(a.v[i]*c2) + adamEps)
	}
}

func (a *adam) copyFrom(o *adam) {
	copy(a.m, o.m)
	copy(a.v, o.v)
	a.steps = o.steps
}
