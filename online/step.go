package online

import (
	"fmt"
	"math"

	"edge/model"
	"edge/model/dense"
)

// sweeps forgets, absorbs what leaves the window, and runs the sweeps over the
// window with the n new samples of work.batchX and work.labels at its end, for
// every horizon. It leaves the gradient with respect to the new samples'
// features in work.ev.
func (l *Learner) sweeps(n int) error {
	w, m, d := &l.work, l.m, l.d
	old := len(l.winY)
	l.winX, l.winY = append(l.winX, w.batchX[:n*d]...), append(l.winY, w.labels[:n]...)
	total := old + n
	out := max(0, total-max(l.cfg.Window, n))
	keep := total - out
	l.basis.FeaturesTo(w.kx, w.w, w.q, total, l.winX, w.xs, w.xx)
	leaving, wk, qk := w.w[:out*m], w.w[out*m:total*m], w.q[out:total]
	l.winX, l.winY = append(l.winX[:0], l.winX[out*d:]...), append(l.winY[:0], l.winY[out:]...)

	w.ev.resize(n, m, d)
	w.epsGrad, w.objective = 0, 0
	for h := range l.bank {
		b := &l.bank[h]
		gamma := 1.0
		if !math.IsInf(b.length, 1) {
			gamma = 1 - float64(n)/max(b.length, float64(n))
			scale(gamma, b.A)
			scale(gamma, b.b)
		}
		for k := range len(l.view.Latent) {
			s1, s2 := b.s1[k*l.capacity:(k+1)*l.capacity], b.s2[k*l.capacity:(k+1)*l.capacity]
			dense.WeightedGram(out, m, s1, 1, leaving, m, b.A[k*m*m:], m)
			dense.Gemv(true, out, m, 1, leaving, m, s2[:out], 1, b.b[k*m:(k+1)*m])
			copy(s1, s1[out:old])
			copy(s2, s2[out:old])
			clear(s1[max(old-out, 0):])
			clear(s2[max(old-out, 0):])
		}
		if gamma != 1 { // otherwise the totals are what they were
			if err := l.refresh(h, keep, wk); err != nil {
				return err
			}
		}
		for s := range l.cfg.Sweeps {
			l.sweep(h, s, n, keep, wk, qk)
			if err := l.refresh(h, keep, wk); err != nil {
				return err
			}
		}
	}
	// The new samples' features stay for the gradient.
	copy(w.kx, w.kx[(total-n)*m:total*m])
	copy(w.w, w.w[(total-n)*m:total*m])
	return nil
}

// sweep updates the sites of the keep window points of horizon h in parallel;
// the last n are new. In the first sweep a new point's cavity is the posterior
// before it (assumed-density filtering), its site is taken whole, and labels
// are believed; later sweeps are damped and weigh the label noise.
func (l *Learner) sweep(h, s, n, keep int, wk, qk []float64) {
	w, m, capacity := &l.work, l.m, l.capacity
	b, g := &l.bank[h], &l.view.Bank[h]
	classes := len(l.view.Latent)
	last := s == l.cfg.Sweeps-1
	size := l.room
	for k := range classes {
		dense.MulTriTrans(keep, m, wk, m, g.U[k*m*m:], m, w.u, m)
		dense.Gemv(false, keep, m, 1, wk, m, g.Mean[k*m:(k+1)*m], 0, w.mean[k*capacity:k*capacity+keep])
		for i := range keep {
			row := w.u[i*m : (i+1)*m]
			w.variance[k*capacity+i] = dense.Dot(row, row)
		}
		if last {
			copy(w.fresh[k*size*m:], w.u[(keep-n)*m:keep*m])
		}
	}
	weight := l.view.Weights[h]
	eps := l.basis.Eps
	st := &w.site
	for i := range keep {
		fresh := i >= keep-n
		y := l.winY[i]
		for k := range classes {
			at := k*capacity + i
			a, v, _ := cavity(w.mean[at], w.variance[at], b.s1[at], b.s2[at])
			st.a[k], st.v[k], st.t[k] = a, v, qk[i]+v
		}
		robust, py := eps, 1.0
		if fresh && s == 0 {
			robust = 0
		}
		if eps > 0 && (robust > 0 || (fresh && last)) {
			py = st.probability(y)
		}
		st.update(y, robust, py)
		if fresh && last {
			at := i - (keep - n)
			w.resp[at] = st.r
			if w.trace {
				w.objective += weight * st.r * st.logZ()
			}
			if eps > 0 {
				c := float64(classes)
				w.epsGrad += weight / float64(n) * (1/c - py) / ((1-eps)*py + eps/c) * eps * (1 - eps)
			}
			for k := range classes {
				j := k*capacity + i
				e := max(1-b.s1[j]*w.variance[j], minCavity)
				w.g[k*size+at] = st.g[k]
				w.coef[k*size+at] = (st.g[k]*(b.s1[j]*w.mean[j]-b.s2[j]) + 2*st.d[k]) / e
				w.ev.q[at] += weight * st.d[k]
			}
		}
		rho := l.cfg.Damping
		if fresh && s == 0 {
			rho = 1
		}
		for k := range classes {
			at := k*capacity + i
			b.s1[at] += rho * (st.s1[k] - b.s1[at])
			b.s2[at] += rho * (st.s2[k] - b.s2[at])
		}
	}
	if last && weight > minWeight && l.cfg.LearningRate > 0 {
		// ∂F/∂w_i = Σ_k G_ik·m_k + coef_ik·V_k·w_i: the cavity is never formed
		for k := range classes {
			rows := w.fresh[k*size*m : k*size*m+n*m]
			dense.MulTri(n, m, rows, m, g.U[k*m*m:], m, w.u, m)
			for i := range n {
				row := w.ev.w[i*m : (i+1)*m]
				dense.Axpy(weight*w.g[k*size+i], g.Mean[k*m:(k+1)*m], row)
				dense.Axpy(weight*w.coef[k*size+i], w.u[i*m:(i+1)*m], row)
			}
		}
	}
}

