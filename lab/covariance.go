package lab

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"edge/model"
)

// Covariance is c(a, b), for the kernel of one class and rows of D features:
//
//	s exp(−½ Σ_d (a_d − b_d)²/ℓ_d²)
func Covariance(kernel *model.Params, a, b []float64) *mat.Dense {
	d := kernel.D
	out := mat.NewDense(len(a)/d, len(b)/d, nil)
	out.Apply(func(i, j int, _ float64) float64 {
		sum := *kernel.LogAmp()
		for c, l := range kernel.LogEll() {
			u := (a[i*d+c] - b[j*d+c]) / math.Exp(l)
			sum -= 0.5 * u * u
		}
		return math.Exp(sum)
	}, out)
	return out
}

// Kernel is that of class k.
func Kernel(p model.Params, k int) model.Params {
	if p.Groups() == 1 {
		k = 0
	}
	return p.Group(k)
}
