package dense

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

const precision = 300 // bits of the reference

// bigExp is e^x: the argument halved until it is small, the Taylor series, and
// as many squarings.
func bigExp(x *big.Float) *big.Float {
	new300 := func(v float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(v) }
	halvings := max(0, x.MantExp(nil)+20)
	r := new(big.Float).SetPrec(precision).SetMantExp(x, -halvings)
	sum, term := new300(1), new300(1)
	for i := 1; i < 20; i++ {
		term.Mul(term, r)
		term.Quo(term, new300(float64(i)))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum
}

// relative is |got/want − 1|; want is rounded only for the quotient.
func relative(got float64, want *big.Float) float64 {
	g := new(big.Float).SetPrec(precision).SetFloat64(got)
	g.Sub(g, want)
	q, _ := g.Quo(g, want).Float64()
	return math.Abs(q)
}

// exp returns e^xᵢ of arguments up to 0: the kernel of points at these distances from 0.
func exp(x ...float64) []float64 {
	row := slices.Clone(x)
	ExpSqDist(row, 1, 0, make([]float64, len(x)))
	return row
}

func TestExp(t *testing.T) {
	paths(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(8, 1))
		var x []float64
		for i := range 2000 {
			x = append(x, -708*r.Float64(), -math.Abs(r.NormFloat64()), -math.Abs(math.Ldexp(r.NormFloat64(), -i%60)))
		}
		x = append(x, -708.39, -0.5*math.Ln2, -1.5*math.Ln2)
		got := exp(x...)
		var worst float64
		for i, v := range x {
			e := relative(got[i], bigExp(new(big.Float).SetFloat64(v)))
			if e > 4e-16 {
				t.Fatalf("e^%v = %v, relative error %.1e", v, got[i], e)
			}
			worst = max(worst, e)
		}
		t.Logf("largest relative error %.2e", worst)
	})
}

func TestExpEdges(t *testing.T) {
	paths(t, func(t *testing.T) {
		for _, c := range []struct{ x, want float64 }{
			{0, 1}, {math.Copysign(0, -1), 1}, {-5e-324, 1}, {-1e-300, 1}, {-1, 1 / math.E}, {5e-324, 1}, {1, 1},
			{-745.13, 5e-324}, {-745.2, 0}, {-746, 0}, {-1e5, 0}, {-1e308, 0}, {math.Inf(-1), 0},
			{-708.4, 2.21712e-308}, {-720, 2.032230802424294e-313}, {-740, 4.2e-322},
			{math.NaN(), math.NaN()},
		} {
			// Every position of a vector, and the remainder.
			for n := 1; n < 10; n++ {
				x := make([]float64, n)
				for at := range x {
					clear(x)
					x[at] = c.x
					for i, g := range exp(x...) {
						want := 1.0
						if i == at {
							want = c.want
						}
						if math.IsNaN(want) != math.IsNaN(g) || math.Abs(g-want) > 1e-4*want && g != want {
							t.Fatalf("element %d of %d: e^%v = %v, want %v", i, n, x[i], g, want)
						}
					}
				}
			}
		}
		// Below the normal range rounded once: equal to the rounded reference.
		for x := -708.3; x > -745.2; x -= 0.61803 {
			got := exp(x)
			want, _ := bigExp(new(big.Float).SetFloat64(x)).Float64()
			if math.Abs(got[0]-want) > math.SmallestNonzeroFloat64 {
				t.Errorf("e^%v = %v, want %v", x, got[0], want)
			}
		}
	})
}

func TestExpSqDist(t *testing.T) {
	paths(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(9, 1))
		for n := range 30 {
			row, zz := make([]float64, n), make([]float64, n)
			want := make([]float64, n)
			for j := range row {
				zz[j], row[j] = 50*r.Float64(), 20*r.NormFloat64()
				want[j] = 0.3 * math.Exp(-0.5*max(7+zz[j]-2*row[j], 0))
			}
			ExpSqDist(row, 0.3, 7, zz)
			for j, g := range row {
				if math.Abs(g-want[j]) > 1e-13*want[j] {
					t.Fatalf("element %d of %d: %v, want %v", j, n, g, want[j])
				}
			}
		}
	})
}
