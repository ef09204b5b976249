package fullep

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/lab/gfitc"
	"edge/lab/labtest"
	"edge/test/golden"
)

func converged(t *testing.T, d *lab.Data) *Correlated {
	t.Helper()
	_, p := labtest.Twelve()
	c, err := NewCorrelated(d, p)
	return labtest.Converged(t, c, err, 3000, 0.5, 1e-14)
}

func TestGolden(t *testing.T) {
	var ref struct {
		labtest.Problem
		Parameters labtest.Parameters
		Tau, Nu    []float64
		LogZq      float64 `json:"log_zq"`
	}
	golden.Reference(t, "comparators/full_ep.json", &ref)
	c, err := NewCorrelated(ref.Data(), ref.Parameters.Params())
	if err == nil {
		err = c.Run(3000, 0.5, 1e-14)
	}
	if err != nil {
		t.Fatal(err)
	}
	golden.Close(t, "tau", c.Tau, ref.Tau, 1e-8)
	golden.Close(t, "nu", c.Nu, ref.Nu, 1e-8)
	labtest.Near(t, "log evidence", c.LogZ(), ref.LogZq, 1e-8)
}

// The figure of the twelve points, whose exact log evidence is −12.0635.
func TestTwelvePoints(t *testing.T) {
	d, _ := labtest.Twelve()
	labtest.Near(t, "log evidence", converged(t, d).LogZ(), -12.131, 5e-4)
}

// The latents of all classes at the rows must give back the posterior of the differences,
// which is computed without them.
func TestLatentAgreesWithDifferences(t *testing.T) {
	d, p := labtest.Twelve()
	c := converged(t, d)
	mean, cov, err := c.Latent(d.X)
	if err != nil {
		t.Fatal(err)
	}
	// The differences contain the noise that made the labels; new latents have noise of their
	// own. Their means agree after τ and ν have been taken out: E[d] = mean difference of f
	// plus the part of the site that fell to the noise, 2 v0 (ν − τ μ).
	noise := math.Exp(*p.LogNoise())
	for a, r := range labtest.Pairs(d) {
		got := mean[r.I].AtVec(d.Y[r.I]) - mean[r.I].AtVec(r.K)
		want := c.mean[a]
		for b, s := range labtest.Pairs(d) {
			if s.I == r.I {
				share := noise
				if s.K == r.K {
					share = 2 * noise
				}
				want -= share * (c.Nu[b] - c.Tau[b]*c.mean[b])
			}
		}
		labtest.Near(t, "mean of a difference", got, want, 1e-9)
		if v := cov[r.I]; v.At(0, 0) <= 0 || v.At(0, 0) > math.Exp(*p.LogAmp())+noise+1e-9 {
			t.Errorf("variance %g of a latent", v.At(0, 0))
		}
	}
}

// Correlation of the classes changes predictions little: the joint and the factorised sites
// agree within 0.05 on the twelve points.
func TestPredictionsAreNearThoseOfFactorisedSites(t *testing.T) {
	d, p := labtest.Twelve()
	x := []float64{0.3, -0.4, -1.1, 0.8, 2.0, 1.5}
	got, err := converged(t, d).Predict(x)
	if err != nil {
		t.Fatal(err)
	}
	g, err := gfitc.New(d, lab.AtRows(d, p), 1e-9)
	if err == nil {
		err = g.Run(3000, 0.7, 1e-13)
	}
	if err != nil {
		t.Fatal(err)
	}
	want, err := g.Predict(x)
	if err != nil {
		t.Fatal(err)
	}
	got.Sub(got, want)
	if most := max(mat.Max(got), -mat.Min(got)); most > 0.05 {
		t.Errorf("probabilities differ by %g", most)
	}
}

func TestTrainLearnsTheKernelAlone(t *testing.T) {
	d, p := labtest.Twelve()
	c, err := Train(t.Context(), &lab.Problem{Data: d, Start: p, Updates: 30})
	if err != nil {
		t.Fatal(err)
	}
	g := c.(*gfitc.GFITC)
	golden.Close(t, "inducing points", g.Params.Z(), d.X, 0)
	first, err := gfitc.New(d, lab.AtRows(d, p), lab.Jitter)
	if err == nil {
		err = first.Run(3000, 0.7, 1e-10)
	}
	if err != nil {
		t.Fatal(err)
	}
	if after, before := g.LogZ(), first.LogZ(); !(after > before) {
		t.Errorf("log evidence %g after training, %g before", after, before)
	}
}
