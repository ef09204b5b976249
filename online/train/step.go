package train

import (
	"fmt"
	"slices"

	"edge/model"
	"edge/model/dense"
	"edge/online/sep"
)

// load standardises samples and computes their features.
func (t *Trainer) load(set Samples, rows []int) {
	w, n := &t.work, len(rows)
	t.loaded = n
	for i, r := range rows {
		set.Row(r, w.batch.raw)
		t.scale.To(w.batch.x[i*t.d:(i+1)*t.d], w.batch.raw)
		w.batch.y[i] = set.Class(r)
	}
	for g, b := range t.bases {
		b.FeaturesTo(w.kx[g], w.w[g], w.q[g], n, w.batch.x, w.batch.xs, w.batch.xx)
	}
}

// factor computes the posterior of the sites to the power f.
func (t *Trainer) factor(f float64) error {
	w, m := &t.work, t.m
	for k := range t.c {
		u := w.gauss.U[k*m*m : (k+1)*m*m]
		for i := range m {
			for j, v := range t.A[(k*m+i)*m : (k*m+i)*m+i+1] {
				u[i*m+j] = f * v
			}
		}
		for i, v := range t.b[k*m : (k+1)*m] {
			w.bt[i] = f * v
		}
		if err := w.gauss.Factor(k, w.bt, w.y); err != nil {
			return fmt.Errorf("online: train: %w", err)
		}
	}
	return nil
}

// marginals computes mean and variance of w·e_k for the n samples loaded.
func (t *Trainer) marginals(n int) {
	w, m := &t.work, t.m
	for k := range t.c {
		wk, u := w.w[t.basis(k)], w.u[k*n*m:(k+1)*n*m]
		dense.MulTriTrans(n, m, wk, m, w.gauss.U[k*m*m:], m, u, m)
		dense.Gemv(false, n, m, 1, wk, m, w.gauss.Mean[k*m:(k+1)*m], 0, w.mean[k*n:(k+1)*n])
		for i := range n {
			row := u[i*m : (i+1)*m]
			w.variance[k*n+i] = dense.Dot(row, row)
		}
	}
}

// gather adds up the explicit sites of all samples in the present bases, and
// leaves the last batch of t.order loaded.
func (t *Trainer) gather() {
	w, c := &t.work, t.c
	clear(t.A)
	clear(t.b)
	for from := 0; from < t.n; from += t.batch {
		rows := t.order[from:min(from+t.batch, t.n)]
		t.load(t.set, rows)
		for i, r := range rows {
			copy(w.sites.s1[i*c:(i+1)*c], t.s1[r*c:(r+1)*c])
			copy(w.sites.s2[i*c:(i+1)*c], t.s2[r*c:(r+1)*c])
		}
		t.include(len(rows))
	}
	t.gathered = true
}

// include adds the sites in work of the n samples loaded to A and b.
func (t *Trainer) include(n int) {
	w, m, c := &t.work, t.m, t.c
	for k := range c {
		wk := w.w[t.basis(k)]
		dense.WeightedGram(n, m, w.sites.s1[k:], c, wk, m, t.A[k*m*m:], m)
		for i := range n {
			dense.Axpy(w.sites.s2[i*c+k], wk[i*m:(i+1)*m], t.b[k*m:(k+1)*m])
		}
	}
}

// update is one step on rows: sites, and if learn is true the parameters.
func (t *Trainer) update(rows []int, learn bool) error {
	w, n, c := &t.work, len(rows), t.c
	all, rho := float64(t.n), t.damping
	explicit, summed := t.explicit(), t.summed()
	cavities := 1 - 1/all
	if explicit {
		cavities = 1
	}
	if summed || explicit && t.next == 0 && !t.gathered {
		t.gather()
	}
	if !summed {
		t.load(t.set, rows)
	}
	t.gathered = false
	if err := t.factor(cavities); err != nil {
		return err
	}
	t.marginals(n)
	epsGrad := t.updateSites(rows)
	if learn {
		t.gradient(n)
		if t.cfg.LabelNoise.Learn && t.bases[0].Eps > 0 {
			w.grad.theta[len(w.grad.theta)/len(t.bases)-1] = epsGrad
		}
	}
	if !summed {
		keep := 1 - rho*float64(n)/all
		if t.pass == 0 && n < t.n {
			keep = 1
		}
		sep.Scale(keep, t.A)
		sep.Scale(keep, t.b)
		for i := range w.sites.s1[:n*c] {
			w.sites.s1[i] *= rho
			w.sites.s2[i] *= rho
		}
		t.include(n)
	}
	t.counts.Steps++
	if !learn {
		return nil
	}
	return t.move()
}

