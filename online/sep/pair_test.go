package sep

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"edge/model"
	"edge/test/golden"
)

// With two classes there is one pair, and its sites are those of the merged code.
func TestOnePairIsTheMergedSite(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 3))
	var pair PairSite
	var merged Site
	pair.Resize(2)
	merged.Resize(2)
	for i := range 1000 {
		y, eps, py := i%2, 0.1*float64(i%3), rng.Float64()
		for k := range 2 {
			a, v, q := 4*rng.NormFloat64(), math.Exp(rng.NormFloat64()), math.Exp(rng.NormFloat64())
			pair.A[k], pair.V[k], pair.T[k] = a, v, v+q
		}
		copy(merged.A, pair.A)
		copy(merged.V, pair.V)
		copy(merged.T, pair.T)
		for k := range 2 {
			pair.LA[k], pair.LV[k], pair.LT[k] = pair.A[y], pair.V[y], pair.T[y]
		}
		pair.Update(y, i%4 < 2, eps, py)
		merged.Update(y, eps, py)
		golden.Close(t, "s1", pair.S1, merged.S1, 1e-11)
		golden.Close(t, "s2", pair.S2, merged.S2, 1e-11)
		if math.Abs(pair.R-merged.R) > 1e-11 || math.Abs(pair.LogZ()-merged.LogZ()) > 1e-11*math.Abs(merged.LogZ()) {
			t.Fatalf("r %v and log Z %v, want %v and %v", pair.R, pair.LogZ(), merged.R, merged.LogZ())
		}
	}
}

// The first site of an observation is that of all its pairs at once.
func TestFirstPairsAreTheMergedSite(t *testing.T) {
	const c = 5
	rng := rand.New(rand.NewPCG(4, 3))
	var pair PairSite
	var merged Site
	pair.Resize(c)
	merged.Resize(c)
	for i := range 1000 {
		y := i % c
		for k := range c {
			a, v, q := 2*rng.NormFloat64(), math.Exp(rng.NormFloat64()), math.Exp(rng.NormFloat64())
			pair.A[k], pair.V[k], pair.T[k] = a, v, v+q
		}
		copy(merged.A, pair.A)
		copy(merged.V, pair.V)
		copy(merged.T, pair.T)
		for k := range c {
			pair.LA[k], pair.LV[k], pair.LT[k] = pair.A[y], pair.V[y], pair.T[y]
		}
		pair.Update(y, true, 0, 1)
		merged.Update(y, 0, 1)
		golden.Close(t, "s1", pair.S1, merged.S1, 1e-11)
		golden.Close(t, "s2", pair.S2, merged.S2, 1e-11)
		var p1, p2 float64
		for k := range c {
			p1, p2 = p1+pair.P1[k], p2+pair.P2[k]
		}
		golden.Close(t, "sums", []float64{p1, p2}, []float64{pair.S1[y], pair.S2[y]}, 1e-11)
	}
}

type pairReference struct {
	X     [][]float64
	Y     []int
	C     int
	Cases []struct {
		Kernel     string
		Parameters gradientReference
		TotalS1    [][]float64 `json:"total_s1"`
		TotalS2    [][]float64 `json:"total_s2"`
		Gradient   gradientReference
		V          [][][]float64
		Mean       [][]float64 `json:"m"`
		Inner      struct {
			Sweeps   int
			Damping  float64
			Sites    pairSites
			Gradient gradientReference `json:"gradient_approximate"`
		}
		Sites pairSites
	}
}

type pairSites struct {
	P1 [][]float64 `json:"s1_y"`
	P2 [][]float64 `json:"s2_y"`
	S1 [][]float64 `json:"s1_k"`
	S2 [][]float64 `json:"s2_k"`
}

type gradientReference struct {
	Z        [][][]float64
	LogEll   [][]float64 `json:"log_ell"`
	LogAmp   []float64   `json:"log_amp"`
	LogNoise []float64   `json:"log_noise"`
}

// group appends parameters or their gradient, those of one kernel.
func (r *gradientReference) group(g int) []float64 {
	return append(append(golden.Flat(r.Z[g]), r.LogEll[g]...), r.LogAmp[g], r.LogNoise[g])
}

