package online

import (
	"fmt"
	"math"
	"slices"

	"edge/model"
	"edge/model/dense"
)

// sweeps forgets, absorbs what leaves the window, and runs the sweeps over the
// window with the n new samples of work.batchX and work.labels at its end, for
// every horizon. Recent are these and those that were filtered before them. It
// leaves the posteriors without the last sweep's sites, and the gradient with respect to the features of as many samples as
// gradientPoints says, the latest, in work.ev.
func (l *Learner) sweeps(n int) error {
	w, m, d := &l.work, l.m, l.d
	if !w.current {
		l.features()
	}
	old, recent := len(l.winY), l.filtered+n
	l.winX, l.winY, l.winW = append(l.winX, w.batchX[:n*d]...), append(l.winY, w.labels[:n]...), append(l.winW, w.weights[:n]...)
	total := old + n
	out := max(0, total-max(l.cfg.Window, recent))
	points := l.gradientPoints(recent, total-out)
	for g := range l.bases {
		l.featuresOf(g, old, n)
		w.ev[g].resize(points, m, d)
	}
	l.winX, l.winY, l.winW = append(l.winX[:0], l.winX[out*d:]...), append(l.winY[:0], l.winY[out:]...), append(l.winW[:0], l.winW[out:]...)

	w.epsGrad, w.objective = 0, 0
	for h := range l.bank {
		b := &l.bank[h]
		gamma := 1.0
		if length := l.watch.horizonNow(b.length); !math.IsInf(length, 1) {
			gamma = 1 - float64(recent)/max(length, float64(recent))
			scale(gamma, b.A)
			scale(gamma, b.b)
		}
		for k := range len(l.view.Latent) {
			leaving := w.w[l.basis(k)][:out*m]
			s1, s2 := b.s1[k*l.capacity:(k+1)*l.capacity], b.s2[k*l.capacity:(k+1)*l.capacity]
			dense.WeightedGram(out, m, s1, 1, leaving, m, b.A[k*m*m:], m)
			dense.Gemv(true, out, m, 1, leaving, m, s2[:out], 1, b.b[k*m:(k+1)*m])
			copy(s1, s1[out:old])
			copy(s2, s2[out:old])
			clear(s1[max(old-out, 0):])
			clear(s2[max(old-out, 0):])
		}
		if gamma != 1 { // otherwise the totals are what they were
			if err := l.refresh(h, out, total); err != nil {
				return err
			}
		}
		for s := range l.cfg.Sweeps {
			if s > 0 {
				if err := l.refresh(h, out, total); err != nil {
					return err
				}
			}
			l.sweep(h, s, n, points, out, total)
		}
	}
	// Their features stay for the gradient.
	for g := range l.bases {
		copy(w.kx[g], w.kx[g][(total-points)*m:total*m])
		copy(w.w[g], w.w[g][(total-points)*m:total*m])
	}
	l.filtered = 0
	return nil
}

