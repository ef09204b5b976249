// Package fleettest makes contributions to fleets for tests that need no learner.
package fleettest

import (
	"math"
	"math/rand/v2"
	"testing"

	"edge/model"
	"edge/model/dense"
	"edge/online/fleet"
)

// Contribution returns a contribution with header h and one horizon, of a basis with m inducing
// points for one feature. Its natural parameters are random, so that they cannot be packed well.
func Contribution(t testing.TB, h fleet.Header, m int) *fleet.Contribution {
	t.Helper()
	h.Horizons, h.Weights = []float64{500}, []float64{1}
	basis := fleet.Basis{
		Params: model.Params{M: m, D: 1, Theta: make([]float64, m+1+3)},
		Scale:  model.Scale{Mu: []float64{0}, Sd: []float64{1}, Clip: 8},
	}
	*basis.Params.LogitEps() = model.Logit(0.01)
	c := fleet.New(h, basis, fleet.Bfloat16)
	rng := rand.New(rand.NewPCG(h.N, uint64(m)))
	for k := range h.Classes {
		a, r := make([]float64, m*m), make([]float64, m*m)
		for i := range m {
			for j := range i {
				r[i*m+j] = 16 * rng.NormFloat64()
			}
			r[i*m+i] = math.Sqrt(float64(h.N))
		}
		dense.SymmetricProduct(false, true, m, m, r, m, r, m, a, m)
		if err := c.Put(0, k, a, make([]float64, m)); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// Encode returns a contribution as its member publishes it.
func Encode(t testing.TB, c *fleet.Contribution) []byte {
	t.Helper()
	data, err := c.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
