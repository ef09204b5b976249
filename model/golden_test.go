package model

import (
	"math"
	"testing"

	"edge/model/dense"
	"edge/test/golden"
)

// within compares by relative error, absolute below floor.
func within(t *testing.T, what string, got, want, rel, floor float64) {
	t.Helper()
	if diff := math.Abs(got - want); !(diff <= rel*math.Abs(want) || diff <= floor) {
		t.Errorf("%s = %v, want %v (relative error %.2g)", what, got, want, diff/math.Abs(want))
	}
}

func TestProbitGolden(t *testing.T) {
	var ref struct {
		Rows []struct {
			Alpha   float64
			LogPhi  float64 `json:"log_phi"`
			Beta, T float64
		}
	}
	golden.Reference(t, "tail.json", &ref)
	for _, r := range ref.Rows {
		var logPhi, beta, tt [1]float64
		dense.LogPhi(logPhi[:], []float64{r.Alpha})
		dense.Probit(beta[:], tt[:], []float64{r.Alpha})
		floor := 1e-300
		if r.Alpha > 8 {
			floor = 1e-15
		}
		within(t, "log Φ", logPhi[0], r.LogPhi, 1e-9, floor)
		within(t, "β", beta[0], r.Beta, 1e-9, 1e-300)
		within(t, "β(β+α)", tt[0], r.T, 1e-9, 1e-300)
	}
	if len(ref.Rows) == 0 {
		t.Error("no rows")
	}
}

func TestBasisGolden(t *testing.T) {
	var ref struct {
		Cases []struct {
			Z              [][]float64
			LogEll         []float64 `json:"log_ell"`
			LogAmp         float64   `json:"log_amp"`
			LogNoise       float64   `json:"log_noise"`
			Jitter         float64
			X, K, L, Kx, W [][]float64
			Q              []float64
		}
	}
	golden.Reference(t, "kernel.json", &ref)
	for i, c := range ref.Cases {
		m, d, n := len(c.Z), len(c.LogEll), len(c.X)
		p := NewParams(m, d)
		copy(p.Z(), golden.Flat(c.Z))
		copy(p.LogEll(), c.LogEll)
		*p.LogAmp(), *p.LogNoise() = c.LogAmp, c.LogNoise
		b := NewBasis(m, d)
		if _, err := b.Set(&p); err != nil {
			t.Fatal(err)
		}
		tol := 1e-11
		if i == 2 { // two identical inducing inputs
			tol = 1e-8
		}
		k, l := b.Covariance(make([]float64, m*m)), append([]float64(nil), b.L...)
		for j := range m {
			k[j*m+j] += b.Jitter * b.Amp
			clear(l[j*m+j+1 : (j+1)*m])
		}
		kx, w, q := make([]float64, n*m), make([]float64, n*m), make([]float64, n)
		b.FeaturesTo(kx, w, q, n, golden.Flat(c.X), make([]float64, n*d), make([]float64, n))
		golden.Close(t, "K", k, golden.Flat(c.K), tol)
		golden.Close(t, "L", l, golden.Flat(c.L), tol)
		golden.Close(t, "c(x,Z)", kx, golden.Flat(c.Kx), tol)
		golden.Close(t, "w", w, golden.Flat(c.W), tol)
		golden.Close(t, "q", q, c.Q, tol)
	}
	if len(ref.Cases) == 0 {
		t.Error("no cases")
	}
}

func TestGridGolden(t *testing.T) {
	var ref struct {
		Rows []struct {
			Mean, Var, P []float64
			P32          []float64 `json:"p_grid32"`
			P16          []float64 `json:"p_grid16"`
		}
	}
	golden.Reference(t, "predict.json", &ref)
	var g Grid
	for i, r := range ref.Rows {
		c := len(r.Mean)
		lo, hi := math.Inf(-1), math.Inf(-1)
		for k := range c {
			sd := math.Sqrt(r.Var[k])
			lo, hi = max(lo, r.Mean[k]-span*sd), max(hi, r.Mean[k]+span*sd)
		}
		got := make([]float64, c)
		for _, fixed := range []struct {
			nodes int
			want  []float64
		}{{32, r.P32}, {16, r.P16}} {
			g.probs(got, r.Mean, r.Var, lo, hi, fixed.nodes)
			for k := range c {
				if diff := math.Abs(got[k] - fixed.want[k]); !(diff <= 1e-12) {
					t.Errorf("row %d class %d with %d nodes: %v, want %v (error %.2g)", i, k, fixed.nodes, got[k], fixed.want[k], diff)
				}
			}
		}
		g.Probs(got, r.Mean, r.Var, Fine)
		for k := range c {
			if diff := math.Abs(got[k] - r.P[k]); !(diff <= 2e-5) {
				t.Errorf("row %d class %d: %v, quadrature gives %v (error %.2g)", i, k, got[k], r.P[k], diff)
			}
		}
	}
	if len(ref.Rows) == 0 {
		t.Error("no rows")
	}
}