// sweep updates the sites of horizon h's window points in parallel: those whose
// features are rows from to to; the last n are new, of the last points ones the
// gradient is taken. In the first sweep a new point's cavity is the posterior before it (assumed-density filtering), its
// site is taken whole, and labels are believed; later sweeps are damped and
// weigh the label noise.
//
// The likelihood of a sample of weight w is taken to the power w: its site is
// that of one copy to the power w, and the cavity of a copy leaves out that copy
// alone, as if it had been taught w times at once. One of a weight below 1 has a
// cavity without it.
func (l *Learner) sweep(h, s, n, points, from, to int) {
	w, m, capacity, keep := &l.work, l.m, l.capacity, to-from
	b, g := &l.bank[h], &l.view.Bank[h]
	classes := len(l.view.Latent)
	last := s == l.cfg.Sweeps-1
	size := l.gradientRoom()
	for k := range classes {
		wk := w.w[l.basis(k)][from*m : to*m]
		dense.MulTriTrans(keep, m, wk, m, g.U[k*m*m:], m, w.u, m)
		dense.Gemv(false, keep, m, 1, wk, m, g.Mean[k*m:(k+1)*m], 0, w.mean[k*capacity:k*capacity+keep])
		for i := range keep {
			row := w.u[i*m : (i+1)*m]
			w.variance[k*capacity+i] = dense.Dot(row, row)
		}
		if last {
			copy(w.fresh[k*size*m:], w.u[(keep-points)*m:keep*m])
		}
	}
	weight := l.view.Weights[h]
	eps := l.bases[0].Eps
	st := &w.site
	for i := range keep {
		first, fresh := s == 0 && i >= keep-n, last && i >= keep-points
		y, power := l.winY[i], l.winW[i]
		copies := max(power, 1)
		for k := range classes {
			at := k*capacity + i
			a, v, _ := cavity(w.mean[at], w.variance[at], b.s1[at]/copies, b.s2[at]/copies)
			st.a[k], st.v[k], st.t[k] = a, v, w.q[l.basis(k)][from+i]+v
		}
		robust, py := eps, 1.0
		if first {
			robust = 0
		}
		if eps > 0 && (robust > 0 || fresh) {
			py = st.probability(y)
		}
		st.update(y, robust, py)
		if fresh {
			at := i - (keep - points)
			w.resp[at] = st.r
			if w.trace {
				w.objective += weight * power * st.r * st.logZ()
			}
			if eps > 0 {
				c := float64(classes)
				w.epsGrad += weight * power / float64(points) * (1/c - py) / ((1-eps)*py + eps/c) * eps * (1 - eps)
			}
			for k := range classes {
				j := k*capacity + i
				s1, s2 := b.s1[j]/copies, b.s2[j]/copies
				e := max(1-s1*w.variance[j], minCavity)
				w.g[k*size+at] = power * st.g[k]
				w.coef[k*size+at] = power * (st.g[k]*(s1*w.mean[j]-s2) + 2*st.d[k]) / e
				w.ev[l.basis(k)].q[at] += weight * power * st.d[k]
			}
		}
		rho := l.cfg.Damping
		if first {
			rho = 1
		}
		for k := range classes {
			at := k*capacity + i
			b.s1[at] += rho * (power*st.s1[k] - b.s1[at])
			b.s2[at] += rho * (power*st.s2[k] - b.s2[at])
		}
	}
	if last && weight > minWeight && l.cfg.LearningRate > 0 {
		// ∂F/∂w_i = Σ_k G_ik·m_k + coef_ik·V_k·w_i: the cavity is never formed
		for k := range classes {
			rows := w.fresh[k*size*m : k*size*m+points*m]
			dense.MulTri(points, m, rows, m, g.U[k*m*m:], m, w.u, m)
			ev := &w.ev[l.basis(k)]
			for i := range points {
				row := ev.w[i*m : (i+1)*m]
				dense.Axpy(weight*w.g[k*size+i], g.Mean[k*m:(k+1)*m], row)
				dense.Axpy(weight*w.coef[k*size+i], w.u[i*m:(i+1)*m], row)
			}
		}
	}
}

// gradientPoints is the number of samples whose evidence the gradient follows: the
// recent ones, and in the warm-up the latest of the window before them up to the
// configured number. Later, when many were learnt, the same samples again and again
// did harm.
func (l *Learner) gradientPoints(recent, window int) int {
	if l.warm {
		return recent
	}
	return min(max(recent, l.cfg.Gradient), window)
}

// gradientRoom is the largest such number.
func (l *Learner) gradientRoom() int { return max(l.recent, l.cfg.Gradient) }

