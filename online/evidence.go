package online

import (
	"edge/model"
	"edge/model/dense"
)

// evidence turns the gradient of the new samples' log evidence with respect to
// their whitened features into the gradient with respect to the parameters.
//
// The objective is F = Σ_i r_i Σ_{k≠y} log Φ(α_ik) with the whitened cavities
// and r_i held fixed. In whitened coordinates the prior does not depend on the
// parameters, so that the paper's gradient of log Z_q (eq. 12) has no prior
// term and equals this one up to a factor.
type evidence struct {
	w []float64 // n×M  ∂F/∂w_i with q_i held fixed
	q []float64 // n    ∂F/∂q_i

	grad              []float64 // as model.Params.Theta
	kbar, hx          []float64 // n×M, M×D
	lbar, phi, kk, t2 []float64 // M×M
	colsum, rowsum    []float64 // M, n
}

func (e *evidence) resize(n, m, d int) {
	if e.lbar == nil {
		e.grad = make([]float64, m*d+d+3)
		e.hx = make([]float64, m*d)
		e.lbar, e.phi, e.kk, e.t2 = make([]float64, m*m), make([]float64, m*m), make([]float64, m*m), make([]float64, m*m)
		e.colsum = make([]float64, m)
	}
	if cap(e.q) < n {
		e.w, e.kbar = make([]float64, n*m), make([]float64, n*m)
		e.q, e.rowsum = make([]float64, n), make([]float64, n)
	}
	e.w, e.kbar, e.q, e.rowsum = e.w[:n*m], e.kbar[:n*m], e.q[:n], e.rowsum[:n]
	clear(e.w)
	clear(e.q)
}

// backprop stores ∂F/∂Theta in grad, all but the label noise, in O(n·M(M+D) + M³ + M²D).
//
//	x   n×D  the new samples, standardised
//	kx  n×M  c(x, Z)
//	w   n×M  their whitened features
//
// Source: reverse mode through w = L⁻¹c(Z,x), q = s − |w|² + v0 and the
// Cholesky factor (Smith 1995; Murray 2016, "Differentiation of the Cholesky
// decomposition", eq. 9).
func (e *evidence) backprop(b *model.Basis, p *model.Params, n int, x, kx, w []float64) {
	m, d := b.M, b.D
	// kbar_i = L⁻ᵀ(wbar_i − 2 qbar_i w_i) = ∂F/∂c(Z,x_i); the second term because q = s − |w|² + v0
	var qsum float64
	for i, q := range e.q {
		row := e.kbar[i*m : (i+1)*m]
		copy(row, e.w[i*m:(i+1)*m])
		dense.Axpy(-2*q, w[i*m:(i+1)*m], row)
		qsum += q
	}
	dense.SolveTri(n, m, b.L, m, e.kbar, m)
	// Lbar = −Σ kbar_i w_iᵀ, lower; Kbar = sym(L⁻ᵀ Φ(LᵀLbar) L⁻¹)
	dense.Gemm(true, false, m, m, n, -1, e.kbar, m, w, m, 0, e.lbar, m)
	for i := range m {
		clear(e.lbar[i*m+i+1 : (i+1)*m])
		copy(e.t2[i*m:i*m+i+1], b.L[i*m:i*m+i+1])
		clear(e.t2[i*m+i+1 : (i+1)*m])
	}
	dense.Gemm(true, false, m, m, m, 1, e.t2, m, e.lbar, m, 0, e.phi, m)
	for i := range m {
		e.phi[i*m+i] *= 0.5
		clear(e.phi[i*m+i+1 : (i+1)*m])
	}
	dense.SolveTri(m, m, b.L, m, e.phi, m) // Φ·L⁻¹
	transpose(e.kk, e.phi, m)
	dense.SolveTri(m, m, b.L, m, e.kk, m) // (L⁻ᵀΦL⁻¹)ᵀ

	ell, z := p.LogEll(), p.Z()
	dz := e.grad[:m*d]
	dl := e.grad[m*d : m*d+d]
	var trace, sum float64
	for i := range m {
		trace += e.kk[i*m+i]
	}
	for i := range m { // J = sym(Kbar) ∘ c(Z,Z)
		for j := range i + 1 {
			v := 0.5 * (e.kk[i*m+j] + e.kk[j*m+i]) * b.K[i*m+j]
			e.lbar[i*m+j], e.lbar[j*m+i] = v, v
		}
	}
	for i := range n { // H = kbar ∘ kx
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
	clear(e.colsum)
	for i := range n {
		dense.Axpy(1, e.kbar[i*m:(i+1)*m], e.colsum)
	}
	// HᵀX + 2JZ − (colsum(H) + 2 rowsum(J))∘Z, and the squares likewise
	dense.Gemm(true, false, m, d, n, 1, e.kbar, m, x, d, 0, e.hx, d)
	dense.Gemm(false, false, m, d, m, 1, e.lbar, m, z, d, 0, dz, d)
	clear(dl)
	for j := range m {
		var js float64
		for _, v := range e.lbar[j*m : (j+1)*m] {
			js += v
		}
		sum += js
		hs := e.colsum[j]
		for i := range d {
			zj, hx, jz := z[j*d+i], e.hx[j*d+i], dz[j*d+i]
			dl[i] += zj * (zj*(hs+2*js) - 2*(hx+jz))
			dz[j*d+i] = hx - hs*zj + 2*(jz-js*zj)
		}
	}
	for i, s := range e.rowsum {
		for j, v := range x[i*d : (i+1)*d] {
			dl[j] += s * v * v
		}
	}
	for j := range ell {
		inv2 := b.InvEll[j] * b.InvEll[j]
		dl[j] *= inv2
		for i := range m {
			dz[i*d+j] *= inv2
		}
	}
	e.grad[m*d+d] = sum + b.Jitter*b.Amp*trace + b.Amp*qsum
	e.grad[m*d+d+1] = b.Noise * qsum
}

// transpose stores aᵀ in dst, both m×m.
func transpose(dst, a []float64, m int) {
	for i := range m {
		for j := range m {
			dst[j*m+i] = a[i*m+j]
		}
	}
}
