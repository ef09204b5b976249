package lab_test

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/lab/labtest"
	"edge/model"
	"edge/test/golden"
)

// The derivatives of a robust factor are those of log((1−ε) p + ε/C).
func TestRobustFactorsAreDifferences(t *testing.T) {
	const eps, nodes = 0.05, 200
	d := &lab.Data{D: 1, C: 3, X: []float64{0}, Y: []int{1}}
	mean, variance := []float64{0.8, -0.3, 0.1}, []float64{0.5, 1.5, 0.7}
	q := labtest.Table([][]float64{{0.2, 0.3, 0.1}})
	at := func(mean, variance []float64) *lab.ClassFactors {
		f := lab.NewClassFactors(d, lab.NewJoint(nodes), eps)
		f.Update(d.Y, mat.NewDense(1, 3, mean), mat.NewDense(1, 3, variance), q, lab.NewTable(d), lab.NewTable(d))
		return f
	}
	f := at(mean, variance)
	logP := model.NewWin(nodes).LogProb(mean, []float64{0.7, 1.8, 0.8}, 1, nil, nil)
	labtest.Near(t, "log Z", f.LogZ[0], math.Log((1-eps)*math.Exp(logP)+eps/3), 1e-12)
	golden.Close(t, "G", f.G.RawRowView(0), labtest.Differences(mean, 1e-5, func(m []float64) float64 { return at(m, variance).LogZ[0] }), 1e-8)
	golden.Close(t, "T", f.T.RawRowView(0), labtest.Differences(variance, 1e-5, func(v []float64) float64 { return at(mean, v).LogZ[0] }), 1e-8)
	for k := range 3 { // h = G² − 2T is minus the second derivative
		second := labtest.Differences([]float64{mean[k]}, 1e-4, func(x []float64) float64 {
			moved := append([]float64(nil), mean...)
			moved[k] = x[0]
			return at(moved, variance).G.At(0, k)
		})
		labtest.Near(t, "h", f.G.At(0, k)*f.G.At(0, k)-2*f.T.At(0, k), -second[0], 1e-6)
	}
}

// The factor of the learner in 60 digits, with label noise and without.
func TestProductGolden(t *testing.T) {
	var ref struct {
		Rows []struct {
			Mean, V, Q []float64
			Y          int
			Eps        float64
			LogZ       float64 `json:"log_z"`
			G          []float64
			GB         []float64 `json:"gb"`
			C1, C2     []float64
		}
	}
	golden.Reference(t, "merged_site.json", &ref)
	for i, r := range ref.Rows {
		t.Run(fmt.Sprintf("row %d", i), func(t *testing.T) {
			c := len(r.Mean)
			d := &lab.Data{C: c, Y: []int{r.Y}}
			f := lab.NewClassFactors(d, new(lab.Product), r.Eps)
			f.Update(d.Y, mat.NewDense(1, c, r.Mean), mat.NewDense(1, c, r.V), mat.NewDense(1, c, r.Q), lab.NewTable(d), lab.NewTable(d))
			labtest.Near(t, "log Z", f.LogZ[0], r.LogZ, 1e-8*(1+math.Abs(r.LogZ)))
			golden.Close(t, "G", f.G.RawRowView(0), r.G, 1e-8)
			golden.Close(t, "T", f.T.RawRowView(0), r.GB, 1e-8)
			golden.Close(t, "s1", f.S1.RawRowView(0), r.C1, 1e-8)
			golden.Close(t, "s2", f.S2.RawRowView(0), r.C2, 1e-8)
		})
	}
}
