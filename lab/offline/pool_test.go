package offline

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/diff/fd"

	"edge/test/golden"
)

// randomPool returns probabilities of n samples by two kinds of models, and labels that
// follow the first.
func randomPool(n, c int, sharp float64) (held [2][]float64, y []int) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range n {
		for kind := range held {
			row, sum := make([]float64, c), 0.0
			for k := range row {
				row[k] = math.Exp(2 * rng.NormFloat64())
				sum += row[k]
			}
			for k := range row {
				row[k] /= sum
			}
			held[kind] = append(held[kind], row...)
		}
		row, sum := make([]float64, c), 0.0
		for k := range row {
			row[k] = math.Pow(held[0][len(held[0])-c+k], sharp)
			sum += row[k]
		}
		u, label := rng.Float64()*sum, 0
		for label < c-1 && u >= row[label] {
			u -= row[label]
			label++
		}
		y = append(y, label)
	}
	return held, y
}

// The derivatives of the pool's objective are central differences, and its fit has none.
func TestPoolFit(t *testing.T) {
	held, y := randomPool(80, 4, 1)
	probs := make([]float64, 4)
	at := func(a []float64) float64 {
		p := pool{[2]float64{a[0], a[1]}}
		v, _, _ := p.posterior(held, y, probs)
		return v
	}
	p := pool{[2]float64{0.3, 0.8}}
	_, grad, curv := p.posterior(held, y, probs)
	central := &fd.Settings{Formula: fd.Central}
	golden.Close(t, "gradient", grad[:], fd.Gradient(nil, at, p.a[:], central), 1e-7)
	for j := range 2 {
		want := fd.Gradient(nil, func(a []float64) float64 {
			q := pool{[2]float64{a[0], a[1]}}
			_, g, _ := q.posterior(held, y, probs)
			return -g[j]
		}, p.a[:], central)
		golden.Close(t, "curvature", curv[j:j+2], want, 1e-7)
	}
	p.fit(held, y)
	if _, g, _ := p.posterior(held, y, probs); math.Hypot(g[0], g[1]) > 1e-6 {
		t.Errorf("gradient %v at the fit %v", g, p.a)
	}
}

// Models that are too sharp or too flat are corrected, and one without information gets
// no exponent; without samples the pool is the geometric mean.
func TestPoolCorrects(t *testing.T) {
	for _, sharp := range []float64{0.5, 1, 1.5} {
		held, y := randomPool(4000, 3, sharp)
		var p pool
		p.fit(held, y)
		if math.Abs(p.a[0]-sharp) > 0.1 || math.Abs(p.a[1]) > 0.1 {
			t.Errorf("exponents %v, want %g and 0", p.a, sharp)
		}
	}
	var p pool
	p.fit([2][]float64{}, nil)
	if p.a != [2]float64{0.5, 0.5} {
		t.Errorf("exponents %v without samples, want 0.5", p.a)
	}
	probs := make([]float64, 2)
	p.probsTo(probs, []float64{0, 1}, []float64{1, 0})
	golden.Close(t, "contradiction", probs, []float64{0.5, 0.5}, 1e-12)
}
