package sep

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A distance that is not needed is not computed to its end, and no centre depends on it.
func TestDistanceBelow(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for _, d := range []int{1, 15, 16, 17, 40, 128} {
		a, b := make([]float64, d), make([]float64, d)
		for i := range a {
			a[i], b[i] = rng.NormFloat64(), rng.NormFloat64()
		}
		want := distance2(a, b)
		for _, limit := range []float64{0, want / 3, want, math.Nextafter(want, 1e9), 2 * want, math.Inf(1)} {
			if got := distanceBelow(a, b, limit); want < limit && got != want || want >= limit && got < limit {
				t.Errorf("D = %d: %v below %v, the distance is %v", d, got, limit, want)
			}
		}
	}
}
