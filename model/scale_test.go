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
