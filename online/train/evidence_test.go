package train

import (
	"errors"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/diff/fd"

	"edge/model"
	"edge/model/dense"
	"edge/online"
	"edge/online/sep"
	"edge/test/cavities"
	"edge/test/golden"
)

// The gradients of all four kinds of training against central differences of
// the evidence with the cavities held fixed. Explicit sites are converged
// first: there the cavities of all samples differ, and each is computed again.
func TestTrainerGradient(t *testing.T) {
	for _, kernel := range []online.Kernel{online.Shared, online.PerClass} {
		t.Run("tied "+string(kernel), func(t *testing.T) {
			how := fullBatch(30)
			how.Rate = 0
			set := newCloud(21, 3, 3, 3)
			tr := newTestTrainer(t, trainConfig(3, 5, kernel), how, 3, set)
			run(t, tr, 30)
			tr.load(set, tr.order)
			if err := tr.factor(1 - 1./21); err != nil {
				t.Fatal(err)
			}
			g := model.Gaussian{M: 5, U: slices.Clone(tr.work.gauss.U), Mean: slices.Clone(tr.work.gauss.Mean)}
			if err := tr.update(tr.order, false); err != nil {
				t.Fatal(err)
			}
			tr.gradient(21)
			at := cavities.Evidence{M: 5, D: 3, X: tr.work.batch.x[:21*3], Y: set.y, Cavity: g, Site: siteEvidence}
			compareGradient(t, tr, func(theta []float64) float64 { return at.At(t, theta) })
		})
		t.Run("explicit "+string(kernel), func(t *testing.T) {
			how := fullBatch(30)
			how.Rate, how.Sites = 0, Merged
			set := newCloud(21, 3, 3, 3)
			tr := newTestTrainer(t, trainConfig(3, 5, kernel), how, 3, set)
			run(t, tr, 30)
			s1, s2 := slices.Clone(tr.s1), slices.Clone(tr.s2)
			if err := tr.update(tr.order, false); err != nil {
				t.Fatal(err)
			}
			tr.gradient(21)
			g := model.Gaussian{M: 5, U: slices.Clone(tr.work.gauss.U), Mean: slices.Clone(tr.work.gauss.Mean)}
			x := slices.Clone(tr.work.batch.x[:21*3])
			w0 := make([][]float64, len(tr.bases)) // features at which the sites are removed
			for b := range w0 {
				w0[b] = slices.Clone(tr.work.w[b][:21*5])
			}
			compareGradient(t, tr, func(theta []float64) (total float64) {
				for i := range 21 { // one sample at a time, with its own cavity
					total += explicitEvidence(t, theta, 5, 3, 3, x[i*3:(i+1)*3], set.y[i], g, w0, i, s1, s2)
				}
				return total
			})
		})
	}
}

// explicitEvidence is log Z of one sample whose sites are removed from the
// posterior g along the features w0, for any parameters.
func explicitEvidence(t *testing.T, theta []float64, m, d, c int, x []float64, y int, g model.Gaussian, w0 [][]float64, i int, s1, s2 []float64) float64 {
	t.Helper()
	p := model.Params{M: m, D: d, Theta: theta}
	var s sep.Site
	s.Resize(c)
	for k := range c {
		b := min(k, p.Groups()-1)
		basis, group := model.NewBasis(m, d), p.Group(b)
		if _, err := basis.Set(&group); err != nil {
			t.Fatal(err)
		}
		kx, w, q := make([]float64, m), make([]float64, m), make([]float64, 1)
		basis.FeaturesTo(kx, w, q, 1, x, make([]float64, d), make([]float64, 1))
		// Sherman-Morrison: V_cav = V + s1·Vw0·Vw0ᵀ/(1 − s1·w0ᵀVw0)
		at, u, vw := w0[b][i*m:(i+1)*m], make([]float64, m), make([]float64, m)
		dense.MulTriTrans(1, m, at, m, g.U[k*m*m:], m, u, m)
		dense.MulTri(1, m, u, m, g.U[k*m*m:], m, vw, m)
		v0, mean0 := dense.Dot(u, u), dense.Dot(at, g.Mean[k*m:(k+1)*m])
		c1, c2 := s1[i*c+k], s2[i*c+k]
		cut := 1 - c1*v0
		dense.MulTriTrans(1, m, w, m, g.U[k*m*m:], m, u, m)
		along := dense.Dot(w, vw)
		s.V[k] = dense.Dot(u, u) + c1*along*along/cut
		s.A[k] = dense.Dot(w, g.Mean[k*m:(k+1)*m]) + along*(c1*mean0-c2)/cut
		s.T[k] = q[0] + s.V[k]
	}
	s.Update(y, 0, 1)
	return s.LogZ()
}