// refresh recomputes horizon h's posterior from its absorbed sites and those
// of the window points, whose features are rows from to to.
func (l *Learner) refresh(h, from, to int) error {
	w, m, keep := &l.work, l.m, to-from
	b, g := &l.bank[h], &l.view.Bank[h]
	for k := range len(l.view.Latent) {
		wk := w.w[l.basis(k)][from*m : to*m]
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
// restored learner holds the same numbers: to the last bit, because filtered
// samples are taken in one by one here, too.
func (l *Learner) features() {
	l.ready()
	swept := len(l.winY) - l.filtered
	for g := range l.bases {
		l.featuresOf(g, 0, swept)
		for at := swept; at < len(l.winY); at++ {
			l.featuresOf(g, at, 1)
		}
	}
	l.work.current = true
}

func (l *Learner) refreshAll() error {
	swept := len(l.winY) - l.filtered
	for h := range l.bank {
		if err := l.refresh(h, 0, swept); err != nil {
			return err
		}
		for at := swept; at < len(l.winY); at++ {
			l.project(h, at)
			if err := l.include(h, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// featuresOf computes the features in basis g of the n window points from at on.
func (l *Learner) featuresOf(g, at, n int) {
	w, m := &l.work, l.m
	l.bases[g].FeaturesTo(w.kx[g][at*m:], w.w[g][at*m:], w.q[g][at:], n, l.winX[at*l.d:(at+n)*l.d], w.xs, w.xx)
}

// filter learns the n samples of work.batchX and work.labels one by one, each by
// its site under the posterior before it (assumed-density filtering), which a
// rank-one update takes in: O(H·C·M²) a sample. What else a step does, forget,
// sweep over the window, follow the gradient, a later step does for these too.
func (l *Learner) filter(n int) error {
	w, m, d := &l.work, l.m, l.d
	st := &w.site
	for i := range n {
		at, y, power := len(l.winY), w.labels[i], w.weights[i]
		l.winX, l.winY, l.winW = append(l.winX, w.batchX[i*d:(i+1)*d]...), append(l.winY, y), append(l.winW, power)
		l.filtered++
		for g := range l.bases {
			l.featuresOf(g, at, 1)
		}
		for h := range l.bank {
			l.project(h, at)
			b, g := &l.bank[h], &l.view.Bank[h]
			for k := range l.view.Latent {
				x, u := w.w[l.basis(k)][at*m:(at+1)*m], w.u[k*m:(k+1)*m]
				st.a[k], st.v[k] = dense.Dot(g.Mean[k*m:(k+1)*m], x), dense.Dot(u, u)
				st.t[k] = w.q[l.basis(k)][at] + st.v[k]
			}
			st.update(y, 0, 1)
			for k := range l.view.Latent {
				b.s1[k*l.capacity+at], b.s2[k*l.capacity+at] = power*st.s1[k], power*st.s2[k]
			}
			if err := l.include(h, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// project leaves U_k·w of the window point at, under horizon h, in work.u.
func (l *Learner) project(h, at int) {
	w, m, g := &l.work, l.m, &l.view.Bank[h]
	for k := range l.view.Latent {
		dense.MulTriTrans(1, m, w.w[l.basis(k)][at*m:], m, g.U[k*m*m:], m, w.u[k*m:], m)
	}
}

// include takes the sites of the window point at, which project has seen, into
// horizon h's posterior.
func (l *Learner) include(h, at int) error {
	w, m, b := &l.work, l.m, &l.bank[h]
	for k := range l.view.Latent {
		s1, s2 := b.s1[k*l.capacity+at], b.s2[k*l.capacity+at]
		if err := l.view.Bank[h].Include(k, s1, s2, w.w[l.basis(k)][at*m:(at+1)*m], w.u[k*m:(k+1)*m], w.y); err != nil {
			return fmt.Errorf("online: horizon %g: %w", b.length, err)
		}
	}
	return nil
}

// gradient turns what the last sweeps left in work.ev into the gradient of
// the n latest samples' evidence with respect to the parameters, work.grad.
func (l *Learner) gradient(n int) {
	w := &l.work
	x := l.knownRows(n)
	size := len(w.grad) / len(l.bases)
	for g, b := range l.bases {
		p := l.params.Group(g)
		w.ev[g].backprop(b, &p, n, x, w.kx[g], w.w[g])
		into := w.grad[g*size : (g+1)*size]
		copy(into, w.ev[g].grad)
		into[size-1] = 0
		if l.again {
			clear(into[:l.m*l.d])
			pull(into[l.m*l.d:], p.LogEll(), passPrior*float64(n)/float64(len(l.bufY)))
		}
	}
	if l.cfg.LabelNoise.Learn && l.bases[0].Eps > 0 {
		w.grad[size-1] = w.epsGrad
	}
}

// pull adds to grad the gradient of a normal prior of that precision on each log ℓ
// around their mean.
func pull(grad, logEll []float64, precision float64) {
	var mean float64
	for _, v := range logEll {
		mean += v / float64(len(logEll))
	}
	for j, v := range logEll {
		grad[j] -= precision * (v - mean)
	}
}

// knownRows returns the n latest samples' standardised features for the gradient.
// Samples that lack a feature teach the sites alone: their rows count for nothing.
func (l *Learner) knownRows(n int) []float64 {
	w, d := &l.work, l.d
	x := l.winX[(len(l.winY)-n)*d:]
	if !slices.Contains(x, model.Missing) {
		return x
	}
	copy(w.batchX, x)
	x = w.batchX[:n*d]
	for i := range n {
		row := x[i*d : (i+1)*d]
		if !slices.Contains(row, model.Missing) {
			continue
		}
		clear(row)
		for g := range w.ev {
			clear(w.ev[g].w[i*l.m : (i+1)*l.m])
			w.ev[g].q[i] = 0
		}
	}
	return x
}

// move takes one ascent step of rate lr along the gradient, twice that for the logit
// of the label noise, which may have a long way to go, and projects the absorbed
// sites on the new basis,
//
//	T = L_old⁻¹ c(Z_old, Z_new) L_new⁻ᵀ,   A ← TᵀAT,   b ← Tᵀb
//
// which keeps the absorbed likelihood as a function of f. The sites of the
// window need nothing: they are scalars in f.
//
// Source: Bui, Nguyen & Turner (2017), without the residual covariance term,
// which changes the posterior mean by less than 0.3 %.
func (l *Learner) move(lr float64) error {
	w := &l.work
	copy(w.theta0, l.params.Theta)
	l.opt.ascend(l.params.Theta, w.grad, lr)
	if noise := len(l.params.Theta)/len(l.bases) - 1; l.bases[0].Eps > 0 { // the first group's is everybody's
		l.params.Theta[noise] += (l.noiseRate - 1) * (l.params.Theta[noise] - w.theta0[noise])
	}
	l.params.Clamp(l.cfg.LabelNoise.Max)
	return l.rebase()
}

// rebase computes the bases of the parameters, which were work.theta0 before,
// and projects the absorbed sites on them.
func (l *Learner) rebase() error {
	w, m := &l.work, l.m
	old := model.Params{M: m, D: l.d, Theta: w.theta0}
	for g := range l.bases {
		p, before := l.params.Group(g), old.Group(g)
		if err := checkFinite(&p); err != nil {
			return err
		}
		retries, err := l.spares[g].Set(&p)
		l.counters.CholeskyRetries += uint64(retries)
		if err != nil {
			return fmt.Errorf("online: new basis: %w", err)
		}
		w.project.between(l.bases[g], l.spares[g], before.Z())
		for h := range l.bank {
			b := &l.bank[h]
			for k := range len(l.view.Latent) {
				if l.basis(k) == g {
					w.project.site(b.A[k*m*m:(k+1)*m*m], b.b[k*m:(k+1)*m])
				}
			}
		}
	}
	l.bases, l.spares = l.spares, l.bases
	l.view.Bases = l.bases
	return nil
}

// checkFinite returns an error if a parameter is not finite; ε may be 0, and
// its logit infinite.
func checkFinite(p *model.Params) error {
	for i, v := range p.Theta[:len(p.Theta)-1] {
		if v-v != 0 {
			return fmt.Errorf("online: parameter %d after the gradient step: %w", i, model.ErrNotFinite)
		}
	}
	return nil
}

// projection re-bases absorbed sites,
//
//	T = L_old⁻¹ c(Z_old, Z_new) L_new⁻ᵀ,   A ← TᵀAT,   b ← Tᵀb
type projection struct {
	m               int
	t, tt, full, at []float64 // M×M
	zs, zz, y       []float64 // M×D, M, M  scratch
}

func newProjection(m, d int) projection {
	floats := func(n int) []float64 { return make([]float64, n) }
	return projection{
		m: m, t: floats(m * m), tt: floats(m * m), full: floats(m * m), at: floats(m * m),
		zs: floats(m * d), zz: floats(m), y: floats(m),
	}
}

// between computes T; z0 are the old basis's inducing inputs.
func (p *projection) between(old, new *model.Basis, z0 []float64) {
	m := p.m
	new.CrossTo(p.tt, z0, p.zs, p.zz) // c(Z_new, Z_old), rows new
	dense.SolveTriTrans(m, m, old.L, m, p.tt, m)
	transpose(p.t, p.tt, m)
	dense.SolveTriTrans(m, m, new.L, m, p.t, m)
}

// site projects one latent function's absorbed sites: A, of which the lower
// triangle counts, and b.
func (p *projection) site(a, b []float64) {
	m := p.m
	mirror(p.full, a, m)
	dense.Gemm(false, false, m, m, m, 1, p.full, m, p.t, m, 0, p.at, m)
	dense.SymmetricProduct(m, m, p.t, m, p.at, m, a, m)
	copy(p.y, b)
	dense.Gemv(true, m, m, 1, p.t, m, p.y, 0, b)
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