// gradient stores the gradient of the n samples' log evidence in work.grad, with
// the cavities held fixed, and the prior's.
func (t *Trainer) gradient(n int) {
	w, m := &t.work, t.m
	size := len(w.grad.theta) / len(t.bases)
	for g, b := range t.bases {
		w.grad.ev.Resize(n, m, t.d)
		for k := range t.c {
			if t.basis(k) != g {
				continue
			}
			// ∂F/∂w_i = Σ_k G_ik·m_k + coef_ik·V_k·w_i: the cavity is never formed
			dense.MulTri(n, m, w.u[k*n*m:], m, w.gauss.U[k*m*m:], m, w.grad.vw, m)
			mean := w.gauss.Mean[k*m : (k+1)*m]
			for i := range n {
				row := w.grad.ev.W[i*m : (i+1)*m]
				dense.Axpy(w.grad.g[k*n+i], mean, row)
				dense.Axpy(w.grad.coef[k*n+i], w.grad.vw[i*m:(i+1)*m], row)
				w.grad.ev.Q[i] += w.grad.d[k*n+i]
			}
		}
		p := t.params.Group(g)
		w.grad.ev.Backprop(b, &p, n, t.completeRows(n), w.kx[g], w.w[g])
		into := w.grad.theta[g*size : (g+1)*size]
		copy(into, w.grad.ev.Grad)
		into[size-1] = 0
		if t.how.Prior > 0 {
			sep.Pull(into[m*t.d:], p.LogEll(), t.how.Prior*float64(n)/float64(t.n))
		}
	}
}

// completeRows returns the n samples loaded, for the gradient. Samples that lack a
// feature update the sites alone, as in sep: their rows do not count.
func (t *Trainer) completeRows(n int) []float64 {
	w, d := &t.work, t.d
	x := w.batch.x[:n*d]
	if !slices.Contains(x, model.Missing) {
		return x
	}
	x = slices.Clone(x)
	for i := range n {
		if row := x[i*d : (i+1)*d]; slices.Contains(row, model.Missing) {
			clear(row)
			clear(w.grad.ev.W[i*t.m : (i+1)*t.m])
			w.grad.ev.Q[i] = 0
		}
	}
	return x
}

// move takes the parameters one step along the gradient and projects the sites.
func (t *Trainer) move() error {
	w, m := &t.work, t.m
	copy(w.grad.theta0, t.params.Theta)
	var o optimiser = &t.adam
	if t.sign != nil {
		o = t.sign
	}
	o.Ascend(t.params.Theta, w.grad.theta, t.how.rate(t.Passes()))
	t.params.Clamp(t.cfg.LabelNoise.Max)
	old := model.Params{M: m, D: t.d, Theta: w.grad.theta0}
	for g := range t.bases {
		p, before := t.params.Group(g), old.Group(g)
		if err := sep.CheckFinite(&p); err != nil {
			return err
		}
		retries, err := t.spares[g].Set(&p)
		t.counts.CholeskyRetries += uint64(retries)
		if err != nil {
			return fmt.Errorf("online: train: new basis: %w", err)
		}
		if t.summed() {
			continue // the sites are scalars in f: gather adds them up again
		}
		w.project.Between(t.bases[g], t.spares[g], before.Z())
		for k := range t.c {
			if t.basis(k) == g {
				w.project.Site(0, t.A[k*m*m:(k+1)*m*m], t.b[k*m:(k+1)*m])
			}
		}
	}
	t.bases, t.spares = t.spares, t.bases
	return nil
}
