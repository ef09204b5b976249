package sep

import "edge/model/dense"

// noteGradient stores the derivatives of a worker's site, of window point i under
// horizon h, as those of one of the gradient's points. py is the cavity probability of
// its label.
func (b *Bank) noteGradient(worker, h, i int, py float64) {
	w, st, z, points := &b.work, &b.work.sites[worker], &b.sites[h], b.work.tasks.points
	at := i - (len(b.winY) - points)
	weight, power, eps, size, classes := b.weight(h), b.winW[i], b.bases[0].Eps, b.gradientRoom(), len(b.view.Latent)
	mean, variance := w.moments(h, classes*b.capacity)
	toG, coefs := w.grad.g[h*classes*size:], w.grad.coef[h*classes*size:]
	copies := max(power, 1)
	w.grad.resp[at] = st.R
	note := &w.grad.notes[h*size+at]
	*note = noise{}
	if w.grad.trace {
		note.objective = weight * power * st.R * st.LogZ()
	}
	if eps > 0 {
		c := float64(classes)
		note.eps = weight * power / float64(points) * (1/c - py) / ((1-eps)*py + eps/c) * eps * (1 - eps)
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
		e := max(1-s1*variance[j], MinCavity)
		toG[k*size+at] = -power * st.G[k]
		coefs[k*size+at] = power * (2*st.D[k] - st.G[k]*(s1*mean[j]-s2)) / e
		w.grad.ev[b.basis(k)].Q[at] += weight * power * st.D[k]
		s1, s2 = z.p1[j]/copies, z.p2[j]/copies
		e = max(1-s1*variance[label], MinCavity)
		g += st.G[k]
		coef += (2*st.D[k] + st.G[k]*(s1*mean[label]-s2)) / e
		d += st.D[k]
	}
	toG[y*size+at], coefs[y*size+at] = power*g, power*coef
	w.grad.ev[b.basis(y)].Q[at] += weight * power * d
}

// sumNoise adds up the gradients that the points have noted, in the order of the points.
func (b *Bank) sumNoise(points int) {
	g, size := &b.work.grad, b.gradientRoom()
	g.eps, g.objective = 0, 0
	for h := range b.sites {
		for _, note := range g.notes[h*size : h*size+points] {
			g.eps += note.eps
			g.objective += note.objective
		}
	}
}

// featuresTask replaces the rows of task i by those of the gradient with respect to the
// features,
//
//	coef_ik·V_k·w_i + U_kᵀ·G_ik·shift
//
// so that the cavity is never formed.
func (b *Bank) featuresTask(worker, i int) error {
	w, m, size, points := &b.work, b.cfg.Inducing, b.gradientRoom(), b.work.tasks.points
	h, k := i/len(b.view.Latent), i%len(b.view.Latent)
	if !b.follows(&w.tasks.sweeping, h) {
		return nil
	}
	rows, shift := w.grad.fresh[i*size*m:][:points*m], w.grad.shift[i*m:(i+1)*m]
	for j := range points {
		row := rows[j*m : (j+1)*m]
		Scale(w.grad.coef[i*size+j], row)
		dense.Axpy(w.grad.g[i*size+j], shift, row)
	}
	u := w.rows(worker)
	dense.MulTri(points, m, rows, m, b.view.Bank[h].U[k*m*m:], m, u, m)
	copy(rows, u)
	return nil
}

// addFeatureGradient adds every horizon's part of the gradient with respect to the
// features of the points, after featuresTask,
//
//	∂F/∂w_i = Σ_k G_ik·m_k + coef_ik·V_k·w_i
//
// in the same order on any number of cores.
func (b *Bank) addFeatureGradient(points int) {
	w, m, size, classes := &b.work, b.cfg.Inducing, b.gradientRoom(), len(b.view.Latent)
	for h := range b.sites {
		if !b.follows(&w.tasks.sweeping, h) {
			continue
		}
		weight, g := b.weight(h), &b.view.Bank[h]
		for k := range classes {
			at := h*classes + k
			ev, rows := &w.grad.ev[b.basis(k)], w.grad.fresh[at*size*m:]
			for i := range points {
				row := ev.W[i*m : (i+1)*m]
				dense.Axpy(weight*w.grad.g[at*size+i], g.Mean[k*m:(k+1)*m], row)
				dense.Axpy(weight, rows[i*m:(i+1)*m], row)
			}
		}
	}
}
