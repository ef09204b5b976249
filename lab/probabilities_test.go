package lab_test

import (
	"testing"

	"edge/lab"
	"edge/lab/labtest"
)

func TestProbabilitiesSumToOne(t *testing.T) {
	mean, variance := labtest.Table([][]float64{{0, 1, -1}, {5, -5, 0}}), labtest.Table([][]float64{{1, 2, 0.3}, {0.1, 0.1, 0.1}})
	p := lab.Probabilities(mean, variance)
	for i := range 2 {
		var sum float64
		for k := range 3 {
			sum += p.At(i, k)
		}
		labtest.Near(t, "sum of the probabilities", sum, 1, 1e-12)
	}
}
