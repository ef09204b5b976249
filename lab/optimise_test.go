package lab_test

import (
	"errors"
	"math"
	"testing"

	"edge/lab"
	"edge/test/golden"
)

// hill is a concave function with its maximum at (1, 1, …).
func hill(x []float64) (float64, []float64, error) {
	var sum float64
	grad := make([]float64, len(x))
	for i, v := range x {
		scale := math.Pow(3, float64(i))
		sum -= scale * math.Cosh(v-1)
		grad[i] = -scale * math.Sinh(v-1)
	}
	return sum, grad, nil
}

func TestLBFGSFindsTheMaximum(t *testing.T) {
	at, err := lab.LBFGS([]float64{0, 3, -1, 2}, 200, hill)
	if err != nil {
		t.Fatal(err)
	}
	golden.Close(t, "maximum", at, []float64{1, 1, 1, 1}, 1e-5)
}

func TestLBFGSPassesOverErrors(t *testing.T) {
	at, err := lab.LBFGS([]float64{0.5}, 100, func(x []float64) (float64, []float64, error) {
		if x[0] > 1.2 {
			return 0, nil, errors.New("not defined")
		}
		return hill(x)
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.Close(t, "maximum", at, []float64{1}, 1e-3)
	if _, err := lab.LBFGS([]float64{2}, 100, func([]float64) (float64, []float64, error) { return 0, nil, errors.New("not defined") }); err == nil {
		t.Error("no error of a function without a value at the first point")
	}
}

func TestAscentFindsTheMaximum(t *testing.T) {
	for name, rule := range map[string]interface{ Ascend(theta, grad []float64) }{"sign rule": &lab.SignRule{}, "Adam": &lab.Adam{Rate: 0.05}} {
		x := []float64{0, 3}
		for range 1000 {
			_, g, _ := hill(x)
			rule.Ascend(x, g)
		}
		t.Run(name, func(t *testing.T) { golden.Close(t, "maximum", x, []float64{1, 1}, 1e-2) })
	}
}
