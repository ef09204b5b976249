package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The interpolated rank is the empirical distribution function, (values below + values
// not above)/2n, to the distance of two quantiles.
func TestRank(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for name, draw := range map[string]func() float64{
		"normal":    rng.NormFloat64,
		"skewed":    func() float64 { return math.Exp(3 * rng.NormFloat64()) },
		"two":       func() float64 { return float64(rng.IntN(2)) },
		"few":       func() float64 { return 0.1 * float64(rng.IntN(5)) },
		"many ties": func() float64 { return max(0, rng.NormFloat64()-0.5) },
		"constant":  func() float64 { return 7 },
	} {
		const n = 201
		values := make([]float64, n)
		for i := range values {
			values[i] = draw()
		}
		slices.Sort(values)
		quantiles := make([]float64, RankPoints)
		for i := range quantiles {
			at := float64(i) / (RankPoints - 1) * (n - 1)
			low := int(at)
			high := min(low+1, n-1)
			quantiles[i] = values[low] + (at-float64(low))*(values[high]-values[low])
		}
		last := 0.0
		for _, v := range values {
			below, notAbove := 0, 0
			for _, u := range values {
				if u < v {
					below++
				}
				if u <= v {
					notAbove++
				}
			}
			got, want := rank(quantiles, v), float64(below+notAbove)/(2*n)
			if math.Abs(got-want) > 1./(RankPoints-1)+1./n {
				t.Errorf("%s: rank of %g is %g, want %g", name, v, got, want)
			}
			if got < last {
				t.Errorf("%s: rank of %g is %g, and %g of a lower value", name, v, got, last)
			}
			last = got
		}
		if lo, hi := rank(quantiles, values[0]-1), rank(quantiles, values[n-1]+1); lo != 0 || hi != 1 {
			t.Errorf("%s: rank %g below all values and %g above, want 0 and 1", name, lo, hi)
		}
	}
}

// Ranks take half the place of the distance from the mean, which alone counts the
// clipped features.
func TestScaleWithRanks(t *testing.T) {
	s := Scale{Mu: []float64{1, 0}, Sd: []float64{2, 1}, Clip: 3}
	for i := range 2 * RankPoints {
		s.Ranks = append(s.Ranks, float64(i%RankPoints)/(RankPoints-1)) // uniform on [0, 1]
	}
	half := math.Sqrt(12) / 2
	for name, c := range map[string]struct {
		x, want [2]float64
		clipped int
	}{
		"inside":  {[2]float64{0.5, 0.3}, [2]float64{-0.125, 0.15 - 0.2*half}, 0},
		"beyond":  {[2]float64{9, -1}, [2]float64{1.5 + 0.5*half, -0.5 - 0.5*half}, 1},
		"missing": {[2]float64{math.NaN(), 1e300}, [2]float64{Missing, 1.5 + 0.5*half}, 1},
	} {
		var got [2]float64
		clipped := s.To(got[:], c.x[:])
		for j := range got {
			if got[j] != c.want[j] && !(math.Abs(got[j]-c.want[j]) < 1e-14) {
				t.Errorf("%s: feature %d is %g, want %g", name, j, got[j], c.want[j])
			}
		}
		if clipped != c.clipped {
			t.Errorf("%s: %d features clipped, want %d", name, clipped, c.clipped)
		}
	}
}

// Raw finds the value of a standardised feature again, with ranks and without, inside and
// outside of all observations; between two values of a feature that has few of them it
// finds one of both.
func TestRawInvertsUnclipped(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	quantiles := make([]float64, 2*RankPoints)
	for i := range RankPoints {
		quantiles[i] = math.Exp(3 * rng.NormFloat64())
		quantiles[RankPoints+i] = float64(i / 10) // 0, 1, 2 and 3
	}
	slices.Sort(quantiles[:RankPoints])
	s := Scale{Mu: []float64{2, 1}, Sd: []float64{3, 0.7}}
	for _, ranks := range [][]float64{nil, quantiles} {
		s.Ranks = ranks
		for range 2000 {
			x := 40*rng.Float64() - 10
			if rng.IntN(4) == 0 {
				x = quantiles[rng.IntN(RankPoints)]
			}
			if got := s.Raw(0, s.Unclipped(0, x)); math.Abs(got-x) > 1e-9*(1+math.Abs(x)) {
				t.Fatalf("ranks %v: %g is found as %g", ranks != nil, x, got)
			}
		}
	}
	for range 2000 {
		z := 6*rng.Float64() - 3
		x := s.Raw(1, z)
		if below, above := s.Unclipped(1, x-1e-9), s.Unclipped(1, x+1e-9); !(below <= z+1e-6 && above >= z-1e-6) {
			t.Fatalf("%g is found as %g, around which the feature goes from %g to %g", z, x, below, above)
		}
	}
}
