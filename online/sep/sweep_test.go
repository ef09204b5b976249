package sep

import (
	"math/rand/v2"
	"slices"
	"testing"

	"edge/test/golden"
)

// The last sweep has the marginals and the gradient that a factorisation with the sites
// of the first sweep gives.
func TestAddedSitesAreRefresh(t *testing.T) {
	for _, perClass := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(6, 6))
		cfg := testConfig(3)
		cfg.PerClass = perClass
		b := newTestBank(t, cfg, rng)
		feed(t, b, rng, 20)
		b.live = false // one damping for new and old sites
		n := cfg.Batch
		for i := range n {
			x, k := blob(rng, 3)
			b.scale.To(b.work.batch.x[i*3:(i+1)*3], x)
			b.work.batch.latents[i], b.work.batch.weights[i] = k, float64(i) // of weight 0, too
		}
		total, m := len(b.winY)+n, cfg.Inducing
		for g := range b.bases {
			b.work.grad.ev[g].Resize(n, m, 3)
		}
		old := len(b.winY)
		b.winX, b.winY, b.winW = append(b.winX, b.work.batch.x[:n*3]...), append(b.winY, b.work.batch.latents[:n]...), append(b.winW, b.work.batch.weights[:n]...)
		for g := range b.bases {
			b.featuresOf(g, old, n)
		}
		sweep := func(s, n int) {
			if err := b.sweep(sweeping{s: s, n: n, points: b.cfg.Batch}); err != nil {
				t.Fatal(err)
			}
		}
		sweep(0, n)
		sites := slices.Clone(b.sites)
		for h := range sites {
			for _, s := range sites[h].window() {
				*s = slices.Clone(*s)
			}
		}
		evidence := func(n int) (all [][]float64) {
			for g := range b.bases {
				b.work.grad.ev[g].Resize(b.cfg.Batch, m, 3)
			}
			sweep(1, n)
			for h := range b.sites {
				for _, s := range b.sites[h].window() {
					all = append(all, slices.Clone(*s))
				}
			}
			for g := range b.bases {
				all = append(all, slices.Clone(b.work.grad.ev[g].W), slices.Clone(b.work.grad.ev[g].Q))
			}
			return append(all, slices.Clone(b.work.mean), slices.Clone(b.work.variance))
		}
		got := evidence(n)
		b.sites = sites
		if err := b.refresh(0, len(b.sites), 0, total); err != nil {
			t.Fatal(err)
		}
		want := evidence(0)
		for i := range want {
			golden.Close(t, "sites and gradient", got[i], want[i], 1e-11)
		}
	}
}

// A step in the same basis leaves the features that a restored bank computes, to the
// last bit.
func TestFeaturesInTheSameBasis(t *testing.T) {
	for i := range 4 {
		perClass, rate := i&1 > 0, 0.02*float64(i/2)
		rng := rand.New(rand.NewPCG(9, 9))
		cfg := testConfig(3)
		cfg.PerClass, cfg.LearningRate, cfg.Batch, cfg.Inducing, cfg.Window = perClass, rate, 20, 30, 40
		b := newTestBank(t, cfg, rng)
		for i, n := range []int{2, 2, 1, 1, 1, 1, 4, 5, 2, 3, 6, 1, 9, 16, 7, 1, 1, 1, 1, 20, 5, 3, 1, 13} {
			if err := learn(b, rng, n); err != nil {
				t.Fatal(err)
			}
			total, f := len(b.winY), &b.work.features
			for g := range b.bases {
				kx, w, q := slices.Clone(f.kx[g]), slices.Clone(f.w[g]), slices.Clone(f.q[g])
				b.updateFeatures()
				size := total * cfg.Inducing
				if !slices.Equal(kx[:size], f.kx[g][:size]) || !slices.Equal(w[:size], f.w[g][:size]) || !slices.Equal(q[:total], f.q[g][:total]) {
					t.Errorf("per class %v, rate %g: after minibatch %d, of %d samples, the features are others than those of the state", perClass, rate, i, n)
				}
			}
		}
	}
}
