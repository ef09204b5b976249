package vi

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"edge/lab"
)

// The log of the diagonal of R stays in this range, or an optimiser's step may leave the
// positive definite matrices.
const minLog, maxLog = -12, 3

// Vector is q and the parameters as the optimisers see them: m, the lower triangles of R
// with the log of the diagonal, and theta.
func (v *VI) Vector() []float64 {
	out := append([]float64(nil), v.M.RawMatrix().Data...)
	for _, r := range v.R {
		out = appendTriangle(out, r, math.Log)
	}
	return append(out, v.Params.Theta...)
}

// SetVector moves q and the parameters. The function that it returns is Bound in the same
// coordinates, 0 where a range holds the vector back.
func (v *VI) SetVector(x []float64) (bound func() (float64, []float64), err error) {
	c, m := v.C, v.Params.M
	means, at := x[:c*m], c*m
	var held []int
	for _, r := range v.R {
		for i := range m {
			for j := range i {
				r.Set(i, j, x[at])
				at++
			}
			l := min(max(x[at], minLog), maxLog)
			if l != x[at] {
				held = append(held, at)
			}
			r.Set(i, i, math.Exp(l))
			at++
		}
	}
	p, free := lab.Clamped(v.Params, x[at:])
	if err := v.SetParams(p); err != nil {
		return nil, err
	}
	for k := range c {
		v.SetQ(k, means[k*m:(k+1)*m])
	}
	return func() (float64, []float64) {
		elbo, d := v.Bound()
		grad := append([]float64(nil), d.M.RawMatrix().Data...)
		for k, r := range d.R {
			for j := range m {
				r.Set(j, j, r.At(j, j)*v.R[k].At(j, j))
			}
			grad = appendTriangle(grad, r, func(x float64) float64 { return x })
		}
		for _, i := range held {
			grad[i] = 0
		}
		return elbo, append(grad, free(d.Theta)...)
	}, nil
}

// appendTriangle appends the lower triangle by rows, the diagonal through f.
func appendTriangle(out []float64, r *mat.Dense, f func(float64) float64) []float64 {
	for i := range r.RawMatrix().Rows {
		out = append(out, r.RawRowView(i)[:i]...)
		out = append(out, f(r.At(i, i)))
	}
	return out
}
