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
	gram    []float64 // M×M  TᵀT, lower; nil if M is at most direct
	zs, zz  []float64 // M×D, M  scratch
	workers []projecting
	team    *team // nil: the caller's goroutine

	crossing *model.Basis // of the tasks of Between
	cross    func(worker, i int) error
}

// projecting is the scratch memory of a worker.
type projecting struct {
	square, full, at, y []float64 // M×M, M×M, M×M, M
}

// direct is the largest M for which TᵀAT is two products, 3M³ operations. Beyond it,
// with I + A = G·Gᵀ, it is (TᵀG)(TᵀG)ᵀ − TᵀT, 7/3 M³: a small factor is slow.
const direct = 144

// projectionScratch is the number of floats of a projection.
func projectionScratch(m, d, workers int) int {
	squares := 2 + 3*workers
	if m > direct {
		squares++
	}
	return squares*m*m + (d+1+workers)*m
}

// NewProjection returns a projection for m inducing points in d dimensions and that
// many workers at once, in the memory free if that is large enough.
func NewProjection(m, d, workers int, free memory) Projection {
	if size := projectionScratch(m, d, workers); len(free) < size {
		free = make(memory, size)
	}
	p := Projection{m: m, t: free.take(m * m), tt: free.take(m * m), zs: free.take(m * d), zz: free.take(m)}
	if m > direct {
		p.gram = free.take(m * m)
	}
	for range workers {
		p.workers = append(p.workers, projecting{free.take(m * m), free.take(m * m), free.take(m * m), free.take(m)})
	}
	return p
}

// Between computes T; z0 are the old basis's inducing inputs, M×D.
func (p *Projection) Between(old, new *model.Basis, z0 []float64) {
	m := p.m
	p.crossTo(new, z0) // rows new
	p.team.solve(system{m: m, l: old.L, a: p.tt})
	transpose(p.t, p.tt, m)
	p.team.solve(system{m: m, l: new.L, a: p.t})
	transpose(p.tt, p.t, m)
	if p.gram != nil {
		dense.SymmetricProduct(false, false, m, m, p.tt, m, p.t, m, p.gram, m)
	}
}

// crossTo stores c(Z, Z_old) in tt, a row for each of the basis's inducing inputs.
func (p *Projection) crossTo(b *model.Basis, z0 []float64) {
	b.ScaleTo(p.zs, p.zz, z0)
	p.crossing = b
	tasks := model.RowTasks(b.M)
	cross := p.cross
	if cross == nil { // without a team
		cross = p.crossRows
	}
	_ = p.team.run(tasks, float64(b.M*b.M*(b.D+expCost))/float64(tasks), cross)
}

// expCost is the number of multiplications that take as long as an element of a covariance
// beside its product.
const expCost = 50

// crossRows is task i of crossTo.
func (p *Projection) crossRows(_, i int) error {
	p.crossing.CrossRows(i, p.tt, p.zs, p.zz)
	return nil
}

// Site projects one latent function's absorbed sites in place, by a worker: A, M×M, of which the
// lower triangle counts, and b, M.
func (p *Projection) Site(worker int, a, b []float64) {
	m, w := p.m, &p.workers[worker]
	if !p.factored(w, a) {
		mirror(w.full, a, m)
		dense.Gemm(false, false, m, m, m, 1, w.full, m, p.t, m, 0, w.at, m)
		dense.SymmetricProduct(false, false, m, m, p.tt, m, w.at, m, a, m)
	}
	copy(w.y, b)
	dense.Gemv(true, m, m, 1, p.t, m, w.y, 0, b)
}

// factored projects a by the factor of I + A. It reports false, with a as before, where
// that is not faster or does not exist.
func (p *Projection) factored(w *projecting, a []float64) bool {
	m := p.m
	if p.gram == nil {
		return false
	}
	for i := range m {
		copy(w.full[i*m:i*m+i+1], a[i*m:i*m+i+1])
		w.full[i*m+i]++
	}
	if !dense.Cholesky(m, w.full, m) {
		return false
	}
	dense.MulTri(m, m, p.tt, m, w.full, m, w.at, m)
	dense.SymmetricProduct(false, true, m, m, w.at, m, w.at, m, a, m)
	for i := range m {
		row := a[i*m : i*m+i+1]
		for j, v := range p.gram[i*m : i*m+i+1] {
			row[j] -= v
		}
	}
	return true
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
