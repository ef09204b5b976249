package lab_test

import (
	"math"
	"testing"

	"edge/lab"
	"edge/lab/labtest"
	"edge/test/golden"
)

func TestSiteUndoesCavity(t *testing.T) {
	const s1, s2, a, v = 0.7, -0.4, 0.3, 1.9 // a site times its cavity N(a, v)
	precision := 1/v + s1
	mean, variance := (a/v+s2)/precision, 1/precision
	ga, gv, e := lab.Cavity(s1, s2, mean, variance)
	labtest.Near(t, "cavity mean", ga, a, 1e-13)
	labtest.Near(t, "cavity variance", gv, v, 1e-13)
	labtest.Near(t, "share", e, variance/v, 1e-13)
	// The derivatives of log ∫ N(f; a, v) site(f) df give the site back.
	_, g, dv := lab.Normaliser(s1, s2, a, v)
	r1, r2 := lab.Site(g, g*g-2*dv, a, v, 0)
	labtest.Near(t, "precision of the site", r1, s1, 1e-13)
	labtest.Near(t, "linear term of the site", r2, s2, 1e-13)
}

func TestNormaliserIsTheIntegral(t *testing.T) {
	const s1, s2, a, v = 0.7, -0.4, 0.3, 1.9
	integral := func(x []float64) float64 {
		const n = 4000
		var sum float64
		for i := range n {
			f := -20 + 40*(float64(i)+0.5)/n
			sum += math.Exp(-0.5*(f-x[0])*(f-x[0])/x[1]-0.5*s1*f*f+s2*f) * 40 / n
		}
		return math.Log(sum / math.Sqrt(2*math.Pi*x[1]))
	}
	d, da, dv := lab.Normaliser(s1, s2, a, v)
	labtest.Near(t, "D", d, integral([]float64{a, v}), 1e-12)
	golden.Close(t, "derivatives of D", []float64{da, dv}, labtest.Differences([]float64{a, v}, 1e-4, integral), 1e-7)
}
