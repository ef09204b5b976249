package online

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model"
	"edge/model/dense"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/mat"
)

// batch is expectation propagation on a fixed set with explicit sites for
// every observation, put together from the learner's own parts.
type batch struct {
	p      model.Params
	b      *model.Basis
	g      model.Gaussian
	x      []float64
	y      []int
	c      int
	eps    float64
	kx, w  []float64
	q      []float64
	s1, s2 []float64 // n×C
	// r from the product of Φ rather than from the cavity probability
}

func newBatch(t *testing.T, p model.Params, x []float64, y []int, c int, eps float64) *batch {
	t.Helper()
	n, m := len(y), p.M
	e := &batch{p: p, b: model.NewBasis(m, p.D), g: model.Gaussian{M: m}, x: x, y: y, c: c, eps: eps,
		kx: make([]float64, n*m), w: make([]float64, n*m), q: make([]float64, n), s1: make([]float64, n*c), s2: make([]float64, n*c)}
	for range c {
		e.g.Grow()
	}
	if _, err := e.b.Set(&p); err != nil {
		t.Fatal(err)
	}
	e.b.FeaturesTo(e.kx, e.w, e.q, n, x, make([]float64, n*p.D), make([]float64, n))
	return e
}

// marginal returns mean and variance of w·e_k.
func (e *batch) marginal(i, k int) (mean, v float64) {
	m := e.p.M
	w := e.w[i*m : (i+1)*m]
	u := make([]float64, m)
	dense.MulTriTrans(1, m, w, m, e.g.U[k*m*m:], m, u, m)
	return dense.Dot(w, e.g.Mean[k*m:(k+1)*m]), dense.Dot(u, u)
}

// sweep replaces all sites in parallel, undamped, and returns Σ log Z_i and the largest change.
func (e *batch) sweep(t *testing.T, visit func(i int, s *site)) (logZ, change float64) {
	t.Helper()
	m := e.p.M
	var s site
	s.resize(e.c)
	s1, s2 := make([]float64, len(e.s1)), make([]float64, len(e.s2))
	for i, y := range e.y {
		for k := range e.c {
			mean, v := e.marginal(i, k)
			s.a[k], s.v[k], _ = cavity(mean, v, e.s1[i*e.c+k], e.s2[i*e.c+k])
			s.t[k] = e.q[i] + s.v[k]
		}
		s.update(y, 0, 1)
		if e.eps > 0 {
			s.update(y, e.eps, math.Exp(s.logZ()))
			logZ += math.Log((1-e.eps)*math.Exp(s.logZ()) + e.eps/float64(e.c))
		} else {
			logZ += s.logZ()
		}
		copy(s1[i*e.c:], s.s1)
		copy(s2[i*e.c:], s.s2)
		if visit != nil {
			visit(i, &s)
		}
	}
	for i := range s1 {
		change = max(change, math.Abs(s1[i]-e.s1[i]), math.Abs(s2[i]-e.s2[i]))
	}
	e.s1, e.s2 = s1, s2
	bt, scratch := make([]float64, m), make([]float64, m)
	for k := range e.c {
		clear(e.g.U[k*m*m : (k+1)*m*m])
		dense.WeightedGram(len(e.y), m, e.s1[k:], e.c, e.w, m, e.g.U[k*m*m:], m)
		clear(bt)
		for i := range e.y {
			dense.Axpy(e.s2[i*e.c+k], e.w[i*m:(i+1)*m], bt)
		}
		if err := e.g.Factor(k, bt, scratch); err != nil {
			t.Fatal(err)
		}
	}
	return logZ, change
}

func (e *batch) converge(t *testing.T) {
	t.Helper()
	for range 500 {
		if _, change := e.sweep(t, nil); change < 1e-13 {
			return
		}
	}
	t.Fatal("expectation propagation did not converge in 500 sweeps")
}

