package lab_test

import (
	"testing"

	"edge/lab"
	"edge/lab/ep"
	"edge/lab/gfitc"
	"edge/lab/labtest"
	"edge/lab/rep"
	"edge/model"
	"edge/test/golden"
)

// method is the interface that the approximations by sites share.
type method interface {
	Run(sweeps int, rho, tolerance float64) error
	LogZ() float64
	Gradient() []float64
}

// With two classes there is one pair: EP, GFITC and REP without label noise are the same
// approximation, and that of a fixed point in arbitrary precision.
func TestTwoClasses(t *testing.T) {
	type flat struct {
		Z        [][]float64
		LogEll   []float64 `json:"log_ell"`
		LogAmp   float64   `json:"log_amp"`
		LogNoise float64   `json:"log_noise"`
	}
	var ref struct {
		Cases []struct {
			C int
			flat
			X     [][]float64
			Y     []int
			V     [][][]float64
			M     [][]float64
			LogZq float64 `json:"log_zq"`
			Total flat    `json:"gradient_total"`
		}
	}
	golden.Reference(t, "ep_fixed_point.json", &ref)
	c := ref.Cases[0]
	group := func(f *flat) *labtest.Parameters {
		return &labtest.Parameters{Z: [][][]float64{f.Z}, LogEll: [][]float64{f.LogEll}, LogAmp: []float64{f.LogAmp}, LogNoise: []float64{f.LogNoise}}
	}
	d := &lab.Data{D: len(c.X[0]), C: c.C, X: golden.Flat(c.X), Y: c.Y}
	for name, m := range methods(t, d, group(&c.flat).Params()) {
		t.Run(name, func(t *testing.T) {
			labtest.Near(t, "log evidence", m.LogZ(), c.LogZq, 1e-12)
			for k := range c.V {
				golden.Close(t, "V", m.V[k].RawMatrix().Data, golden.Flat(c.V[k]), 1e-12)
			}
			golden.Close(t, "m", m.M.RawMatrix().Data, golden.Flat(c.M), 1e-12)
			golden.Close(t, "gradient", m.Gradient(), group(&c.Total).Theta(), 1e-11)
		})
	}
}

// The same without the reference: the twelve points, class 0 against the others.
func TestTwoClassesAgree(t *testing.T) {
	d, p := labtest.Twelve()
	two := &lab.Data{D: d.D, C: 2, X: d.X}
	for _, y := range d.Y {
		two.Y = append(two.Y, min(y, 1))
	}
	all := methods(t, two, p)
	want := all["EP"]
	for name, m := range all {
		t.Run(name, func(t *testing.T) {
			labtest.Near(t, "log evidence", m.LogZ(), want.LogZ(), 1e-12)
			golden.Close(t, "m", m.M.RawMatrix().Data, want.M.RawMatrix().Data, 1e-11)
			golden.Close(t, "gradient", m.Gradient(), want.Gradient(), 1e-10)
		})
	}
}

// fitted is a fixed point and its posterior.
type fitted struct {
	method
	*lab.Sparse
}

// Gradient is the method's.
func (f fitted) Gradient() []float64 { return f.method.Gradient() }

// methods returns fixed points of the three.
func methods(t *testing.T, d *lab.Data, p model.Params) map[string]fitted {
	t.Helper()
	const nodes = 200 // of the quadrature: exact to rounding
	e, err1 := ep.New(d, p, lab.Jitter)
	g, err2 := gfitc.New(d, p, lab.Jitter)
	r, err3 := rep.New(d, p, lab.Jitter, lab.NewJoint(nodes), 0)
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			t.Fatal(err)
		}
	}
	all := map[string]fitted{"EP": {e, e.Sparse}, "GFITC": {g, g.Sparse}, "REP(0)": {r, r.Sparse}}
	for name, m := range all {
		if err := m.Run(1000, 0.7, 1e-15); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return all
}
