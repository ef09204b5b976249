package sep

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/diff/fd"

	"edge/model"
	"edge/model/dense"
	"edge/test/cavities"
	"edge/test/golden"
)

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
	golden.Reference(t, "pair_site.json", &ref)
	if len(ref.Rows) == 0 {
		t.Error("no rows")
	}
	for i, r := range ref.Rows {
		var s Site
		s.Resize(2)
		s.A[0], s.A[1], s.V[0], s.V[1] = r.MeanY, r.MeanK, r.VY, r.VK
		s.T[0], s.T[1] = r.QY+r.VY, r.QK+r.VK
		s.Update(0, 0, 1)
		t.Logf("row %d: log Z %g", i, r.LogZ)
		if math.Abs(s.LogZ()-r.LogZ) > max(1e-8*math.Abs(r.LogZ), 1e-15) {
			t.Errorf("log Z = %v, want %v", s.LogZ(), r.LogZ)
		}
		if 1-s.H[0]*s.V[0] < minTilted || 1-s.H[1]*s.V[1] < minTilted {
			continue // clipped here, not in the reference
		}
		golden.Close(t, "C1, y", s.S1[:1], []float64{r.C1Y}, 1e-8)
		golden.Close(t, "C2, y", s.S2[:1], []float64{r.C2Y}, 1e-8)
		golden.Close(t, "C1, k", s.S1[1:], []float64{r.C1K}, 1e-8)
		golden.Close(t, "C2, k", s.S2[1:], []float64{r.C2K}, 1e-8)
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
	t.Run("shared kernel", func(t *testing.T) { gradientByDifferences(t, false) })
	t.Run("kernel per class", func(t *testing.T) { gradientByDifferences(t, true) })
}

func gradientByDifferences(t *testing.T, perClass bool) {
	rng := rand.New(rand.NewPCG(5, 5))
	cfg := testConfig(4)
	cfg.Inducing, cfg.Window, cfg.Sweeps, cfg.Batch = 6, 10, 1, 7
	cfg.Horizons = []float64{math.Inf(1)}
	cfg.PerClass = perClass
	b := newTestBank(t, cfg, rng)
	feed(t, b, rng, 60)
	n, d, m, c := 7, cfg.Features, cfg.Inducing, len(b.view.Latent)
	for i := range n * d {
		b.work.batch.x[i] = rng.NormFloat64()
	}
	for i := range n {
		b.work.batch.latents[i], b.work.batch.weights[i] = i%c, 1
	}
	g := b.view.Snapshot().Bank[0]
	b.Share()
	b.ready()
	x := append([]float64(nil), b.work.batch.x[:n*d]...)
	theta := append([]float64(nil), b.params.Theta...)
	if err := b.sweeps(n, n); err != nil {
		t.Fatal(err)
	}
	b.gradient(n)

	at := cavities.Evidence{M: m, D: d, X: x, Y: b.work.batch.latents[:n], Cavity: g, Site: siteEvidence}
	want := fd.Gradient(nil, func(theta []float64) float64 { return at.At(t, theta) }, theta, &fd.Settings{Formula: fd.Central})
	size := len(theta) / len(b.bases)
	for g := range b.bases {
		golden.Close(t, "gradient", b.work.grad.theta[g*size:(g+1)*size-1], want[g*size:(g+1)*size-1], 2e-7)
	}

	at.At(t, theta)
	noise := func(logit []float64) (f float64) {
		eps := 1 / (1 + math.Exp(-logit[0]))
		for _, p := range at.Probs {
			f += math.Log((1-eps)*p+eps/float64(c)) / float64(n)
		}
		return f
	}
	want = fd.Gradient(nil, noise, theta[size-1:size], &fd.Settings{Formula: fd.Central})
	golden.Close(t, "∂/∂logit ε", b.work.grad.theta[size-1:size], want, 1e-7)
}

// siteEvidence is that of a site for cavities.Evidence.
func siteEvidence(mean, variance, noisy []float64, y int) (prob, logZ float64) {
	var s Site
	s.Resize(len(mean))
	copy(s.A, mean)
	copy(s.V, variance)
	copy(s.T, noisy)
	prob = s.Probability(y)
	s.Update(y, 0, 1)
	return prob, s.LogZ()
}

// The factor of I + A gives the projection that two products give.
func TestProjectionByFactor(t *testing.T) {
	const m = direct + 1
	rng := rand.New(rand.NewPCG(6, 6))
	p := NewProjection(m, 1, 1, nil)
	root, a, b := make([]float64, m*m), make([]float64, m*m), make([]float64, m)
	for i := range p.t {
		p.t[i], root[i] = rng.NormFloat64()/math.Sqrt(m), rng.NormFloat64()
	}
	for i := range b {
		b[i] = rng.NormFloat64()
	}
	transpose(p.tt, p.t, m)
	dense.SymmetricProduct(false, false, m, m, p.tt, m, p.t, m, p.gram, m)
	dense.SymmetricProduct(false, true, m, m, root, m, root, m, a, m)
	got, shift, want := slices.Clone(a), slices.Clone(b), slices.Clone(a)
	p.Site(0, got, shift)
	p.gram = nil
	p.Site(0, want, b)
	for i := range m {
		golden.Close(t, "A", got[i*m:i*m+i+1], want[i*m:i*m+i+1], 1e-10)
	}
	golden.Close(t, "b", shift, b, 0)
	if p = NewProjection(direct, 1, 1, nil); p.gram != nil {
		t.Errorf("M = %d has a factor", direct)
	}
}
