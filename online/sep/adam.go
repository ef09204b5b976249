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
	adamBeta2 = 0.999
	adamEps   = 1e-8
)

// NewAdam returns an optimiser for n parameters.
func NewAdam(n int) Adam { return Adam{M: make([]float64, n), V: make([]float64, n)} }

// Ascend moves theta one step of rate lr along grad.
func (a *Adam) Ascend(theta, grad []float64, lr float64) {
	a.Steps++
	t := float64(a.Steps)
	c1, c2 := 1/(1-math.Pow(adamBeta1, t)), 1/(1-math.Pow(adamBeta2, t))
	for i, g := range grad {
		a.M[i] = adamBeta1*a.M[i] + (1-adamBeta1)*g
		a.V[i] = adamBeta2*a.V[i] + (1-adamBeta2)*g*g
		theta[i] += lr * a.M[i] * c1 / (math.Sqrt(a.V[i]*c2) + adamEps)
	}
}

func (a *Adam) copyFrom(o *Adam) {
	copy(a.M, o.M)
	copy(a.V, o.V)
	a.Steps = o.Steps
}
