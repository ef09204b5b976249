package exact

import (
	"errors"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"edge/lab/labtest"
)

func TestLogOrthant(t *testing.T) {
	equal := func(n int, rho float64) *mat.SymDense {
		s := mat.NewSymDense(n, nil)
		for i := range n {
			for j := range i {
				s.SetSym(i, j, rho)
			}
			s.SetSym(i, i, 1)
		}
		return s
	}
	for name, c := range map[string]struct {
		cov  *mat.SymDense
		want float64
	}{
		"two, correlation 0.6":           {equal(2, 0.6), 0.25 + math.Asin(0.6)/(2*math.Pi)},
		"three, correlation −0.3":        {equal(3, -0.3), 0.125 + 3*math.Asin(-0.3)/(4*math.Pi)},
		"eight, correlation one half":    {equal(8, 0.5), 1.0 / 9}, // the probability of being the largest of nine
		"independent, in five dimension": {equal(5, 0), 1.0 / 32},
	} {
		t.Run(name, func(t *testing.T) {
			got, se, err := LogOrthant(c.cov, 2000, 1)
			if err != nil {
				t.Fatal(err)
			}
			labtest.Near(t, "log probability", got, math.Log(c.want), 4*se+1e-9)
			if se > 1e-3 {
				t.Errorf("standard error %g, want at most 1e-3", se)
			}
		})
	}
	if _, _, err := LogOrthant(equal(3, -0.9), 10, 1); !errors.Is(err, ErrCovariance) {
		t.Errorf("error %v of an indefinite covariance", err)
	}
}

// The exact log evidence of the twelve points, given as −12.0635 ± 0.001.
func TestTwelvePoints(t *testing.T) {
	d, p := labtest.Twelve()
	got, se, err := LogOrthant(labtest.PairCovariance(d, p), 10000, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("log evidence %.5f ± %.5f", got, se)
	labtest.Near(t, "log evidence", got, -12.0635, 1e-3+3*se)
}
