package fullep

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/model"
)

// classCovariance is the prior covariance of the latents of all classes at the rows of x
// with the pairs of d, n of C×N(C−1): k* Bᵀ.
func classCovariance(d *lab.Data, p model.Params, x []float64) []*mat.Dense {
	pairs, n := lab.Pairs(d), len(x)/d.D
	out := make([]*mat.Dense, n)
	for i := range out {
		out[i] = mat.NewDense(d.C, len(pairs), nil)
	}
	for k := range d.C {
		g := lab.Kernel(p, k)
		c := lab.Covariance(&g, x, d.X)
		for a, r := range pairs {
			for i := range out {
				switch k {
				case d.Y[r.I]:
					out[i].Set(k, a, c.At(i, r.I))
				case r.K:
					out[i].Set(k, a, -c.At(i, r.I))
				}
			}
		}
	}
	return out
}

// priorVariance is s + v0 of each class.
func priorVariance(d *lab.Data, p model.Params) []float64 {
	out := make([]float64, d.C)
	for k := range out {
		g := lab.Kernel(p, k)
		out[k] = math.Exp(*g.LogAmp()) + math.Exp(*g.LogNoise())
	}
	return out
}
