package fleet

import (
	"math"
	"math/rand/v2"
	"testing"

	"edge/model/dense"
)

// A product CᵀC of any size is found sound exactly if it factors after its rounding; what
// is not finite is not.
func TestSound(t *testing.T) {
	const m = 6
	rng := rand.New(rand.NewPCG(4, 4))
	p := &projector{m: m, check: make([]float64, m*m)}
	refused := 0
	for exponent := -3.; exponent < 14; exponent += 0.1 {
		rank := 1 + rng.IntN(m)
		c, s := make([]float64, rank*m), make([]float64, rank)
		for i := range c {
			c[i] = rng.NormFloat64()
		}
		for i := range s {
			s[i] = math.Pow(10, exponent)
		}
		a := make([]float64, m*m)
		dense.WeightedGram(rank, m, s, 1, c, m, a, m)
		copied := append([]float64(nil), a...)
		want := factors(copied, m)
		if !want {
			refused++
		}
		if got := p.sound(a); got != want {
			t.Errorf("products of about 10^%.1f: %v, want %v", exponent, got, want)
		}
	}
	if refused == 0 {
		t.Error("none was refused: the test shows nothing")
	}
	for _, v := range []float64{math.NaN(), math.Inf(1)} {
		a := make([]float64, m*m)
		a[0] = v
		if p.sound(a) {
			t.Errorf("a precision of %g is sound", v)
		}
	}
}
