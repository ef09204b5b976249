package sep

import (
	"math"

	"edge/model/dense"
)

// sweeps learns the n new samples of work.batch, under every horizon: it refines sites,
// fades the absorbed ones, and absorbs those of the points that leave the window. The
// recent samples are the new ones and those that were filtered before them. It leaves
// the posteriors as they were, and in work.grad the gradient with respect to the
// features of the latest gradientPoints samples.
func (b *Bank) sweeps(n int) error {
	w, m, d := &b.work, b.cfg.Inducing, b.cfg.Features
	f := &w.features
	if !f.current {
		b.updateFeatures()
	}
	old, recent := len(b.winY), b.filtered+n
	b.winX, b.winY, b.winW = append(b.winX, w.batch.x[:n*d]...), append(b.winY, w.batch.latents[:n]...), append(b.winW, w.batch.weights[:n]...)
	total := old + n
	out := max(0, total-max(b.cfg.Window, recent))
	points := b.gradientPoints(recent, total-out)
	for g := range b.bases {
		b.featuresOf(g, old, n)
		w.grad.ev[g].Resize(points, m, d)
	}

	w.grad.eps, w.grad.objective = 0, 0
	for h := range b.sites {
		for s := range b.cfg.Sweeps {
			b.sweep(h, s, b.firstRefined(out, recent), n, points)
		}
		b.absorb(h, out, recent)
	}
	b.winX, b.winY, b.winW = append(b.winX[:0], b.winX[out*d:]...), append(b.winY[:0], b.winY[out:]...), append(b.winW[:0], b.winW[out:]...)
	// The gradient needs the features of its samples.
	for g := range b.bases {
		copy(f.kx[g], f.kx[g][(total-points)*m:total*m])
		copy(f.w[g], f.w[g][(total-points)*m:total*m])
	}
	b.filtered = 0
	return nil
}

// firstRefined is the first of the window points whose sites a step refines, where that
// many samples are recent and out points leave the window. While the model warms up,
// and parameters and posterior change much, all are refined; later those of the latest
// refinedSteps steps.
func (b *Bank) firstRefined(out, recent int) int {
	if !b.live {
		return out
	}
	return max(out, len(b.winY)-refinedSteps*recent)
}

// damping is that of a site's update after the first sweep. After the warm-up, where a
// step refines fewer sites at once and each of them a few times only, half as much of
// the old one is kept.
func (b *Bank) damping() float64 {
	if !b.live {
		return b.cfg.Damping
	}
	return (1 + b.cfg.Damping) / 2
}

// absorb fades horizon h's absorbed sites by the recent samples, and absorbs those of
// the out oldest points, which it removes from the sites of the window.
func (b *Bank) absorb(h, out, recent int) {
	m, z, total := b.cfg.Inducing, &b.sites[h], len(b.winY)
	if length := min(z.length, b.reach); !math.IsInf(length, 1) {
		gamma := 1 - float64(recent)/max(length, float64(recent))
		for k := range b.view.Latent {
			b.precision(h, k).fade(gamma)
		}
		Scale(gamma, z.b)
		b.fadeJoined(h, gamma)
	}
	if out == 0 {
		return
	}
	for k := range b.view.Latent {
		leaving := b.work.features.w[b.basis(k)][:out*m]
		s1, s2 := z.s1[k*b.capacity:(k+1)*b.capacity], z.s2[k*b.capacity:(k+1)*b.capacity]
		a, square := b.precision(h, k), b.work.square[:m*m]
		a.load(square)
		dense.WeightedGram(out, m, s1, 1, leaving, m, square, m)
		a.store(square)
		dense.Gemv(true, out, m, 1, leaving, m, s2[:out], 1, z.b[k*m:(k+1)*m])
		for _, sites := range z.window() {
			row := (*sites)[k*b.capacity : k*b.capacity+total]
			copy(row, row[out:])
			clear(row[total-out:])
		}
	}
}

