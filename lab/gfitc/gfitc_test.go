package gfitc

import (
	"testing"

	"edge/lab"
	"edge/lab/labtest"
	"edge/model"
	"edge/test/golden"
)

func converged(t *testing.T, d *lab.Data, p model.Params, jitter float64) *GFITC {
	t.Helper()
	g, err := New(d, p, jitter)
	return labtest.Converged(t, g, err, 5000, 0.7, 1e-15)
}

func TestGolden(t *testing.T) {
	var ref struct {
		labtest.Problem
		Cases []struct {
			Kernel     string
			Parameters labtest.Parameters
			Jitter     float64
			Sites      labtest.PairSites
			FMean      [][]float64 `json:"f_mean"`
			FVar       [][]float64 `json:"f_var"`
			LogZq      float64     `json:"log_zq"`
			Gradient   *labtest.Parameters
			labtest.Posterior
		}
	}
	golden.Reference(t, "comparators/gfitc.json", &ref)
	for _, c := range ref.Cases {
		t.Run(c.Kernel, func(t *testing.T) {
			rel := 1e-7
			if c.Jitter < lab.Jitter {
				rel = 1e-5 // the rows are the inducing points: ill-conditioned
			}
			g := converged(t, ref.Data(), c.Parameters.Params(), c.Jitter)
			c.Sites.Check(t, &g.Sites, rel)
			golden.Close(t, "mean of f~", g.FMean.RawMatrix().Data, golden.Flat(c.FMean), rel)
			golden.Close(t, "variance of f~", g.FVar.RawMatrix().Data, golden.Flat(c.FVar), rel)
			labtest.Near(t, "log evidence", g.LogZ(), c.LogZq, 10*rel)
			c.Posterior.Check(t, g.Sparse, ref.XNew, rel)
			if c.Gradient != nil {
				golden.Close(t, "gradient", g.Gradient(), c.Gradient.Theta(), rel)
			}
		})
	}
}

func TestGradientIsDifferences(t *testing.T) {
	d, shared := labtest.Twelve()
	for name, p := range map[string]model.Params{"shared": shared, "per class": labtest.PerClass(shared, d.C)} {
		t.Run(name, func(t *testing.T) {
			want := labtest.Differences(p.Theta, 1e-5, func(theta []float64) float64 {
				return converged(t, d, model.Params{M: p.M, D: p.D, Theta: theta}, lab.Jitter).LogZ()
			})
			golden.Close(t, "gradient", converged(t, d, p, lab.Jitter).Gradient(), want, 1e-6)
		})
	}
}

// The figure of the twelve points with the rows as inducing points, where the exact log
// evidence is −12.0635.
func TestTwelvePoints(t *testing.T) {
	d, p := labtest.Twelve()
	labtest.Near(t, "log evidence", converged(t, d, lab.AtRows(d, p), 1e-9).LogZ(), -12.957, 5e-4)
}
