package fleet

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The table of 50 pairs of judgements that textbooks show: 20 times yes by both, 15 times
// no by both, 5 and 10 times only one says yes. κ is 0.4.
func TestAgreement(t *testing.T) {
	both := []bool{true, true}
	one, two, silent := answer{knows: both}, answer{knows: both}, answer{}
	pairs := func(n int, a, b float64) {
		for range n {
			one.known, two.known = append(one.known, true), append(two.known, true)
			one.probs, two.probs = append(one.probs, a, 1-a), append(two.probs, b, 1-b)
		}
	}
	pairs(20, 0.9, 0.6)
	pairs(5, 0.8, 0.3)
	pairs(10, 0.4, 0.7)
	pairs(15, 0.1, 0.2)
	all := []answer{one, silent, two}
	for _, j := range []int{0, 2} {
		if kappa, tested := agreement(all, j, 2); !tested || math.Abs(kappa-0.4) > 1e-12 {
			t.Errorf("κ of %d is %g, %t", j, kappa, tested)
		}
	}
	if _, tested := agreement(all, 1, 2); tested {
		t.Error("a member without an answer is tested")
	}
	// One that has never seen yes contradicts no yes, and is contradicted by none.
	narrow := answer{known: two.known, knows: []bool{false, true}}
	for i := range two.known {
		narrow.probs = append(narrow.probs, 0, two.probs[2*i+1])
	}
	for _, j := range []int{0, 2} {
		if kappa, tested := agreement([]answer{one, silent, narrow}, j, 2); tested {
			t.Errorf("κ of %d is %g with one that knows no other class", j, kappa)
		}
	}
	for i := range one.known {
		one.known[i] = i < minProbes-1
	}
	if _, tested := agreement(all, 0, 2); tested {
		t.Error("a member that knows too few points is tested")
	}
}

// Means and variances are wᵀ(I + A)⁻¹b and q + wᵀ(I + A)⁻¹w, here by elimination.
func TestLatents(t *testing.T) {
	const m, n = 5, 3
	c, _ := member(t, "a", 30, m, Float32, "x", "y")
	rng := rand.New(rand.NewPCG(1, 9))
	w, q := make([]float64, n*m), make([]float64, n)
	for i := range w {
		w[i] = rng.NormFloat64()
	}
	for i := range q {
		q[i] = rng.Float64()
	}
	mean, variance, ok := c.latents(0, w, q)
	if !ok {
		t.Fatal("it does not factor")
	}
	for k := range c.Classes {
		r, b := make([]float64, m*m), make([]float64, m)
		c.Factor(0, k, r, b)
		for i := range n {
			p := square(m, m+2) // I + A, w, b
			for a := range m {
				for e := range m {
					for j := range min(a, e) + 1 {
						p[a][e] += r[a*m+j] * r[e*m+j]
					}
				}
				p[a][a]++
				p[a][m], p[a][m+1] = w[i*m+a], b[a]
			}
			for a := range m {
				for e := range m {
					if e == a {
						continue
					}
					f := p[e][a] / p[a][a]
					for j := a; j < m+2; j++ {
						p[e][j] -= f * p[a][j]
					}
				}
			}
			wantMean, wantVariance := 0., q[i]
			for a := range m {
				wantVariance += w[i*m+a] * p[a][m] / p[a][a]
				wantMean += w[i*m+a] * p[a][m+1] / p[a][a]
			}
			if math.Abs(mean[k*n+i]-wantMean) > 1e-9 || math.Abs(variance[k*n+i]-wantVariance) > 1e-9 {
				t.Errorf("class %d, point %d: %g, %g, want %g, %g", k, i, mean[k*n+i], variance[k*n+i], wantMean, wantVariance)
			}
		}
	}
}