// gradient is that of Σ log Z_i with the whitened cavities held fixed.
func (e *batch) gradient(t *testing.T) []float64 {
	t.Helper()
	m, n := e.p.M, len(e.y)
	var ev evidence
	ev.resize(n, m, e.p.D)
	u, vw := make([]float64, m), make([]float64, m)
	s1, s2 := append([]float64(nil), e.s1...), append([]float64(nil), e.s2...)
	g := model.Gaussian{M: m, U: append([]float64(nil), e.g.U...), Mean: append([]float64(nil), e.g.Mean...)}
	e.sweep(t, func(i int, s *site) {
		w := e.w[i*m : (i+1)*m]
		for k := range e.c {
			dense.MulTriTrans(1, m, w, m, g.U[k*m*m:], m, u, m)
			dense.MulTri(1, m, u, m, g.U[k*m*m:], m, vw, m)
			mean, v := dense.Dot(w, g.Mean[k*m:(k+1)*m]), dense.Dot(u, u)
			_, _, cut := cavity(mean, v, s1[i*e.c+k], s2[i*e.c+k])
			dense.Axpy(s.g[k], g.Mean[k*m:(k+1)*m], ev.w[i*m:(i+1)*m])
			dense.Axpy((s.g[k]*(s1[i*e.c+k]*mean-s2[i*e.c+k])+2*s.d[k])/cut, vw, ev.w[i*m:(i+1)*m])
			ev.q[i] += s.d[k]
		}
	})
	ev.backprop(e.b, &e.p, n, e.x, e.kx, e.w)
	return ev.grad[:len(ev.grad)-1]
}

func TestFixedPointGolden(t *testing.T) {
	var ref struct {
		Cases []struct {
			C                int
			Eps              float64
			Z, X             [][]float64
			LogEll           []float64 `json:"log_ell"`
			LogAmp           float64   `json:"log_amp"`
			LogNoise         float64   `json:"log_noise"`
			Y                []int
			S1, S2           [][]float64
			V                [][][]float64
			Mean             [][]float64 `json:"m"`
			LogZq            float64     `json:"log_zq"`
			GradFixed, Total struct {
				Z        [][]float64
				LogEll   []float64 `json:"log_ell"`
				LogAmp   float64   `json:"log_amp"`
				LogNoise float64   `json:"log_noise"`
			}
			Gradient struct {
				Z        [][]float64
				LogEll   []float64 `json:"log_ell"`
				LogAmp   float64   `json:"log_amp"`
				LogNoise float64   `json:"log_noise"`
			} `json:"gradient_fixed_cavity"`
		}
	}
	reference(t, "ep_fixed_point.json", &ref)
	if len(ref.Cases) == 0 {
		t.Error("no cases")
	}
	for _, r := range ref.Cases {
		p := model.NewParams(len(r.Z), len(r.LogEll))
		copy(p.Z(), flat(r.Z))
		copy(p.LogEll(), r.LogEll)
		*p.LogAmp(), *p.LogNoise() = r.LogAmp, r.LogNoise
		e := newBatch(t, p, flat(r.X), r.Y, r.C, r.Eps)
		e.converge(t)
		closeTo(t, "s1", e.s1, flat(r.S1), 1e-7)
		closeTo(t, "s2", e.s2, flat(r.S2), 1e-7)
		closeTo(t, "m", e.g.Mean, flat(r.Mean), 1e-7)
		m := p.M
		for k := range r.V {
			v := make([]float64, m*m)
			lower := make([]float64, m*m)
			for i := range m {
				copy(lower[i*m:i*m+i+1], e.g.U[(k*m+i)*m:(k*m+i)*m+i+1])
			}
			dense.Gemm(true, false, m, m, m, 1, lower, m, lower, m, 0, v, m)
			closeTo(t, "V", v, flat(r.V[k]), 1e-7)
		}
		want := append(flat(r.Gradient.Z), r.Gradient.LogEll...)
		want = append(want, r.Gradient.LogAmp, r.Gradient.LogNoise)
		closeTo(t, "gradient", e.gradient(t), want, 1e-6)
		closeTo(t, "log Z_q", []float64{e.logZq(t)}, []float64{r.LogZq}, 1e-9/math.Abs(r.LogZq))
	}
}

// logZq is the approximate log evidence at the fixed point,
// Σ_k log N_k + Σ_i [log Z_i − Σ_k D_ik].
func (e *batch) logZq(t *testing.T) float64 {
	m := e.p.M
	var total float64
	for k := range e.c {
		bt, y := make([]float64, m), make([]float64, m)
		for i := range e.y {
			dense.Axpy(e.s2[i*e.c+k], e.w[i*m:(i+1)*m], bt)
		}
		u := e.g.U[k*m*m : (k+1)*m*m]
		dense.MulTriTrans(1, m, bt, m, u, m, y, m)
		total += 0.5 * dense.Dot(y, y)
		for i := range m {
			total += math.Log(u[i*m+i])
		}
	}
	s1, s2 := append([]float64(nil), e.s1...), append([]float64(nil), e.s2...)
	logZ, _ := e.sweep(t, func(i int, s *site) {
		for k := range e.c {
			c1, c2, a, v := s1[i*e.c+k], s2[i*e.c+k], s.a[k], s.v[k]
			total -= -0.5*math.Log1p(c1*v) + 0.5*(c2*c2*v+2*c2*a-c1*a*a)/(1+c1*v)
		}
	})
	return total + logZ
}