// refresh recomputes horizon h's posterior from its absorbed sites and those
// of the keep window points with features wk.
func (l *Learner) refresh(h, keep int, wk []float64) error {
	w, m := &l.work, l.m
	b, g := &l.bank[h], &l.view.Bank[h]
	for k := range len(l.view.Latent) {
		u := g.U[k*m*m : (k+1)*m*m]
		copy(u, b.A[k*m*m:(k+1)*m*m])
		dense.WeightedGram(keep, m, b.s1[k*l.capacity:], 1, wk, m, u, m)
		copy(w.bt, b.b[k*m:(k+1)*m])
		dense.Gemv(true, keep, m, 1, wk, m, b.s2[k*l.capacity:k*l.capacity+keep], 1, w.bt)
		if err := g.Factor(k, w.bt, w.y); err != nil {
			return fmt.Errorf("online: horizon %g: %w", b.length, err)
		}
	}
	return nil
}

// features recomputes the window's features in the current basis, and
// refreshAll every posterior. Both are functions of the state alone, so that a
// restored learner holds the same numbers.
func (l *Learner) features() {
	w := &l.work
	l.basis.FeaturesTo(w.kx, w.w, w.q, len(l.winY), l.winX, w.xs, w.xx)
}

func (l *Learner) refreshAll() error {
	l.view.Basis = l.basis
	for h := range l.bank {
		if err := l.refresh(h, len(l.winY), l.work.w); err != nil {
			return err
		}
	}
	return nil
}

// gradient turns what the last sweeps left in work.ev into the gradient of
// the new samples' evidence with respect to the parameters, work.ev.grad.
func (l *Learner) gradient(n int) {
	w := &l.work
	x := l.winX[(len(l.winY)-n)*l.d:]
	w.ev.backprop(l.basis, &l.params, n, x, w.kx, w.w)
	g := &w.ev.grad[len(w.ev.grad)-1]
	*g = 0
	if l.cfg.LabelNoise.Learn && l.basis.Eps > 0 {
		*g = w.epsGrad
	}
}

// move takes one ascent step of rate lr along the gradient and projects the
// absorbed sites on the new basis,
//
//	T = L_old⁻¹ c(Z_old, Z_new) L_new⁻ᵀ,   A ← TᵀAT,   b ← Tᵀb
//
// which keeps the absorbed likelihood as a function of f. The sites of the
// window need nothing: they are scalars in f.
//
// Source: Bui, Nguyen & Turner (2017), without the residual covariance term,
// which changes the posterior mean by less than 0.3 %.
func (l *Learner) move(lr float64) error {
	w, m := &l.work, l.m
	copy(w.z0, l.params.Z())
	l.opt.ascend(l.params.Theta, w.ev.grad, lr)
	l.params.Clamp(l.cfg.LabelNoise.Max)
	for i, v := range l.params.Theta[:len(l.params.Theta)-1] {
		if v-v != 0 {
			return fmt.Errorf("online: parameter %d after the gradient step: %w", i, model.ErrNotFinite)
		}
	}
	retries, err := l.spare.Set(&l.params)
	l.counters.CholeskyRetries += uint64(retries)
	if err != nil {
		return fmt.Errorf("online: new basis: %w", err)
	}
	l.spare.CrossTo(w.tt, w.z0, w.zs, w.zz) // c(Z_new, Z_old), rows new
	dense.SolveTriTrans(m, m, l.basis.L, m, w.tt, m)
	transpose(w.t, w.tt, m)
	dense.SolveTriTrans(m, m, l.spare.L, m, w.t, m) // T
	for h := range l.bank {
		b := &l.bank[h]
		for k := range len(l.view.Latent) {
			a := b.A[k*m*m : (k+1)*m*m]
			mirror(w.full, a, m)
			dense.Gemm(false, false, m, m, m, 1, w.full, m, w.t, m, 0, w.at, m)
			dense.Gemm(true, false, m, m, m, 1, w.t, m, w.at, m, 0, a, m)
			copy(w.y, b.b[k*m:(k+1)*m])
			dense.Gemv(true, m, m, 1, w.t, m, w.y, 0, b.b[k*m:(k+1)*m])
		}
	}
	l.basis, l.spare = l.spare, l.basis
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

func scale(f float64, x []float64) {
	for i := range x {
		x[i] *= f
	}
}