func compareGradient(t *testing.T, tr *Trainer, f func([]float64) float64) {
	t.Helper()
	theta := slices.Clone(tr.params.Theta)
	want := fd.Gradient(nil, f, theta, &fd.Settings{Formula: fd.Central})
	size := len(theta) / len(tr.bases)
	for b := range tr.bases {
		golden.Close(t, "gradient", tr.work.grad.theta[b*size:(b+1)*size-1], want[b*size:(b+1)*size-1], 3e-7)
	}
}

// The prior's part of the gradient is that of −½λ·Σ(log ℓ − mean)².
func TestPriorGradient(t *testing.T) {
	set := newCloud(20, 4, 2, 3)
	grads := [2][]float64{}
	var ell []float64
	for i, prior := range []float64{0, 2} {
		how := fullBatch(5)
		how.Prior = prior
		tr := newTestTrainer(t, trainConfig(4, 5, online.Shared), how, 2, set)
		copy(tr.params.LogEll(), []float64{0.1, 0.5, 0.7, 0.2})
		ell = slices.Clone(tr.params.LogEll())
		if err := tr.setBases(); err != nil {
			t.Fatal(err)
		}
		if err := tr.update(append(tr.order[:0], 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19), false); err != nil {
			t.Fatal(err)
		}
		tr.gradient(20)
		grads[i] = slices.Clone(tr.work.grad.theta)
	}
	penalty := func(ell []float64) (f float64) {
		var mean float64
		for _, v := range ell {
			mean += v / 4
		}
		for _, v := range ell {
			f -= 0.5 * 2 * (v - mean) * (v - mean)
		}
		return f
	}
	want := fd.Gradient(nil, penalty, ell, &fd.Settings{Formula: fd.Central})
	for j := range ell {
		if got := grads[1][20+j] - grads[0][20+j]; math.Abs(got-want[j]) > 1e-7 {
			t.Errorf("∂/∂log ℓ_%d of the prior = %v, want %v", j, got, want[j])
		}
	}
}

// siteEvidence is that of a site for cavities.Evidence.
func siteEvidence(mean, variance, noisy []float64, y int) (prob, logZ float64) {
	var s sep.Site
	s.Resize(len(mean))
	copy(s.A, mean)
	copy(s.V, variance)
	copy(s.T, noisy)
	prob = s.Probability(y)
	s.Update(y, 0, 1)
	return prob, s.LogZ()
}

// logEvidence returns log Z_q, the approximate log evidence of the whole set, in
// nats. It needs full batches. With Φ_k = −½ log|P_k| + ½ b_kᵀP_k⁻¹b_k,
//
//	tied      Σ_k Φ_k + Σ_i [ log Z_i + Σ_k (Φ_k of the cavity − Φ_k) ]
//	explicit  Σ_k Φ_k + Σ_i [ log Z_i + Σ_k ½ log(1+s1·v) − (s2²v + 2·s2·a − s1·a²)/(2(1+s1·v)) ]
//
// where a, v are the cavity's. Without label noise.
func (t *Trainer) logEvidence() (float64, error) {
	if t.batch < t.n {
		return 0, errors.New("online: the log evidence of a set needs full batches")
	}
	w, n, c := &t.work, t.n, t.c
	t.shuffle()
	explicit := t.how.Sites == Merged
	if explicit {
		t.gather()
	} else {
		t.load(t.set, t.order)
	}
	if err := t.factor(1); err != nil {
		return 0, err
	}
	total := t.normalisers(1)
	if !explicit {
		full := total
		if err := t.factor(1 - 1/float64(n)); err != nil {
			return 0, err
		}
		total += float64(n) * (t.normalisers(1-1/float64(n)) - full)
	}
	t.marginals(n)
	st := &w.sites.site
	for i := range n {
		for k := range c {
			at := k*n + i
			st.A[k], st.V[k] = w.mean[at], w.variance[at]
			if explicit {
				s1, s2 := t.s1[i*c+k], t.s2[i*c+k]
				a, v, _ := sep.Cavity(w.mean[at], w.variance[at], s1, s2)
				total += 0.5*math.Log1p(s1*v) - 0.5*(s2*s2*v+2*s2*a-s1*a*a)/(1+s1*v)
				st.A[k], st.V[k] = a, v
			}
			st.T[k] = w.q[t.basis(k)][i] + st.V[k]
		}
		st.Update(w.batch.y[i], 0, 1)
		total += st.LogZ()
	}
	return total, nil
}

// normalisers is Σ_k Φ_k of the posterior that factor(f) has computed.
func (t *Trainer) normalisers(f float64) (sum float64) {
	w, m := &t.work, t.m
	for k := range t.c {
		u := w.gauss.U[k*m*m : (k+1)*m*m]
		for i, v := range t.b[k*m : (k+1)*m] {
			w.bt[i] = f * v
		}
		dense.MulTriTrans(1, m, w.bt, m, u, m, w.y, m)
		sum += 0.5 * dense.Dot(w.y, w.y)
		for i := range m {
			sum += math.Log(u[i*m+i])
		}
	}
	return sum
}
