package feature

import (
	"fmt"
	"math"
)

// Correlation returns the correlation of the windows of two signals,
//
//	Σ (a_i − m_a)(b_i − m_b) / (n s_a s_b),
//
// 0 where one of them is constant. It is from −1 to 1, up to rounding.
//
//	a, b  n ≥ 1 finite values each, of the same rows, in the order of time
//
// It allocates for values beyond ±1e70 alone. It panics if the lengths differ or are 0.
func Correlation(a, b []float64) float64 {
	if len(a) != len(b) || len(a) == 0 {
		panic(fmt.Sprintf("feature: the correlation of %d and %d values", len(a), len(b)))
	}
	a, meanA, lowA, highA := within(a)
	b, meanB, lowB, highB := within(b)
	var sumA, sumB, both float64
	for i, v := range a {
		da, db := v-meanA, b[i]-meanB
		sumA += float64(da * da)
		sumB += float64(db * db)
		both += float64(da * db)
	}
	n := float64(len(a))
	sdA, sdB := math.Sqrt(sumA/n), math.Sqrt(sumB/n)
	if flat(lowA, highA, meanA, sdA) || flat(lowB, highB, meanB, sdB) {
		return 0
	}
	return both / (n * sdA * sdB)
}