func randomBatch(t *testing.T, n, m, d, c int, eps float64, seed uint64) *batch {
	rng := rand.New(rand.NewPCG(seed, 7))
	p := model.NewParams(m, d)
	for i := range p.Z() {
		p.Z()[i] = rng.NormFloat64()
	}
	for i := range p.LogEll() {
		p.LogEll()[i] = 0.3 * rng.NormFloat64()
	}
	*p.LogAmp(), *p.LogNoise(), *p.LogitEps() = 0.2, -1.5, math.Inf(-1)
	x, y := make([]float64, n*d), make([]int, n)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	for i := range y {
		y[i] = i % c
	}
	return newBatch(t, p, x, y, c, eps)
}

// A converged site is a fixed point: one more sweep changes nothing.
func TestConvergedSiteIsAFixedPoint(t *testing.T) {
	e := randomBatch(t, 12, 5, 3, 4, 0, 3)
	e.converge(t)
	if _, change := e.sweep(t, nil); change > 1e-12 {
		t.Errorf("a sweep after convergence moved a site by %g", change)
	}
}

// With an inducing point at every training input the sparse posterior is the
// full Gaussian process's: the oracle runs the same sites in function space
// with explicit matrices.
func TestInducingAtInputsIsTheFullProcess(t *testing.T) {
	const n, d, c = 10, 2, 3
	e := randomBatch(t, n, n, d, c, 0, 11)
	copy(e.p.Z(), e.x)
	e = newBatch(t, e.p, e.x, e.y, c, 0)
	e.converge(t)

	k := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			var s float64
			for f := range d {
				diff := (e.x[i*d+f] - e.x[j*d+f]) * math.Exp(-e.p.LogEll()[f])
				s += diff * diff
			}
			k.SetSym(i, j, math.Exp(*e.p.LogAmp()-0.5*s))
		}
	}
	noise := math.Exp(*e.p.LogNoise())
	s1, s2 := mat.NewDense(n, c, nil), mat.NewDense(n, c, nil)
	mean, variance := mat.NewDense(n, c, nil), mat.NewDense(n, c, nil)
	for range 300 {
		for cl := range c { // Σ = (K⁻¹ + S)⁻¹ = K − K(K + S⁻¹)⁻¹K, as K·(I + S·K)⁻¹
			var isk, inv, cov mat.Dense
			isk.Apply(func(i, j int, v float64) float64 {
				v *= s1.At(i, cl)
				if i == j {
					v++
				}
				return v
			}, k)
			if err := inv.Inverse(&isk); err != nil {
				t.Fatal(err)
			}
			cov.Mul(k, &inv)
			for i := range n {
				var mu float64
				for j := range n {
					mu += cov.At(i, j) * s2.At(j, cl)
				}
				mean.Set(i, cl, mu)
				variance.Set(i, cl, cov.At(i, i))
			}
		}
		for i, y := range e.y {
			var st site
			st.resize(c)
			for cl := range c {
				v := variance.At(i, cl)
				cut := 1 - s1.At(i, cl)*v
				st.a[cl], st.v[cl] = (mean.At(i, cl)-v*s2.At(i, cl))/cut, v/cut
				st.t[cl] = st.v[cl] + noise
			}
			st.update(y, 0, 1)
			s1.SetRow(i, st.s1)
			s2.SetRow(i, st.s2)
		}
	}
	for i := range n {
		for cl := range c {
			m, v := e.marginal(i, cl)
			if math.Abs(m-mean.At(i, cl)) > 2e-5 || math.Abs(v-variance.At(i, cl)) > 2e-5 {
				t.Errorf("point %d class %d: N(%.7f, %.7f), full process N(%.7f, %.7f)", i, cl, m, v, mean.At(i, cl), variance.At(i, cl))
			}
		}
	}
}

