package sep

import (
	"edge/model"
	"edge/model/dense"
)

// Evidence turns the gradient of the new samples' log evidence with respect to
// their whitened features into the gradient with respect to the parameters.
//
// The objective is F = Σ_i r_i Σ_{k≠y} log Φ(α_ik) with the whitened cavities
// and r_i held fixed. In whitened coordinates the prior does not depend on the
// parameters, so that the paper's gradient of log Z_q (eq. 12) has no prior
// term and equals this one up to a factor.
type Evidence struct {
	W    []float64 // input: n×M  ∂F/∂w_i with q_i held fixed
	Q    []float64 // input: n    ∂F/∂q_i
	Grad []float64 // output: ∂F/∂Theta, as model.Params.Theta

	free           memory    // of the scratch below
	kbar, hx       []float64 // n×M, M×D
	phi, kk        []float64 // M×M
	colsum, rowsum []float64 // M, n
	jsum           []float64 // M
	team           *team     // nil: the caller's goroutine
	chaining       chaining
}

// chaining holds the arguments of the tasks of chain.
type chaining struct {
	rows func(worker, i int) error
	b    *model.Basis
	z, x []float64 // M×D, n×D
	n    int
}

// evidenceScratch is the number of floats of scratch for n samples.
func evidenceScratch(n, m, d int) int { return n*(m+1) + m*(d+2) + 2*m*m }

// share lets a team run the tasks of e.
func (e *Evidence) share(t *team) { e.team, e.chaining.rows = t, e.chainRows }

// Resize makes room for n samples of d features and m inducing points, and clears W and Q.
func (e *Evidence) Resize(n, m, d int) {
	if e.Grad == nil {
		e.Grad = make([]float64, m*d+d+3)
	}
	if cap(e.Q) < n {
		e.W, e.Q = make([]float64, n*m), make([]float64, n)
	}
	if size := evidenceScratch(n, m, d); len(e.free) < size {
		e.free = make(memory, size)
	}
	rest := e.free
	e.phi, e.kk, e.hx, e.kbar = rest.take(m*m), rest.take(m*m), rest.take(m*d), rest.take(n*m)
	e.colsum, e.jsum, e.rowsum = rest.take(m), rest.take(m), rest.take(n)
	e.W, e.Q = e.W[:n*m], e.Q[:n]
	clear(e.W)
	clear(e.Q)
}

// Backprop stores ∂F/∂Theta in Grad, all but the label noise, in O(n·M(M+D) + M³ + M²D).
//
//	x   n×D  the new samples, standardised
//	kx  n×M  c(x, Z)
//	w   n×M  their whitened features
//
// Source: reverse mode through w = L⁻¹c(Z,x), q = s − |w|² + v0 and the
// Cholesky factor (Smith 1995; Murray 2016, "Differentiation of the Cholesky
// decomposition", eq. 9).
func (e *Evidence) Backprop(b *model.Basis, p *model.Params, n int, x, kx, w []float64) {
	m, d := b.M, b.D
	// kbar_i = L⁻ᵀ(wbar_i − 2 qbar_i w_i) = ∂F/∂c(Z,x_i); the second term because q = s − |w|² + v0
	var qsum float64
	for i, q := range e.Q {
		row := e.kbar[i*m : (i+1)*m]
		copy(row, e.W[i*m:(i+1)*m])
		dense.Axpy(-2*q, w[i*m:(i+1)*m], row)
		qsum += q
	}
	// Lbar = −Σ kbar_i w_iᵀ, lower; Kbar = sym(L⁻ᵀ Φ(LᵀLbar) L⁻¹). On and below the
	// diagonal LᵀLbar is −Σ (Lᵀkbar_i)w_iᵀ, because L is lower triangular.
	dense.Gemm(true, false, m, m, n, -1, e.kbar, m, w, m, 0, e.phi, m)
	for i := range m {
		e.phi[i*m+i] *= 0.5
		clear(e.phi[i*m+i+1 : (i+1)*m])
	}
	dense.SolveTri(n, m, b.L, m, e.kbar, m)
	for i := 0; i < m; i += solvedRows { // Φ·L⁻¹, lower triangular
		rows := min(solvedRows, m-i)
		dense.SolveTri(rows, i+rows, b.L, m, e.phi[i*m:], m)
	}
	transpose(e.kk, e.phi, m)
	e.team.solve(system{back: true, m: m, l: b.L, a: e.kk}) // (L⁻ᵀΦL⁻¹)ᵀ

	sum, trace := e.hadamard(n, b, kx)
	e.chain(b, p, n, x, &sum)
	e.Grad[m*d+d] = sum + b.Jitter*b.Amp*trace + b.Amp*qsum
	e.Grad[m*d+d+1] = b.Noise * qsum
}