// loadPairs returns a bank whose window holds the observations of the reference,
// without sites.
func loadPairs(t *testing.T, ref *pairReference, at int) *Bank {
	t.Helper()
	r := &ref.Cases[at]
	n, groups := len(ref.Y), len(r.Parameters.Z)
	b := New(Config{
		Features: len(ref.X[0]), Inducing: len(r.Parameters.Z[0]), Horizons: []float64{math.Inf(1)}, Window: n, Batch: n, Gradient: n, Sweeps: 1,
		Damping: r.Inner.Damping, LearningRate: 0.02, Clip: model.DefaultClip, PerClass: groups > 1,
	}, &model.Posterior{Weights: []float64{1}})
	b.reach = math.Inf(1)
	b.allocate()
	for k := range ref.C {
		b.Grow(k)
	}
	for g := range groups {
		p := b.params.Group(g)
		copy(p.Theta, r.Parameters.group(g))
		*p.LogitEps() = model.Logit(0)
	}
	if err := b.setBases(); err != nil {
		t.Fatal(err)
	}
	b.winX, b.winY, b.winW = append(b.winX, golden.Flat(ref.X)...), append(b.winY, ref.Y...), append(b.winW, slices.Repeat([]float64{1}, n)...)
	if err := b.Refresh(); err != nil {
		t.Fatal(err)
	}
	return b
}

// sweepWindow sweeps over the window, and returns the gradient.
func sweepWindow(t *testing.T, b *Bank) []float64 {
	t.Helper()
	n := len(b.winY)
	for g := range b.work.grad.ev {
		b.work.grad.ev[g].Resize(n, b.cfg.Inducing, b.cfg.Features)
	}
	if err := b.sweep(sweeping{points: n}); err != nil {
		t.Fatal(err)
	}
	b.gradient(n)
	if err := b.Refresh(); err != nil {
		t.Fatal(err)
	}
	return b.work.grad.theta
}

// comparePairs compares the sites of the first horizon.
func comparePairs(t *testing.T, b *Bank, y []int, want *pairSites, rel float64) {
	t.Helper()
	for _, s := range []struct {
		what string
		got  []float64
		want [][]float64
	}{
		{"s1", b.sites[0].s1, want.S1}, {"s2", b.sites[0].s2, want.S2}, {"p1", b.sites[0].p1, want.P1}, {"p2", b.sites[0].p2, want.P2},
	} {
		var got, all []float64
		for i := range y {
			for k, v := range s.want[i] {
				if k != y[i] {
					got, all = append(got, s.got[k*b.capacity+i]), append(all, v)
				}
			}
		}
		golden.Close(t, s.what, got, all, rel)
	}
}

// Sweeps reach the fixed point of expectation propagation with one site for each
// pair, and follow its gradient on the way.
func TestPairsReachExpectationPropagation(t *testing.T) {
	var ref pairReference
	golden.Reference(t, filepath.Join("comparators", "ep_pair.json"), &ref)
	for at, r := range ref.Cases {
		t.Run(r.Kernel, func(t *testing.T) {
			b := loadPairs(t, &ref, at)
			for range r.Inner.Sweeps {
				sweepWindow(t, b)
			}
			comparePairs(t, b, ref.Y, &r.Inner.Sites, 1e-10)
			compare := func(got []float64, want *gradientReference) {
				size := len(got) / len(b.bases)
				for g := range b.bases {
					golden.Close(t, "gradient", got[g*size:(g+1)*size-1], want.group(g), 1e-7)
				}
			}
			compare(sweepWindow(t, b), &r.Inner.Gradient)
			b.cfg.Damping = 0.8
			for range 300 {
				sweepWindow(t, b)
			}
			comparePairs(t, b, ref.Y, &r.Sites, 1e-8)
			comparePosterior(t, "fixed point", b, r.V, r.Mean)
			compare(sweepWindow(t, b), &r.Gradient)
		})
	}
	if len(ref.Cases) == 0 {
		t.Error("no cases")
	}
}
