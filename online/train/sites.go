package train

import (
	"math"

	"edge/online/sep"
)

// explicit reports whether every sample keeps sites of its own.
func (t *Trainer) explicit() bool { return t.how.Sites != Tied }

// summed reports whether A and b are the sum of the explicit sites in every step.
func (t *Trainer) summed() bool { return t.explicit() && t.batch == t.n }

// maxOwn bounds the part of a marginal's precision that a minibatch attributes to
// the sample's own site: A has lost some of it in projections.
const maxOwn = 0.3

// winNodes is the number of nodes of the joint probability.
const winNodes = 32

// updateSites computes the new sites of rows, whose marginals are known, and
// adds to the log evidence. It returns the gradient in logit ε.
//
// Labels are believed in the first pass: while the model is poor, most labels look
// wrong.
func (t *Trainer) updateSites(rows []int) (epsGrad float64) {
	eps, c := t.bases[0].Eps, float64(t.c)
	left := math.Pow(1-t.damping*float64(t.batch)/float64(t.n), float64(t.next/t.batch)) // in A, of the sites at the pass's start
	robust := 0.0
	if t.pass > 0 {
		robust = eps
	}
	first := t.pass == 0 && (t.batch < t.n || t.counts.Steps == 0)
	for i, r := range rows {
		var logZ, py float64
		if t.how.Sites == Pairs {
			logZ, py = t.updatePairs(i, r, left, first, robust)
		} else {
			logZ, py = t.updateClasses(i, r, left, robust)
		}
		if robust > 0 {
			right := (1-eps)*py + eps/c
			logZ = math.Log(right)
			epsGrad += (1/c - py) / right * eps * (1 - eps)
		}
		t.sum += logZ
	}
	return epsGrad
}

// share is the part of an explicit site of precision s1 that is in a marginal of
// variance v: all of it in full batches. left is the part that remains after a pass of
// minibatches.
func (t *Trainer) share(left, s1, v float64) float64 {
	if t.summed() {
		return 1
	}
	return min(left, maxOwn/max(s1*v, maxOwn))
}

// updateClasses updates the site of each class of the i-th sample loaded, which is
// sample r of the set. It returns log Z without label noise, and the probability of the
// label under the cavities, which is 1 where it is not needed.
func (t *Trainer) updateClasses(i, r int, left, robust float64) (logZ, py float64) {
	w, c, n := &t.work, t.c, t.loaded
	st, y, explicit := &w.sites.site, w.batch.y[i], t.explicit()
	for k := range c {
		at := k*n + i
		st.A[k], st.V[k] = w.mean[at], w.variance[at]
		if explicit {
			share := t.share(left, t.s1[r*c+k], w.variance[at])
			w.sites.s1[i*c+k], w.sites.s2[i*c+k] = share*t.s1[r*c+k], share*t.s2[r*c+k]
			st.A[k], st.V[k], _ = sep.Cavity(w.mean[at], w.variance[at], w.sites.s1[i*c+k], w.sites.s2[i*c+k])
		}
		st.T[k] = w.q[t.basis(k)][i] + st.V[k]
	}
	if t.how.Sites == Rep {
		logZ = st.UpdateJoint(y, robust, w.sites.win)
		py = math.Exp(logZ)
	} else {
		py = 1
		if robust > 0 {
			py = st.Probability(y)
		}
		st.Update(y, robust, py)
		logZ = st.LogZ()
	}
	for k := range c {
		at := k*n + i
		w.grad.g[at], w.grad.d[at], w.grad.coef[at] = st.G[k], st.D[k], 2*st.D[k]
		if explicit {
			w.grad.coef[at] = along(st.G[k], st.D[k], w.mean[at], w.variance[at], w.sites.s1[i*c+k], w.sites.s2[i*c+k])
		}
	}
	t.keep(i, r, st.S1, st.S2)
	return logZ, py
}

// along is the coefficient of V·w in ∂log Z/∂w of a factor with the derivatives g and d
// whose site (s1, s2) was removed from the marginal.
func along(g, d, mean, v, s1, s2 float64) float64 {
	return (g*(s1*mean-s2) + 2*d) / max(1-s1*v, sep.MinCavity)
}

// updatePairs is updateClasses with a site for each pair: the marginal of the label's
// class has C−1 sites of the sample, and the cavity of a pair lacks its own alone.
//
// The gradient of the label's class is the sum over its pairs, each with its cavity.
func (t *Trainer) updatePairs(i, r int, left float64, first bool, robust float64) (logZ, py float64) {
	w, c, n := &t.work, t.c, t.loaded
	st, y := &w.sites.pair, w.batch.y[i]
	s1, s2, p1, p2 := t.s1[r*c:(r+1)*c], t.s2[r*c:(r+1)*c], t.p1[r*c:(r+1)*c], t.p2[r*c:(r+1)*c]
	mean, v, q := w.mean[y*n+i], w.variance[y*n+i], w.q[t.basis(y)][i]
	own := t.share(left, s1[y], v) // of the label's pairs
	for k := range c {
		at := k*n + i
		share := t.share(left, s1[k], w.variance[at])
		w.sites.s1[i*c+k], w.sites.s2[i*c+k] = share*s1[k], share*s2[k]
		st.A[k], st.V[k], _ = sep.Cavity(w.mean[at], w.variance[at], share*s1[k], share*s2[k])
		st.T[k] = w.q[t.basis(k)][i] + st.V[k]
		st.LA[k], st.LV[k], _ = sep.Cavity(mean, v, own*p1[k], own*p2[k])
		st.LT[k] = q + st.LV[k]
	}
	py = 1
	if robust > 0 {
		py = st.Probability(y)
	}
	st.Update(y, first, robust, py)
	var g, d, coef float64
	for k := range c {
		if k == y {
			continue
		}
		at := k*n + i
		w.grad.g[at], w.grad.d[at] = -st.G[k], st.D[k]
		w.grad.coef[at] = along(-st.G[k], st.D[k], w.mean[at], w.variance[at], w.sites.s1[i*c+k], w.sites.s2[i*c+k])
		g, d = g+st.G[k], d+st.D[k]
		coef += along(st.G[k], st.D[k], mean, v, own*p1[k], own*p2[k])
		p1[k] += t.damping * (st.P1[k] - p1[k])
		p2[k] += t.damping * (st.P2[k] - p2[k])
	}
	w.grad.g[y*n+i], w.grad.d[y*n+i], w.grad.coef[y*n+i] = g, d, coef
	t.keep(i, r, st.S1, st.S2)
	return st.LogZ(), py
}

// keep stores the new sites of the i-th sample loaded, sample r of the set, for the sums
// of the step; explicit ones are damped as well.
func (t *Trainer) keep(i, r int, s1, s2 []float64) {
	c, rho := t.c, t.damping
	copy(t.work.sites.s1[i*c:(i+1)*c], s1)
	copy(t.work.sites.s2[i*c:(i+1)*c], s2)
	if !t.explicit() {
		return
	}
	for k := range c {
		t.s1[r*c+k] += rho * (s1[k] - t.s1[r*c+k])
		t.s2[r*c+k] += rho * (s2[k] - t.s2[r*c+k])
	}
}
