package tied

import (
	"testing"

	"edge/lab"
	"edge/lab/labtest"
	"edge/model"
	"edge/test/golden"
)

const nodes = 80

func converged(t *testing.T, d *lab.Data, p model.Params, kind Kind, eps float64) *SEP {
	t.Helper()
	s, err := New(d, p, kind, eps, nodes)
	return labtest.Converged(t, s, err, 3000, 0.5, 1e-14)
}

func TestGolden(t *testing.T) {
	var ref struct {
		labtest.Problem
		Cases []struct {
			Kind, Count string
			Parameters  labtest.Parameters
			Factors     []float64
			Eps         float64
			A           [][][]float64 `json:"A"`
			B           [][]float64   `json:"b"`
			LogZq       float64       `json:"log_zq"`
			Gradient    labtest.Parameters
			labtest.Posterior
		}
	}
	golden.Reference(t, "comparators/sep.json", &ref)
	kinds := map[string]Kind{"total": Total, "touch": Touched, "-": Robust}
	for _, c := range ref.Cases {
		t.Run(c.Kind+" "+c.Count, func(t *testing.T) {
			s := converged(t, ref.Data(), c.Parameters.Params(), kinds[c.Count], c.Eps)
			golden.Close(t, "number of factors", s.Count, c.Factors, 0)
			logZ, grad, err := s.LogZ()
			if err != nil {
				t.Fatal(err)
			}
			labtest.Near(t, "log evidence", logZ, c.LogZq, 1e-7)
			golden.Close(t, "gradient", grad, c.Gradient.Theta(), 1e-7)
			for k := range c.A {
				for i := range s.Params.M { // the lower triangle is kept
					golden.Close(t, "A", s.A[k].RawRowView(i)[:i+1], c.A[k][i][:i+1], 1e-6)
				}
				golden.Close(t, "b", s.B[k].RawVector().Data, c.B[k], 1e-7)
			}
			c.Posterior.Check(t, s.Sparse, ref.XNew, 1e-7)
		})
	}
}

// The derivative of the evidence with A and b held fixed, before convergence.
func TestGradientIsDifferences(t *testing.T) {
	d, shared := labtest.Twelve()
	for name, p := range map[string]model.Params{"shared": shared, "per class": labtest.PerClass(shared, d.C)} {
		for _, kind := range []Kind{Total, Touched, Merged, Robust} {
			t.Run(name+" "+string(kind), func(t *testing.T) {
				s, err := New(d, p, kind, 0.05, nodes)
				if err == nil {
					err = s.Run(4, 0.5, 0)
				}
				if err != nil {
					t.Fatal(err)
				}
				_, got, err := s.LogZ()
				if err != nil {
					t.Fatal(err)
				}
				want := labtest.Differences(p.Theta, 1e-5, func(theta []float64) float64 {
					if err := s.SetParams(model.Params{M: p.M, D: p.D, Theta: theta}); err != nil {
						t.Fatal(err)
					}
					logZ, _, err := s.LogZ()
					if err != nil {
						t.Fatal(err)
					}
					return logZ
				})
				golden.Close(t, "gradient", got, want, 1e-6)
			})
		}
	}
}
