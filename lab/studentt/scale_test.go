package studentt

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"edge/lab/labtest"
	"edge/test/golden"
)

func TestInverseGamma(t *testing.T) {
	var file struct {
		Grid []struct {
			Nu      float64
			LogS    []float64 `json:"log_s"`
			Density []float64 `json:"log_density_of_log_s"`
			Weight  []float64 `json:"log_weight"`
		}
		KL []struct {
			Nu, A, B, KL float64
		}
	}
	golden.Reference(t, "student-t/inverse_gamma.json", &file)
	if len(file.Grid) == 0 || len(file.KL) == 0 {
		t.Fatal("the file is empty")
	}
	for _, g := range file.Grid {
		for i, v := range g.LogS {
			golden.Close(t, "log density", []float64{logDensity(g.Nu, v)}, g.Density[i:i+1], 1e-12)
		}
		golden.Close(t, "log weights", logWeights(g.Nu, g.LogS), g.Weight, 1e-12)
	}
	for _, k := range file.KL {
		kl, da, db := inverseGammaKL(k.Nu, k.A, k.B)
		golden.Close(t, "KL", []float64{kl}, []float64{k.KL}, 1e-11)
		want := labtest.Differences([]float64{k.A, k.B}, 1e-5, func(x []float64) float64 {
			v, _, _ := inverseGammaKL(k.Nu, x[0], x[1])
			return v
		})
		for i, v := range []float64{da, db} {
			labtest.Near(t, "slope of KL", v, want[i], 1e-8)
		}
	}
	const euler = 0.57721566490153286 // −ψ(1); ψ(½) = −γ − 2 log 2; ψ(10) by the harmonic numbers
	for x, want := range map[float64]float64{1: -euler, 0.5: -euler - 2*math.Ln2, 10: 7129.0/2520 - euler} {
		labtest.Near(t, "digamma", digamma(x), want, 1e-13)
	}
}

// The nodes lie between the quantiles of s, and are weighed by the density.
func TestNodes(t *testing.T) {
	for _, nu := range []float64{2.5, 3, 10, 1e7} {
		s, g := NewScale(nu, sharedNodes), distuv.Gamma{Alpha: nu / 2, Beta: nu / 2}
		first, last := s.Log[0], s.Log[sharedNodes-1]
		labtest.Near(t, "probability below the first node", g.Survival(math.Exp(-first)), 0.001, 1e-8)
		labtest.Near(t, "probability below the last node", g.Survival(math.Exp(-last)), 0.997, 1e-8)
		var sum, inverse float64
		for i, l := range s.Pi {
			sum += math.Exp(l)
			inverse += math.Exp(l - s.Log[i])
		}
		labtest.Near(t, "sum of the weights", sum, 1, 1e-12)
		labtest.Near(t, "mean of 1/s", inverse, 1, 0.02)
	}
	for i, s := range equalMass(3, 4.5) {
		g := distuv.Gamma{Alpha: 3, Beta: 4.5}
		labtest.Near(t, "mass of 1/s below a node", g.CDF(1/s), (float64(i)+0.5)/massNodes, 1e-9)
	}
}

func TestExpectationsUnderStudentT(t *testing.T) {
	var file struct {
		Rows []struct {
			Dof, Mean, Scale float64
			Link             string
			E                float64
			DMean            float64 `json:"dE_dmean"`
			DScale           float64 `json:"dE_dscale"`
			DDof             float64 `json:"dE_ddof"`
		}
	}
	golden.Reference(t, "student-t/t_expectation.json", &file)
	if len(file.Rows) < 12 {
		t.Fatalf("%d rows", len(file.Rows))
	}
	for _, r := range file.Rows {
		m := &marginals{link: Logistic, y: []int{1}, c: 1, mean: []float64{r.Mean}, spread: []float64{r.Scale * r.Scale}, noise: []float64{1}}
		if r.Link == "probit" { // unit noise of the difference of two latents, one of them 0
			m.link, m.y, m.c = Pairs, []int{0}, 2
			m.mean, m.spread, m.noise = []float64{r.Mean, 0}, []float64{r.Scale * r.Scale, 0}, []float64{0.5, 0.5}
		}
		e := m.expect(&rules{dof: r.Dof, growth: m.link.growth()}, 1, 1, 1)
		rel := 1e-6
		if r.Dof < 3 && r.Link == "probit" {
			rel = 1e-5
		}
		for _, v := range []struct {
			what      string
			got, want float64
		}{
			{"E", e.sum, r.E},
			{"slope in the mean", e.mean[0], r.DMean},
			{"slope in the scale", 2 * r.Scale * e.spread[0], r.DScale},
			{"slope in the degrees of freedom", e.dof, r.DDof},
		} {
			golden.Close(t, v.what, []float64{v.got}, []float64{v.want}, rel)
		}
	}
}

// With many degrees of freedom the rule of Student-t is that of the normal, and both are
// right for wide latents: E log σ(f) for f ~ N(0, sd²) tends to −sd/√(2π) − π²/(6√(2π) sd).
func TestRulesOfWideLatents(t *testing.T) {
	for _, sd := range []float64{1, 5, 20, 40} {
		m := &marginals{link: Logistic, y: []int{1}, c: 1, mean: []float64{0.3}, spread: []float64{sd * sd}, noise: []float64{1}}
		normal := m.expect(&rules{dof: math.Inf(1), growth: 1}, 1, 1, 1)
		student := m.expect(&rules{dof: 1e9, growth: 1}, 1, 1, 1)
		golden.Close(t, "normal limit", []float64{student.sum, student.mean[0], student.spread[0]}, []float64{normal.sum, normal.mean[0], normal.spread[0]}, 1e-6)
		if sd == 40 {
			m.mean[0] = 0
			want := -sd/math.Sqrt(2*math.Pi) - math.Pi*math.Pi/(6*math.Sqrt(2*math.Pi)*sd)
			labtest.Near(t, "wide limit", m.expect(&rules{dof: math.Inf(1), growth: 1}, 1, 1, 1).sum, want, 1e-4)
		}
	}
}

// E log_t σ(f) is infinite under a Student-t: the published rule gives a number that grows
// with its nodes, here with ν = 3, n = 10 (20 nodes: −1.81 for f = 2 + 3x).
func TestPublishedRuleCutsTheTail(t *testing.T) {
	m := &marginals{link: Logistic, y: []int{1}, c: 1, mean: []float64{2}, spread: []float64{9}, noise: []float64{1}}
	labtest.Near(t, "20 nodes", m.expect(hermiteRules(3), 1+2.0/13, 1, 1).sum, -1.81, 0.005)
	whole := m.expect(&rules{dof: 3, growth: 1}, 1+2.0/13, 1, 1).sum
	if !(whole < -1e30 || math.IsNaN(whole)) {
		t.Errorf("with the tail: %g, want a number near minus infinity", whole)
	}
}