// hadamard replaces phi by J = sym(Kbar) ∘ c(Z,Z) and kbar by H = kbar ∘ kx. It
// returns the sum of H, and the trace of Kbar.
func (e *Evidence) hadamard(n int, b *model.Basis, kx []float64) (sum, trace float64) {
	m := b.M
	for i := range m {
		trace += e.kk[i*m+i]
	}
	for i := range m { // J
		e.phi[i*m+i] = e.kk[i*m+i] * b.Amp
		for j := i + 1; j < m; j++ {
			v := 0.5 * (e.kk[i*m+j] + e.kk[j*m+i]) * b.L[i*m+j]
			e.phi[i*m+j], e.phi[j*m+i] = v, v
		}
	}
	for i := range n { // H
		row, k := e.kbar[i*m:(i+1)*m], kx[i*m:(i+1)*m]
		var s float64
		for j, v := range row {
			v *= k[j]
			row[j] = v
			s += v
		}
		e.rowsum[i] = s
		sum += s
	}
	return sum, trace
}

// chain stores the gradient in Z and log ℓ, from J and H, and adds the sum of J to
// sum.
func (e *Evidence) chain(b *model.Basis, p *model.Params, n int, x []float64, sum *float64) {
	m, d := b.M, b.D
	dl := e.Grad[m*d : m*d+d]
	clear(e.colsum)
	for i := range n {
		dense.Axpy(1, e.kbar[i*m:(i+1)*m], e.colsum)
	}
	t, tasks := &e.chaining, model.RowTasks(m)
	t.b, t.z, t.x, t.n = b, p.Z(), x, n
	rows := t.rows
	if rows == nil { // without a team
		rows = e.chainRows
	}
	_ = e.team.run(tasks, float64(m*d*(m+n+expCost))/float64(tasks), rows)
	clear(dl)
	for j := range m {
		*sum += e.jsum[j]
		dense.Axpy(1, e.hx[j*d:(j+1)*d], dl)
	}
	for i, s := range e.rowsum {
		for j, v := range x[i*d : (i+1)*d] {
			dl[j] += s * v * v
		}
	}
	for j := range dl {
		dl[j] *= b.InvEll[j] * b.InvEll[j]
	}
}

// chainRows stores the rows of task i of the gradient in Z, and in hx the part of each
// in the gradient in log ℓ,
//
//	HᵀX + 2JZ − (colsum(H) + 2 rowsum(J))∘Z, and the squares likewise
func (e *Evidence) chainRows(_, i int) error {
	t := &e.chaining
	m, d := t.b.M, t.b.D
	from, to := model.TaskRows(i, m)
	dense.Gemm(true, false, to-from, d, t.n, 1, e.kbar[from:], m, t.x, d, 0, e.hx[from*d:], d)
	dense.Gemm(false, false, to-from, d, m, 1, e.phi[from*m:], m, t.z, d, 0, e.Grad[from*d:], d)
	for j := from; j < to; j++ {
		var js float64
		for _, v := range e.phi[j*m : (j+1)*m] {
			js += v
		}
		e.jsum[j] = js
		hs, zs, hxs, dz := e.colsum[j], t.z[j*d:(j+1)*d], e.hx[j*d:(j+1)*d], e.Grad[j*d:(j+1)*d]
		for i, zj := range zs {
			hx, jz := hxs[i], dz[i]
			hxs[i] = zj * (float64(zj*(hs+2*js)) - 2*(hx+jz))
			dz[i] = (hx - float64(hs*zj) + 2*(jz-float64(js*zj))) * (t.b.InvEll[i] * t.b.InvEll[i])
		}
	}
	return nil
}

// Pull adds to grad the gradient of a normal prior of that precision on each log ℓ
// around their mean.
func Pull(grad, logEll []float64, precision float64) {
	var mean float64
	for _, v := range logEll {
		mean += v / float64(len(logEll))
	}
	for j, v := range logEll {
		grad[j] -= precision * (v - mean)
	}
}

// ignore leaves sample i out of the gradient.
func (e *Evidence) ignore(i int) {
	m := len(e.W) / len(e.Q)
	clear(e.W[i*m : (i+1)*m])
	e.Q[i] = 0
}