// sweep updates the sites of horizon h's window points from first on in parallel; all
// sweeps but the last one update those of the n new points alone. The gradient is taken
// of the last points ones, in the last sweep. In the first sweep a new point's cavity is the
// posterior before it (assumed-density filtering), its site is taken whole, and
// its label is believed; later sweeps are damped and weigh the label noise.
//
// The likelihood of a sample of weight w is taken to the power w: its site is
// that of one copy to the power w, and the cavity of a copy leaves out that copy
// alone, as if it had been learnt w times at once. A sample of a weight below 1
// has a cavity without it.
func (b *Bank) sweep(h, s, first, n, points int) {
	w, capacity, total := &b.work, b.capacity, len(b.winY)
	z := &b.sites[h]
	classes := len(b.view.Latent)
	last := s == b.cfg.Sweeps-1
	follow := last && b.weight(h) > minWeight && b.cfg.LearningRate > 0
	if !last {
		first = total - n
	}
	for k := range classes {
		b.marginals(h, k, s, first, n)
		if s > 0 && n > 0 {
			b.addNew(h, k, first, n)
		}
		if follow {
			b.keepRows(h, k, s, first, n, points)
		}
	}
	eps := b.bases[0].Eps
	st := &w.site
	for i := first; i < total; i++ {
		whole, fresh := s == 0 && i >= total-n, last && i >= total-points
		y, power := b.winY[i], b.winW[i]
		copies := max(power, 1)
		for k := range classes {
			at := k*capacity + i
			a, v, _ := Cavity(w.mean[at], w.variance[at], z.s1[at]/copies, z.s2[at]/copies)
			st.A[k], st.V[k], st.T[k] = a, v, w.features.q[b.basis(k)][i]+v
		}
		label, qy := y*capacity+i, w.features.q[b.basis(y)][i]
		for k := range classes {
			at := k*capacity + i
			a, v, _ := Cavity(w.mean[label], w.variance[label], z.p1[at]/copies, z.p2[at]/copies)
			st.LA[k], st.LV[k], st.LT[k] = a, v, qy+v
		}
		robust, py := eps, 1.0
		if whole {
			robust = 0
		}
		if eps > 0 && (robust > 0 || fresh) {
			py = st.Probability(y)
		}
		st.Update(y, whole, robust, py)
		if fresh {
			b.noteGradient(h, i, i-(total-points), points, py)
		}
		rho := b.damping()
		if whole {
			rho = 1
		}
		for k := range classes {
			at := k*capacity + i
			z.s1[at] += rho * (power*st.S1[k] - z.s1[at])
			z.s2[at] += rho * (power*st.S2[k] - z.s2[at])
			z.p1[at] += rho * (power*st.P1[k] - z.p1[at])
			z.p2[at] += rho * (power*st.P2[k] - z.p2[at])
		}
	}
	if follow {
		b.addFeatureGradient(h, points)
	}
}

// weight is the weight of horizon h in the gradient.
func (b *Bank) weight(h int) float64 {
	if b.OwnWeights != nil {
		return b.OwnWeights[h]
	}
	return b.view.Weights[h]
}

// noteGradient stores the derivatives of the site in work.site, of window point i
// under horizon h, as those of sample at of the gradient's points. py is the cavity
// probability of its label.
func (b *Bank) noteGradient(h, i, at, points int, py float64) {
	w, st, z := &b.work, &b.work.site, &b.sites[h]
	weight, power, eps, size := b.weight(h), b.winW[i], b.bases[0].Eps, b.gradientRoom()
	copies, classes := max(power, 1), len(b.view.Latent)
	w.grad.resp[at] = st.R
	if w.grad.trace {
		w.grad.objective += weight * power * st.R * st.LogZ()
	}
	if eps > 0 {
		c := float64(classes)
		w.grad.eps += weight * power / float64(points) * (1/c - py) / ((1-eps)*py + eps/c) * eps * (1 - eps)
	}
	y := b.winY[i]
	label := y*b.capacity + i
	var g, coef, d float64 // of the label's class: sums over its pairs
	for k := range classes {
		if k == y {
			continue
		}
		j := k*b.capacity + i
		s1, s2 := z.s1[j]/copies, z.s2[j]/copies
		e := max(1-s1*w.variance[j], MinCavity)
		w.grad.g[k*size+at] = -power * st.G[k]
		w.grad.coef[k*size+at] = power * (2*st.D[k] - st.G[k]*(s1*w.mean[j]-s2)) / e
		w.grad.ev[b.basis(k)].Q[at] += weight * power * st.D[k]
		s1, s2 = z.p1[j]/copies, z.p2[j]/copies
		e = max(1-s1*w.variance[label], MinCavity)
		g += st.G[k]
		coef += (2*st.D[k] + st.G[k]*(s1*w.mean[label]-s2)) / e
		d += st.D[k]
	}
	w.grad.g[y*size+at], w.grad.coef[y*size+at] = power*g, power*coef
	w.grad.ev[b.basis(y)].Q[at] += weight * power * d
}

// addFeatureGradient adds horizon h's part of the gradient with respect to the
// features of the points,
//
//	∂F/∂w_i = Σ_k G_ik·m_k + coef_ik·V_k·w_i
//
// so that the cavity is never formed.
func (b *Bank) addFeatureGradient(h, points int) {
	w, m, g, size := &b.work, b.cfg.Inducing, &b.view.Bank[h], b.gradientRoom()
	weight := b.weight(h)
	for k := range b.view.Latent {
		rows, shift := w.grad.fresh[k*size*m:k*size*m+points*m], w.grad.shift[k*m:(k+1)*m]
		for i := range points {
			row := rows[i*m : (i+1)*m]
			Scale(w.grad.coef[k*size+i], row)
			dense.Axpy(w.grad.g[k*size+i], shift, row)
		}
		dense.MulTri(points, m, rows, m, g.U[k*m*m:], m, w.u, m)
		ev := &w.grad.ev[b.basis(k)]
		for i := range points {
			row := ev.W[i*m : (i+1)*m]
			dense.Axpy(weight*w.grad.g[k*size+i], g.Mean[k*m:(k+1)*m], row)
			dense.Axpy(weight, w.u[i*m:(i+1)*m], row)
		}
	}
}

// Scale multiplies x by f.
func Scale(f float64, x []float64) {
	for i := range x {
		x[i] *= f
	}
}