// The tilted moments of a pairwise factor, by adaptive quadrature in the reference.
func TestPairSiteGolden(t *testing.T) {
	var ref struct {
		Rows []struct {
			MeanY float64 `json:"mean_y"`
			VY    float64 `json:"v_y"`
			QY    float64 `json:"q_y"`
			MeanK float64 `json:"mean_k"`
			VK    float64 `json:"v_k"`
			QK    float64 `json:"q_k"`
			LogZ  float64 `json:"log_z"`
			C1Y   float64 `json:"C1_y"`
			C2Y   float64 `json:"C2_y"`
			C1K   float64 `json:"C1_k"`
			C2K   float64 `json:"C2_k"`
		}
	}
	reference(t, "pair_site.json", &ref)
	if len(ref.Rows) == 0 {
		t.Error("no rows")
	}
	for i, r := range ref.Rows {
		var s site
		s.resize(2)
		s.a[0], s.a[1], s.v[0], s.v[1] = r.MeanY, r.MeanK, r.VY, r.VK
		s.t[0], s.t[1] = r.QY+r.VY, r.QK+r.VK
		s.update(0, 0, 1)
		t.Logf("row %d: log Z %g", i, r.LogZ)
		if math.Abs(s.logZ()-r.LogZ) > max(1e-8*math.Abs(r.LogZ), 1e-15) {
			t.Errorf("log Z = %v, want %v", s.logZ(), r.LogZ)
		}
		if 1-s.h[0]*s.v[0] < minTilted || 1-s.h[1]*s.v[1] < minTilted {
			continue // clipped here, not in the reference
		}
		closeTo(t, "C1, y", s.s1[:1], []float64{r.C1Y}, 1e-8)
		closeTo(t, "C2, y", s.s2[:1], []float64{r.C2Y}, 1e-8)
		closeTo(t, "C1, k", s.s1[1:], []float64{r.C1K}, 1e-8)
		closeTo(t, "C2, k", s.s2[1:], []float64{r.C2K}, 1e-8)
	}
}

// With two classes the model is binary probit on f_1 − f_2: the predictive
// probability has the closed form, and the grid agrees with it.
func TestTwoClassesAreBinaryProbit(t *testing.T) {
	var g model.Grid
	p := make([]float64, 2)
	p3 := make([]float64, 3)
	for _, r := range [][4]float64{{0, 0, 1, 1}, {1, -0.5, 0.3, 2}, {-3, 2, 1, 0.1}, {4, -4, 0.5, 0.5}} {
		g.Probs(p, r[:2], r[2:], model.Fine)
		want := 0.5 * math.Erfc(-(r[0]-r[1])/math.Sqrt(2*(r[2]+r[3])))
		if math.Abs(p[0]-want) > 1e-14 || math.Abs(p[0]+p[1]-1) > 1e-15 {
			t.Errorf("N(%g,%g) against N(%g,%g): %v, want %v", r[0], r[2], r[1], r[3], p, want)
		}
		// a third class far below leaves the other two alone, and goes through the grid
		g.Probs(p3, []float64{r[0], r[1], -60}, []float64{r[2], r[3], 1}, model.Fine)
		if math.Abs(p3[0]-want) > 6e-5 {
			t.Errorf("grid: %v, want %v", p3, want)
		}
	}
}

// Every gradient against central differences: the new samples' evidence with
// the whitened cavities (here the posterior before the sweep) held fixed.
func TestGradientByDifferences(t *testing.T) {
	for _, kernel := range []Kernel{Shared, PerClass} {
		t.Run(string(kernel), func(t *testing.T) { gradientByDifferences(t, kernel) })
	}
}

// A step with fewer new samples than the gradient is to look at takes those of
// the window, too, while the model warms up, and a restored learner takes the same.
func TestGradientLooksAtTheWindow(t *testing.T) {
	cfg := testConfig(4, "a", "b", "c")
	cfg.Inducing, cfg.Window, cfg.Batch.MaxSize = 6, 30, 1
	cfg.Horizons = []Horizon{Horizon(math.Inf(1))}
	for _, c := range []struct{ gradient, warmup, want int }{{0, 1000, replay}, {1, 1000, replay}, {16, 1000, 16}, {1000, 1000, 30}, {16, 50, replay}} {
		cfg.Gradient, cfg.Warmup = c.gradient, c.warmup
		l := newTestLearner(t, cfg)
		rng := rand.New(rand.NewPCG(5, 5))
		feed(l, rng, 60)
		before := slices.Clone(l.params.Theta)
		feed(l, rng, replay)
		if n := len(l.work.ev[0].q); n != c.want {
			t.Errorf("gradient %d looks at %d samples, want %d", c.gradient, n, c.want)
		}
		if slices.Equal(before, l.params.Theta) {
			t.Error("the step moved nothing")
		}
		state, _ := l.AppendBinary(nil)
		again, err := Restore(cfg, state)
		if err != nil {
			t.Fatal(err)
		}
		rest := rand.New(rand.NewPCG(9, 9))
		feed(l, rand.New(rand.NewPCG(9, 9)), 3)
		if feed(again, rest, 3); again.Digest() != l.Digest() {
			t.Errorf("gradient %d: a restored learner goes on in another way", c.gradient)
		}
	}
}

