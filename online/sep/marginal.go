package sep

import (
	"math"

	"edge/model/dense"
)

// added is the change that the sites of a step's new points make, for one latent function, to
// a posterior without them. In the coordinates a = U·w the covariance of that is the
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
	rows           []float64 // H×C×maxStep×M  A of each latent function
	mean, variance []float64 // H×C×maxStep  of the new points, without the sites
}

func newAdded(posteriors, m int) added {
	n := posteriors * maxStep
	return added{make([]float64, n*m), make([]float64, n), make([]float64, n)}
}

// update is the scratch memory in which a worker adds these sites.
type update struct {
	g      []float64 // capacity×n
	factor []float64 // n×n  R
	root   []float64 // n  √s1
	d, sum []float64 // n  d; Σ d_j·g_j
	pull   []float64 // M  Σ d_j·a_j
}

func newUpdate(m, capacity int) update {
	floats := func(n int) []float64 { return make([]float64, n) }
	return update{
		g: floats(capacity * maxStep), factor: floats(maxStep * maxStep),
		root: floats(maxStep), d: floats(maxStep), sum: floats(maxStep), pull: floats(m),
	}
}

// marginals leaves U_k·w of the window points of the sweep in the worker's rows, and means
// and variances of w·e_k under horizon h. It computes those of the n new points in the
// first sweep (s = 0) and keeps them for later ones: no sweep changes the posterior.
func (b *Bank) marginals(worker, h, k int) {
	w, m, g, total, t := &b.work, b.cfg.Inducing, &b.view.Bank[h], len(b.winY), &b.work.tasks.sweeping
	u, first, n, post := w.rows(worker), t.first, t.n, h*len(b.view.Latent)+k
	mean, variance := w.moments(post, b.capacity)
	kept, count := w.added.rows[post*maxStep*m:], total-first
	fresh := total - n
	if t.s > 0 {
		count -= n
		copy(u[count*m:], kept[:n*m])
		copy(mean[fresh:], w.added.mean[post*maxStep:][:n])
		copy(variance[fresh:], w.added.variance[post*maxStep:][:n])
	}
	wk := w.features.w[b.basis(k)][first*m:]
	dense.MulTriTrans(count, m, wk, m, g.U[k*m*m:], m, u, m)
	dense.Gemv(false, count, m, 1, wk, m, g.Mean[k*m:(k+1)*m], 0, mean[first:first+count])
	for i := range count {
		row := u[i*m : (i+1)*m]
		variance[first+i] = dense.Dot(row, row)
	}
	if t.s == 0 {
		copy(kept, u[(count-n)*m:count*m])
		copy(w.added.mean[post*maxStep:], mean[fresh:fresh+n])
		copy(w.added.variance[post*maxStep:], variance[fresh:fresh+n])
	}
}

// addNew adds the sites of the n new points to the marginals of the window points of the
// sweep, after marginals.
func (b *Bank) addNew(worker, h, k int) {
	w, z, m, total, first, n := &b.work, &b.sites[h], b.cfg.Inducing, len(b.winY), b.work.tasks.first, b.work.tasks.n
	p, u, count, post := &w.updates[worker], w.rows(worker), total-first, h*len(b.view.Latent)+k
	mean, variance := w.moments(post, b.capacity)
	rows := w.added.rows[post*maxStep*m:][:n*m]
	clear(p.pull)
	clear(p.sum)
	for j := range n {
		point := total - n + j
		s1, s2 := z.s1[k*b.capacity+point], z.s2[k*b.capacity+point]
		p.root[j], p.d[j] = math.Sqrt(s1), s2-float64(s1*mean[point])
		dense.Axpy(p.d[j], rows[j*m:(j+1)*m], p.pull)
	}
	dense.Gemm(false, true, count, n, m, 1, u, m, rows, m, 0, p.g, n)
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
	mean, variance = mean[first:total], variance[first:total]
	dense.Gemv(false, count, m, 1, u, m, p.pull, 1, mean)
	dense.Gemv(false, count, n, -1, p.g, n, p.sum[:n], 1, mean)
	for i := range count {
		row := p.g[i*n : (i+1)*n]
		variance[i] -= dense.Dot(row, row)
	}
}

// keepRows stores in work.grad the rows B⁻¹·U_k·w of the gradient's points, where B⁻¹ is
// the covariance after addNew in its coordinates, and the shift of the mean, so that
//
//	V_k·w_i = U_kᵀ·row_i,   m_k = Mean_k + U_kᵀ·shift
func (b *Bank) keepRows(worker, h, k int) {
	w, m, size, t := &b.work, b.cfg.Inducing, b.gradientRoom(), &b.work.tasks.sweeping
	n, points, count, post := t.n, t.points, len(b.winY)-t.first, h*len(b.view.Latent)+k
	p, to, shift := &w.updates[worker], w.grad.fresh[post*size*m:][:points*m], w.grad.shift[post*m:(post+1)*m]
	copy(to, w.rows(worker)[(count-points)*m:count*m])
	if clear(shift); t.s == 0 || n == 0 {
		return
	}
	rows, g := w.added.rows[post*maxStep*m:][:n*m], p.g[(count-points)*n:count*n]
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
