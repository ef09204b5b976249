package sep

import (
	"fmt"

	"edge/model"
	"edge/model/dense"
)

// Projection re-bases absorbed sites,
//
//	T = L_old⁻¹ c(Z_old, Z_new) L_new⁻ᵀ,   A ← TᵀAT,   b ← Tᵀb
//
// which keeps the absorbed likelihood as a function of f.
//
// Source: Bui, Nguyen & Turner (2017), without the residual covariance term,
// which changes the posterior mean by less than 0.3 %.
type Projection struct {
	m               int
	t, tt, full, at []float64 // M×M; tt is the transpose of t
	zs, zz, y       []float64 // M×D, M, M  scratch
}

// NewProjection returns a projection for m inducing points in d dimensions.
func NewProjection(m, d int) Projection {
	floats := func(n int) []float64 { return make([]float64, n) }
	return Projection{
		m: m, t: floats(m * m), tt: floats(m * m), full: floats(m * m), at: floats(m * m),
		zs: floats(m * d), zz: floats(m), y: floats(m),
	}
}

// Between computes T; z0 are the old basis's inducing inputs.
func (p *Projection) Between(old, new *model.Basis, z0 []float64) {
	m := p.m
	new.CrossTo(p.tt, z0, p.zs, p.zz) // c(Z_new, Z_old), rows new
	dense.SolveTriTrans(m, m, old.L, m, p.tt, m)
	transpose(p.t, p.tt, m)
	dense.SolveTriTrans(m, m, new.L, m, p.t, m)
	transpose(p.tt, p.t, m)
}

// Site projects one latent function's absorbed sites: A, of which the lower
// triangle counts, and b.
func (p *Projection) Site(a, b []float64) {
	m := p.m
	mirror(p.full, a, m)
	dense.Gemm(false, false, m, m, m, 1, p.full, m, p.t, m, 0, p.at, m)
	dense.SymmetricProduct(false, m, m, p.tt, m, p.at, m, a, m)
	copy(p.y, b)
	dense.Gemv(true, m, m, 1, p.t, m, p.y, 0, b)
}

// CheckFinite returns an error if a parameter is not finite; ε may be 0, and
// its logit infinite.
func CheckFinite(p *model.Params) error {
	for i, v := range p.Theta[:len(p.Theta)-1] {
		if v-v != 0 {
			return fmt.Errorf("online: parameter %d after the gradient step: %w", i, model.ErrNotFinite)
		}
	}
	return nil
}

// mirror stores the symmetric matrix whose lower triangle is a in dst.
func mirror(dst, a []float64, m int) {
	for i := range m {
		for j := range i + 1 {
			dst[i*m+j], dst[j*m+i] = a[i*m+j], a[i*m+j]
		}
	}
}

// transpose stores aᵀ in dst, both m×m.
func transpose(dst, a []float64, m int) {
	for i := range m {
		for j := range m {
			dst[j*m+i] = a[i*m+j]
		}
	}
}
