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
	m       int
	t, tt   []float64 // M×M; tt is the transpose of t
	zs, zz  []float64 // M×D, M  scratch
	workers []projecting
}

// projecting is the scratch memory of a worker.
type projecting struct {
	full, at, y []float64 // M×M, M×M, M
}

// NewProjection returns a projection for m inducing points in d dimensions and that
// many workers at once.
func NewProjection(m, d, workers int) Projection {
	floats := func(n int) []float64 { return make([]float64, n) }
	p := Projection{m: m, t: floats(m * m), tt: floats(m * m), zs: floats(m * d), zz: floats(m)}
	for range workers {
		p.workers = append(p.workers, projecting{floats(m * m), floats(m * m), floats(m)})
	}
	return p
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

// Site projects one latent function's absorbed sites, by a worker: A, of which the
// lower triangle counts, and b.
func (p *Projection) Site(worker int, a, b []float64) {
	m, w := p.m, &p.workers[worker]
	mirror(w.full, a, m)
	dense.Gemm(false, false, m, m, m, 1, w.full, m, p.t, m, 0, w.at, m)
	dense.SymmetricProduct(false, m, m, p.tt, m, w.at, m, a, m)
	copy(w.y, b)
	dense.Gemv(true, m, m, 1, p.t, m, w.y, 0, b)
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
