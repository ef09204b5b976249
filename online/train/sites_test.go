package train

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/lab/ep"
	"edge/lab/labtest"
	"edge/lab/rep"
	"edge/model"
	"edge/online"
	"edge/test/golden"
)

// twelve returns a trainer of the twelve points with those parameters and features that
// are not scaled.
func twelve(t *testing.T, d *lab.Data, p model.Params, sites Sites, eps float64) *Trainer {
	t.Helper()
	kernel := online.Shared
	if p.Groups() > 1 {
		kernel = online.PerClass
	}
	how := fullBatch(1)
	how.Rate, how.Sites, how.Settle = 0, sites, 0
	tr := newTestTrainer(t, trainConfig(d.D, p.M, kernel), how, d.C, &cloud{d: d.D, x: d.X, y: d.Y})
	tr.scale.Clip = math.Inf(1)
	for j := range tr.scale.Mu {
		tr.scale.Mu[j], tr.scale.Sd[j] = 0, 1
	}
	copy(tr.params.Theta, p.Theta)
	for g := range tr.params.Groups() {
		group := tr.params.Group(g)
		*group.LogitEps() = model.Logit(eps)
	}
	if err := tr.setBases(); err != nil {
		t.Fatal(err)
	}
	tr.shuffle()
	tr.pass = 1 // labels may be wrong from the start, and pairs have cavities of their own
	return tr
}

// sweep updates the sites that many times.
func sweep(t *testing.T, tr *Trainer, times int, damping float64) {
	t.Helper()
	tr.damping = damping
	for range times {
		if err := tr.update(tr.order, false); err != nil {
			t.Fatal(err)
		}
	}
}

// compareTo compares the gradient without the label noise, and the posterior.
func compareTo(t *testing.T, tr *Trainer, want []float64, s *lab.Sparse, rel float64) {
	t.Helper()
	tr.sum = 0
	if err := tr.update(tr.order, false); err != nil {
		t.Fatal(err)
	}
	tr.gradient(tr.n)
	size := len(want) / len(tr.bases)
	for b := range tr.bases {
		golden.Close(t, "gradient", tr.work.grad.theta[b*size:(b+1)*size-1], want[b*size:(b+1)*size-1], rel)
	}
	golden.Close(t, "posterior means", tr.work.gauss.Mean, s.M.RawMatrix().Data, rel)
}

// others returns the entries of a table that are not those of the label.
func others(y []int, table []float64) (out []float64) {
	c := len(table) / len(y)
	for i, v := range table {
		if i%c != y[i/c] {
			out = append(out, v)
		}
	}
	return out
}

// Sweeps with a site for each pair reach the fixed point of the laboratory's expectation
// propagation, and its gradient there.
func TestPairSites(t *testing.T) {
	d, shared := labtest.Twelve()
	for name, p := range map[string]model.Params{"shared": shared, "per class": labtest.PerClass(shared, d.C)} {
		t.Run(name, func(t *testing.T) {
			e, err := ep.New(d, p, model.Jitter)
			e = labtest.Converged(t, e, err, 1000, 0.7, 1e-14)
			tr := twelve(t, d, p, Pairs, 0)
			sweep(t, tr, 300, 0.7)
			for _, s := range []struct {
				what string
				got  []float64
				want *mat.Dense
			}{{"s1", tr.s1, e.Sites.S1K}, {"s2", tr.s2, e.Sites.S2K}, {"p1", tr.p1, e.Sites.S1Y}, {"p2", tr.p2, e.Sites.S2Y}} {
				golden.Close(t, s.what, others(d.Y, s.got), others(d.Y, s.want.RawMatrix().Data), 1e-9)
			}
			compareTo(t, tr, e.Gradient(), e.Sparse, 1e-8)
			var sum float64
			e.LogZ() // computes the factors
			for _, v := range others(d.Y, e.Factors.LogZ.RawMatrix().Data) {
				sum += v
			}
			golden.Close(t, "log evidence", []float64{tr.sum}, []float64{sum}, 1e-10)
		})
	}
}

// Sweeps with the joint probability reach the fixed point of the laboratory's robust
// expectation propagation, its gradient and its log evidence, with and without label noise.
func TestRepSites(t *testing.T) {
	d, shared := labtest.Twelve()
	for name, p := range map[string]model.Params{"shared": shared, "per class": labtest.PerClass(shared, d.C)} {
		for _, eps := range []float64{0, 0.05} {
			t.Run(name, func(t *testing.T) {
				r, err := rep.New(d, p, model.Jitter, lab.NewJoint(winNodes), eps)
				r = labtest.Converged(t, r, err, 3000, 0.7, 1e-14)
				tr := twelve(t, d, p, Rep, eps)
				sweep(t, tr, 300, 0.7)
				golden.Close(t, "s1", tr.s1, r.S1.RawMatrix().Data, 1e-9)
				golden.Close(t, "s2", tr.s2, r.S2.RawMatrix().Data, 1e-9)
				compareTo(t, tr, r.Gradient(), r.Sparse, 1e-8)
				var sum float64
				for _, v := range r.Factors.LogZ {
					sum += v
				}
				golden.Close(t, "log evidence", []float64{tr.sum}, []float64{sum}, 1e-10)
			})
		}
	}
}

// The label's site is the sum of its pairs in minibatches as well, in which shares of the
// sites have faded.
func TestPairSums(t *testing.T) {
	how := Default()
	how.Batch, how.Passes, how.Sites, how.Damping = 8, 3, Pairs, 0.8
	set := newCloud(30, 3, 4, 5)
	tr := newTestTrainer(t, trainConfig(3, 5, online.PerClass), how, 4, set)
	run(t, tr, 1000)
	for i, y := range set.y {
		var p [2]float64
		for k := range 4 {
			p[0], p[1] = p[0]+tr.p1[i*4+k], p[1]+tr.p2[i*4+k]
		}
		golden.Close(t, "site of the label", []float64{tr.s1[i*4+y], tr.s2[i*4+y]}, p[:], 1e-11)
	}
	if slices.Max(tr.p1) == 0 {
		t.Error("no site was learnt")
	}
}

func TestSitesNamed(t *testing.T) {
	for name, want := range map[string]Sites{"explicit": Merged, "merged": Merged, "tied": Tied, "pairs": Pairs, "rep": Rep} {
		if got := SitesNamed(name); got != want {
			t.Errorf("SitesNamed(%q) = %q, want %q", name, got, want)
		}
	}
}
