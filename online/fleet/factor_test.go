package fleet

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model/dense"
)

// A receiver without a basis takes none that does not factor, and refuses its member alone.
func TestBasisThatDoesNotFactor(t *testing.T) {
	a, _ := member(t, "a", 9, 5, Float32, "x", "y")
	b, _ := member(t, "b", 8, 5, Float32, "x", "y")
	r := &Receiver{Member: "own", Features: 7, Inputs: 2, Horizons: a.Horizons, Trust: math.Inf(-1)}
	for _, classes := range [][]string{{"x", "y"}, {"x", "z"}} { // for z a basis of all is tried
		bad, _ := member(t, "bad", 30, 5, Float32, classes...)
		for i := range 5 {
			bad.Params.Z()[2*i] = 1e6 // so many lengthscales away that no digit is left for the other feature
		}
		bad.Params.LogEll()[0], bad.Params.LogEll()[1] = -4.5, 0
		if m := mergeOf(t, r, bad); m.Members[0].Refused != NotFactored || m.Params.M != 0 {
			t.Errorf("classes %v: the member alone is %+v", classes, m.Members)
		}
		if m := mergeOf(t, r, a, b, bad); m.Taken() < 2 || m.Members[0].Refused != None {
			t.Errorf("classes %v: the members are %+v", classes, m.Members)
		}
	}
	// Nor does a basis of all need to, as where the mean of a member is far away.
	fallen := 0
	for _, ell := range []float64{0, 0.5, 1} {
		far, _ := member(t, "far", 30, 5, Float32, "x", "z")
		far.N, far.Scale.Mu[0], far.Params.LogEll()[1] = math.MaxUint64, -1e100, ell
		clear(far.Params.Z())
		m := mergeOf(t, r, a, b, far)
		if m.Taken() != 3 {
			t.Errorf("the members are %+v", m.Members)
		}
		if m.Basis.equal(&far.Basis, Raw) {
			fallen++
		}
		mixing := receiver(t, 5)
		mixing.Mix, mixing.Trust = true, math.Inf(-1)
		mergeOf(t, mixing, a, b, far)
	}
	if fallen == 0 {
		t.Error("each basis of all factors: the test shows nothing")
	}
}

// A sum of precisions so large that 32 bits leave no digit for the 1 of the prior factors as each of them
// does, with a diagonal that is hardly larger.
func TestAllowRounding(t *testing.T) {
	const m = 5
	rng, grown := rand.New(rand.NewPCG(1, 1)), 0
	for i := range 300 {
		size := math.Pow(10, float64(i%19))
		x, a := make([]float64, 2*m), make([]float64, m*m)
		for i := range x {
			x[i] = rng.NormFloat64()
		}
		dense.WeightedGram(2, m, []float64{size, size}, 1, x, m, a, m)
		before, factored := slices.Clone(a), factors(slices.Clone(a), m)
		if allowRounding(a, m); !factors(slices.Clone(a), m) {
			t.Errorf("a sum of the size %g does not factor", size)
		}
		var trace, more float64
		for i := range m {
			trace, more = trace+before[i*m+i], more+a[i*m+i]-before[i*m+i]
		}
		if factored && more != 0 || more > 1e-5*trace {
			t.Errorf("size %g: the trace of %g grows by %g", size, trace, more)
		}
		if more > 0 {
			grown++
		}
	}
	if grown < 50 {
		t.Errorf("only %d sums need it", grown)
	}
}
