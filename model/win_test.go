package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/diff/fd"

	"edge/test/golden"
)

func TestWinGolden(t *testing.T) {
	var ref struct {
		Rows []struct {
			A     []float64 `json:"a"`
			T     []float64 `json:"t"`
			Y     int
			LogP  float64   `json:"log_p"`
			G     []float64 `json:"g"`
			DT    []float64 `json:"T"`
			Forty []float64 `json:"error_40_nodes"`
		}
	}
	golden.Reference(t, "comparators/win.json", &ref)
	for i, r := range ref.Rows {
		t.Run(fmt.Sprintf("row %d, C = %d", i, len(r.A)), func(t *testing.T) {
			g, dt := make([]float64, len(r.A)), make([]float64, len(r.A))
			for _, c := range []struct {
				nodes         int
				logP, dg, ddt float64
			}{{1001, 1e-11, 1e-11, 1e-11}, {40, 2*r.Forty[0] + 1e-11, 2*r.Forty[1] + 1e-11, 2*r.Forty[2] + 1e-11}} {
				logP := NewWin(c.nodes).LogProb(r.A, r.T, r.Y, g, dt)
				within(t, "log p", logP, r.LogP, 0, c.logP)
				for k := range g {
					within(t, fmt.Sprintf("g of class %d with %d nodes", k, c.nodes), g[k], r.G[k], 0, c.dg)
					within(t, fmt.Sprintf("T of class %d with %d nodes", k, c.nodes), dt[k], r.DT[k], 0, c.ddt)
				}
			}
		})
	}
}

func TestWinDerivativesAreDifferences(t *testing.T) {
	a, v := []float64{0.3, -0.8, 1.1, 0.2}, []float64{0.7, 1.3, 0.4, 2.1}
	w := NewWin(200)
	for y := range a {
		g, dt := make([]float64, len(a)), make([]float64, len(a))
		w.LogProb(a, v, y, g, dt)
		central := &fd.Settings{Formula: fd.Central}
		golden.Close(t, "g", g, fd.Gradient(nil, func(a []float64) float64 { return w.LogProb(a, v, y, nil, nil) }, a, central), 1e-8)
		golden.Close(t, "T", dt, fd.Gradient(nil, func(v []float64) float64 { return w.LogProb(a, v, y, nil, nil) }, v, central), 1e-8)
	}
}

// Two classes have a closed form, log Φ((a_0 − a_1)/√(t_0 + t_1)), also far in the tail.
func TestWinOfTwoClasses(t *testing.T) {
	w := NewWin(100)
	for _, c := range []struct{ a, t0, t1 float64 }{{0.5, 1, 2}, {-3, 0.1, 0.2}, {-25, 1, 0.5}, {4, 1e-3, 1}, {-2, 1, 1e-3}} {
		z := c.a / math.Sqrt(c.t0+c.t1)
		want := math.Log(0.5 * math.Erfc(-z/math.Sqrt2))
		got := w.LogProb([]float64{c.a, 0}, []float64{c.t0, c.t1}, 0, nil, nil)
		within(t, fmt.Sprintf("log p of %+v", c), got, want, 0, 1e-11*(1+math.Abs(want)))
	}
}

// Whatever the latents, log p and its derivatives are finite, log p is at most 0, and the
// probabilities of all classes add up to nearly 1.
func TestWinIsFinite(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	w := NewWin(64)
	for range 2000 {
		c := 2 + r.IntN(8)
		a, v, g, dt := make([]float64, c), make([]float64, c), make([]float64, c), make([]float64, c)
		spread := math.Exp(12*r.Float64() - 4)
		for k := range a {
			a[k], v[k] = spread*r.NormFloat64(), math.Exp(9*r.Float64()-6)
		}
		var sum float64
		for y := range c {
			logP := w.LogProb(a, v, y, g, dt)
			for k, x := range append(append([]float64{logP}, g...), dt...) {
				if math.IsNaN(x) || math.IsInf(x, 0) || logP > 0 {
					t.Fatalf("LogProb(%v, %v, %d) = %v, element %d is %v", a, v, y, logP, k, x)
				}
			}
			sum += math.Exp(logP)
		}
		if math.Abs(sum-1) > 1e-2 {
			t.Fatalf("the probabilities of means %v and variances %v add up to %v", a, v, sum)
		}
	}
}
