package htmlreport

import (
	"math"
	"slices"
	"testing"
)

// Ticks are round numbers that cover an axis.
func TestTicks(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		want   []float64
	}{
		{0, 1, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
		{0, 37, []float64{0, 10, 20, 30}},
		{-3, 3, []float64{-2, 0, 2}},
		{0.7, 1, []float64{0.7, 0.8, 0.9, 1}},
		{0, 2e5, []float64{0, 5e4, 1e5, 1.5e5, 2e5}},
		{4, 4, []float64{4}},
		{0, math.Inf(1), []float64{0}},
	} {
		got := ticks(c.lo, c.hi)
		if !slices.EqualFunc(got, c.want, func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1+math.Abs(b)) }) {
			t.Errorf("ticks from %g to %g: %v, want %v", c.lo, c.hi, got, c.want)
		}
	}
}