func gradientByDifferences(t *testing.T, kernel Kernel) {
	rng := rand.New(rand.NewPCG(5, 5))
	cfg := testConfig(4, "a", "b", "c")
	cfg.Inducing, cfg.Window, cfg.Sweeps, cfg.Batch.MaxSize = 6, 10, 1, 7
	cfg.Horizons = []Horizon{Horizon(math.Inf(1))}
	cfg.Kernel = kernel
	l := newTestLearner(t, cfg)
	feed(l, rng, 400)
	n, d, m, c := 7, l.d, l.m, len(l.view.Latent)
	for i := range n * d {
		l.work.batchX[i] = rng.NormFloat64()
	}
	for i := range n {
		l.work.labels[i], l.work.weights[i] = i%c, 1
	}
	g := l.Posterior().Bank[0]
	l.ready()
	x := append([]float64(nil), l.work.batchX[:n*d]...)
	theta := append([]float64(nil), l.params.Theta...)
	if err := l.sweeps(n); err != nil {
		t.Fatal(err)
	}
	l.gradient(n)

	at := fixedCavities{m: m, d: d, c: c, n: n, x: x, y: l.work.labels[:n], g: g}
	want := fd.Gradient(nil, func(theta []float64) float64 { return at.evidence(t, theta) }, theta, &fd.Settings{Formula: fd.Central})
	size := len(theta) / len(l.bases)
	for b := range l.bases {
		closeTo(t, "gradient", l.work.grad[b*size:(b+1)*size-1], want[b*size:(b+1)*size-1], 2e-7)
	}

	at.evidence(t, theta)
	noise := func(logit []float64) (f float64) {
		eps := 1 / (1 + math.Exp(-logit[0]))
		for _, p := range at.probs {
			f += math.Log((1-eps)*p+eps/float64(c)) / float64(n)
		}
		return f
	}
	want = fd.Gradient(nil, noise, theta[size-1:size], &fd.Settings{Formula: fd.Central})
	closeTo(t, "∂/∂logit ε", l.work.grad[size-1:size], want, 1e-7)
}

// fixedCavities is the objective of the gradient, put together anew for any
// parameters: Σ log Z_i with the whitened cavities held fixed.
type fixedCavities struct {
	m, d, c, n int
	x          []float64
	y          []int
	g          model.Gaussian
	probs      []float64 // cavity probabilities of the labels
}

func (f *fixedCavities) evidence(t *testing.T, theta []float64) (total float64) {
	t.Helper()
	m, n := f.m, f.n
	p := model.Params{M: m, D: f.d, Theta: theta}
	groups := p.Groups()
	w, q := make([][]float64, groups), make([][]float64, groups)
	for g := range groups {
		basis, group := model.NewBasis(m, f.d), p.Group(g)
		if _, err := basis.Set(&group); err != nil {
			t.Fatal(err)
		}
		w[g], q[g] = make([]float64, n*m), make([]float64, n)
		basis.FeaturesTo(make([]float64, n*m), w[g], q[g], n, f.x, make([]float64, n*f.d), make([]float64, n))
	}
	var s site
	s.resize(f.c)
	u := make([]float64, m)
	f.probs = f.probs[:0]
	for i := range n {
		for k := range f.c {
			g := min(k, groups-1)
			wi := w[g][i*m : (i+1)*m]
			dense.MulTriTrans(1, m, wi, m, f.g.U[k*m*m:], m, u, m)
			s.a[k], s.v[k] = dense.Dot(wi, f.g.Mean[k*m:(k+1)*m]), dense.Dot(u, u)
			s.t[k] = q[g][i] + s.v[k]
		}
		f.probs = append(f.probs, s.probability(f.y[i]))
		s.update(f.y[i], 0, 1)
		total += s.logZ()
	}
	return total
}
