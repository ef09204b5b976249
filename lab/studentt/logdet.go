package studentt

import (
	"math"

	"edge/model"
	"edge/model/dense"
)

// logDet is log|K| of the inducing points, with the jitter.
func logDet(b *model.Basis) float64 {
	var sum float64
	for i := range b.M {
		sum += 2 * math.Log(b.L[i*b.M+i])
	}
	return sum
}

// logDetGradient is the derivative of log|K| in the parameters, from K⁻¹ ∘ c(Z, Z):
//
//	∂/∂z_m = 2 Σ_n H_mn (z_n − z_m)/ℓ²,  ∂/∂log ℓ = Σ_mn H_mn (z_m − z_n)²/ℓ²,  ∂/∂log s = M
func logDetGradient(b *model.Basis, p *model.Params) []float64 {
	m := b.M
	l := make([]float64, m*m)
	for i := range m {
		copy(l[i*m:i*m+i+1], b.L[i*m:i*m+i+1])
	}
	dense.InvertTri(m, l, m)
	inverse := make([]float64, m*m)
	dense.Gemm(true, false, m, m, m, 1, l, m, l, m, 0, inverse, m)
	covariance := b.Covariance(make([]float64, m*m))
	grad := model.NewParams(m, b.D)
	clear(grad.Theta)
	for i := range m {
		for j := range m {
			h := inverse[i*m+j] * covariance[i*m+j]
			for d, inv := range b.InvEll {
				u := (p.Z()[j*b.D+d] - p.Z()[i*b.D+d]) * inv
				grad.Z()[i*b.D+d] += 2 * h * u * inv
				grad.LogEll()[d] += h * u * u
			}
		}
	}
	*grad.LogAmp() = float64(m)
	return grad.Theta
}
