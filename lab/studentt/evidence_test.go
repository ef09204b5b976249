package studentt

import (
	"math"
	"testing"

	"edge/lab"
	"edge/lab/labtest"
	"edge/test/golden"
)

// Optimised over q alone, the bounds are those of the reference, in the order of their
// families, and below the exact evidence.
func TestBoundsAreBelowTheEvidence(t *testing.T) {
	var file struct {
		X        [][]float64
		Y        []int
		LogEll   float64   `json:"log_ell"`
		LogAmp   float64   `json:"log_amp"`
		Evidence []float64 `json:"log_evidence"` // ν = 3, 10, infinite
		Bound    struct {
			GP         float64 `json:"gp_nu_infinite"`
			Tied       float64 `json:"tied_fixed"`
			Free       float64 `json:"tied_free"`
			NonCentred float64 `json:"non_centred_25_nodes"`
		} `json:"optimised_bound_nu3"`
	}
	golden.Reference(t, "student-t/evidence.json", &file)
	d := &lab.Data{D: 2, C: 2, X: golden.Flat(file.X), Y: file.Y}
	p := isotropic(file.X, file.LogEll, file.LogAmp, 0)
	best := func(b *Bound, err error) float64 {
		if err != nil {
			t.Fatal(err)
		}
		b.Held = Held{Kernel: true, Points: true}
		if err := b.Fit(t.Context(), 800); err != nil {
			t.Fatal(err)
		}
		return b.evaluate().value
	}
	const nodes = 25
	for i, nu := range []float64{3, 10} {
		tied, free := best(NewTied(d, p, Logistic, nu, false)), best(NewTied(d, p, Logistic, nu, true))
		nonCentred := best(NewNonCentred(d, p, Logistic, NewScale(nu, nodes)))
		g, err := NewGrid(d, p, Logistic, NewScale(nu, nodes))
		if err == nil {
			err = g.Run(50, 1e-13)
		}
		if err != nil {
			t.Fatal(err)
		}
		grid := g.LogZ()
		t.Logf("ν = %g: tied %.4f, free %.4f, non-centred %.4f, grid %.4f, exact %.4f", nu, tied, free, nonCentred, grid, file.Evidence[i])
		if !(tied < free && free < nonCentred && nonCentred < grid && grid < file.Evidence[i]) {
			t.Errorf("ν = %g: tied %g, free %g, non-centred %g, grid %g, exact %g, want rising values", nu, tied, free, nonCentred, grid, file.Evidence[i])
		}
		if nu == 3 {
			labtest.Near(t, "tied", tied, file.Bound.Tied, 1e-5)
			labtest.Near(t, "tied, free", free, file.Bound.Free, 1e-5)
			labtest.Near(t, "non-centred", nonCentred, file.Bound.NonCentred, 1e-5)
		}
	}
	gp := best(NewGaussian(d, p, Logistic))
	labtest.Near(t, "Gaussian", gp, file.Bound.GP, 1e-5)
	if !(gp < file.Evidence[2]) {
		t.Errorf("Gaussian %g, exact %g", gp, file.Evidence[2])
	}
}

// For ν → ∞ every sound bound is the variational Gaussian one, at the same q, and the
// optimum over nodes is its optimum. The difference is (∂F/∂log s)²/ν: larger for three
// classes, whose optimum is further from the prior.
func TestManyDegreesOfFreedomAreTheGaussianProcess(t *testing.T) {
	const nu = 1e7
	within := map[Link]float64{Logistic: 1e-5, Pairs: 2e-5}
	three, p := labtest.Twelve()
	for link, d := range map[Link]*lab.Data{Pairs: three, Logistic: twoClasses(three)} {
		b, err := NewGaussian(d, p, link)
		if err != nil {
			t.Fatal(err)
		}
		b.Held = Held{Kernel: true, Points: true}
		if err := b.Fit(t.Context(), 1000); err != nil {
			t.Fatal(err)
		}
		want := b.evaluate().value
		at := func(o *Bound, err error) float64 {
			if err == nil {
				_, err = o.SetVector(b.Vector())
			}
			if err != nil {
				t.Fatal(err)
			}
			return o.evaluate().value
		}
		labtest.Near(t, "tied", at(NewTied(d, p, link, nu, false)), want, within[link])
		labtest.Near(t, "non-centred", at(NewNonCentred(d, p, link, NewScale(nu, sharedNodes))), want, within[link])
		bound := func(nu float64) float64 {
			g, err := NewGrid(d, p, link, NewScale(nu, ownNodes))
			if err == nil {
				err = g.Run(50, 1e-9)
			}
			if err != nil {
				t.Fatal(err)
			}
			return g.LogZ()
		}
		gaussian := bound(math.Inf(1))
		labtest.Near(t, "grid", bound(nu), gaussian, within[link])
		labtest.Near(t, "optimum over q by two ways", want, gaussian, 1e-6)
	}
}

// twoClasses is class 0 against the others.
func twoClasses(d *lab.Data) *lab.Data {
	two := &lab.Data{D: d.D, C: 2, X: d.X}
	for _, y := range d.Y {
		two.Y = append(two.Y, min(y, 1))
	}
	return two
}
