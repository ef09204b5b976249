package sep

import (
	"math"

	"edge/model/dense"
)

// added is what the sites of a step's new points change, for one latent function, in a
// posterior without them. In the coordinates a = U·w the covariance of that is the
// identity. The sites s1, s2 of the rows A, n×M, add AᵀSA to it, S = diag(s1), so that
//
//	R·Rᵀ = I + √S·A·Aᵀ·√S
//	g_i  = R⁻¹·√S·A·a_i
//	v_i ← v_i − |g_i|²
//	mean_i ← mean_i + Σ_j d_j·(a_i·a_j − g_i·g_j),   d_j = s2_j − s1_j·mean_j
//
// O(n·M) for each point i, in place of a factorisation.
//
// Source: Woodbury's identity.
type added struct {
	rows           []float64 // C×maxStep×M  A of each latent function
	mean, variance []float64 // C×maxStep  of the new points, without the sites
	g              []float64 // capacity×n
	factor         []float64 // n×n  R
	root           []float64 // n  √s1
	d, sum         []float64 // n  d; Σ d_j·g_j
	pull           []float64 // M  Σ d_j·a_j
}

func newAdded(c, m, capacity int) added {
	floats := func(n int) []float64 { return make([]float64, n) }
	return added{
		rows: floats(c * maxStep * m), mean: floats(c * maxStep), variance: floats(c * maxStep),
		g: floats(capacity * maxStep), factor: floats(maxStep * maxStep),
		root: floats(maxStep), d: floats(maxStep), sum: floats(maxStep), pull: floats(m),
	}
}

// marginals leaves U_k·w of the window points from first on in work.u, and means and
// variances of w·e_k under horizon h. It computes those of the n new points in the first
// sweep (s = 0) and keeps them for later ones: no sweep changes the posterior.
func (b *Bank) marginals(h, k, s, first, n int) {
	w, m, g, total := &b.work, b.cfg.Inducing, &b.view.Bank[h], len(b.winY)
	kept, count := w.added.rows[k*maxStep*m:], total-first
	fresh := k*b.capacity + total - n
	if s > 0 {
		count -= n
		copy(w.u[count*m:], kept[:n*m])
		copy(w.mean[fresh:], w.added.mean[k*maxStep:][:n])
		copy(w.variance[fresh:], w.added.variance[k*maxStep:][:n])
	}
	wk, at := w.features.w[b.basis(k)][first*m:], k*b.capacity+first
	dense.MulTriTrans(count, m, wk, m, g.U[k*m*m:], m, w.u, m)
	dense.Gemv(false, count, m, 1, wk, m, g.Mean[k*m:(k+1)*m], 0, w.mean[at:at+count])
	for i := range count {
		row := w.u[i*m : (i+1)*m]
		w.variance[at+i] = dense.Dot(row, row)
	}
	if s == 0 {
		copy(kept, w.u[(count-n)*m:count*m])
		copy(w.added.mean[k*maxStep:], w.mean[fresh:fresh+n])
		copy(w.added.variance[k*maxStep:], w.variance[fresh:fresh+n])
	}
}

// addNew adds the sites of the n new points to the marginals of the window points from
// first on, after marginals.
func (b *Bank) addNew(h, k, first, n int) {
	w, z, m, total := &b.work, &b.sites[h], b.cfg.Inducing, len(b.winY)
	p, count, at := &w.added, total-first, k*b.capacity
	rows := p.rows[k*maxStep*m:][:n*m]
	clear(p.pull)
	clear(p.sum)
	for j := range n {
		site := at + total - n + j
		p.root[j], p.d[j] = math.Sqrt(z.s1[site]), z.s2[site]-z.s1[site]*w.mean[site]
		dense.Axpy(p.d[j], rows[j*m:(j+1)*m], p.pull)
	}
	dense.Gemm(false, true, count, n, m, 1, w.u, m, rows, m, 0, p.g, n)
	for i := range count {
		for j, root := range p.root[:n] {
			p.g[i*n+j] *= root
		}
	}
	for i, root := range p.root[:n] {
		for j, v := range p.g[(count-n+i)*n:][:i+1] {
			p.factor[i*n+j] = root * v
		}
		p.factor[i*n+i]++
	}
	dense.Cholesky(n, p.factor, n) // the least eigenvalue is 1: a failure shows in the next refresh
	dense.SolveTriTrans(count, n, p.factor, n, p.g, n)
	for j := range n {
		dense.Axpy(p.d[j], p.g[(count-n+j)*n:][:n], p.sum)
	}
	mean, variance := w.mean[at+first:at+total], w.variance[at+first:at+total]
	dense.Gemv(false, count, m, 1, w.u, m, p.pull, 1, mean)
	dense.Gemv(false, count, n, -1, p.g, n, p.sum[:n], 1, mean)
	for i := range count {
		row := p.g[i*n : (i+1)*n]
		variance[i] -= dense.Dot(row, row)
	}
}

// keepRows stores in work.grad the rows B⁻¹·U_k·w of the last points ones, where B⁻¹ is
// the covariance after addNew in its coordinates, and the shift of the mean, so that
//
//	V_k·w_i = U_kᵀ·row_i,   m_k = Mean_k + U_kᵀ·shift
func (b *Bank) keepRows(h, k, s, first, n, points int) {
	w, m, count, size := &b.work, b.cfg.Inducing, len(b.winY)-first, b.gradientRoom()
	p, to, shift := &w.added, w.grad.fresh[k*size*m:][:points*m], w.grad.shift[k*m:(k+1)*m]
	copy(to, w.u[(count-points)*m:count*m])
	if clear(shift); s == 0 || n == 0 {
		return
	}
	rows, g := p.rows[k*maxStep*m:][:n*m], p.g[(count-points)*n:count*n]
	dense.SolveTri(points, n, p.factor, n, g, n)
	dense.SolveTri(1, n, p.factor, n, p.sum, n)
	for j, root := range p.root[:n] {
		p.sum[j] *= root
		for i := range points {
			g[i*n+j] *= root
		}
	}
	dense.Gemm(false, false, points, m, n, -1, g, n, rows, m, 1, to, m)
	copy(shift, p.pull)
	dense.Gemv(true, n, m, -1, rows, m, p.sum[:n], 1, shift)
}
