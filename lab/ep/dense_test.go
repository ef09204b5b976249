package ep

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/lab/labtest"
	"edge/test/golden"
)

// With the rows as inducing points, EP equals EP on the N×N covariance of f, written here
// without whitening and without sharing a line with the package.
func TestInducingPointsAtTheRowsAreTheFullProcess(t *testing.T) {
	d, p := labtest.Twelve()
	e := converged(t, d, lab.AtRows(d, p), 1e-9)
	n := d.N()
	k := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			var s float64
			for c, l := range p.LogEll() {
				s += math.Pow((d.Row(i)[c]-d.Row(j)[c])/math.Exp(l), 2)
			}
			k.SetSym(i, j, math.Exp(*p.LogAmp()-0.5*s))
		}
	}
	noise := math.Exp(*p.LogNoise())
	s1y, s2y, s1k, s2k := lab.NewTable(d), lab.NewTable(d), lab.NewTable(d), lab.NewTable(d)
	mean, variance := lab.NewTable(d), lab.NewTable(d)
	for range 400 {
		for c := range d.C {
			s, b := mat.NewDense(n, n, nil), mat.NewVecDense(n, nil) // I + K diag(s1), and K s2
			total1, total2 := mat.NewDiagDense(n, nil), mat.NewVecDense(n, nil)
			for i, y := range d.Y {
				a, l := s1k.At(i, c), s2k.At(i, c)
				if c == y {
					a, l = mat.Sum(s1y.RowView(i)), mat.Sum(s2y.RowView(i))
				}
				total1.SetDiag(i, a)
				total2.SetVec(i, l)
			}
			s.Mul(k, total1)
			for i := range n {
				s.Set(i, i, s.At(i, i)+1)
			}
			var sigma mat.Dense
			if err := sigma.Solve(s, k); err != nil {
				t.Fatal(err)
			}
			b.MulVec(&sigma, total2)
			for i := range n {
				mean.Set(i, c, b.AtVec(i))
				variance.Set(i, c, sigma.At(i, i))
			}
		}
		for i, y := range d.Y {
			for c := range d.C {
				if c == y {
					continue
				}
				remove := func(s1, s2, m, v float64) (float64, float64) { v2 := 1 / (1/v - s1); return v2 * (m/v - s2), v2 }
				ay, vy := remove(s1y.At(i, c), s2y.At(i, c), mean.At(i, y), variance.At(i, y))
				ak, vk := remove(s1k.At(i, c), s2k.At(i, c), mean.At(i, c), variance.At(i, c))
				b := vy + vk + 2*noise
				alpha := (ay - ak) / math.Sqrt(b)
				beta := math.Exp(-0.5*alpha*alpha) / math.Sqrt(2*math.Pi) / (0.5 * math.Erfc(-alpha/math.Sqrt2))
				// Moments of the tilted distribution, then the site as their ratio to the cavity.
				tilt := func(a, v, sign float64) (float64, float64) {
					m := a + sign*v*beta/math.Sqrt(b)
					w := v - v*v*beta*(alpha+beta)/b
					return 1/w - 1/v, m/w - a/v
				}
				blend := func(at *mat.Dense, v float64) { at.Set(i, c, 0.3*at.At(i, c)+0.7*v) }
				y1, y2 := tilt(ay, vy, 1)
				k1, k2 := tilt(ak, vk, -1)
				blend(s1y, y1)
				blend(s2y, y2)
				blend(s1k, k1)
				blend(s2k, k2)
			}
		}
	}
	golden.Close(t, "mean", e.Mean.RawMatrix().Data, mean.RawMatrix().Data, 1e-8)
	golden.Close(t, "variance", e.Var.RawMatrix().Data, variance.RawMatrix().Data, 1e-8)
	labtest.Near(t, "log evidence of the twelve points", e.LogZ(), -13.385, 5e-4)
}
