package ep

import (
	"testing"

	"edge/lab"
	"edge/lab/labtest"
	"edge/model"
	"edge/test/golden"
)

// converged returns a fixed point.
func converged(t *testing.T, d *lab.Data, p model.Params, jitter float64) *EP {
	t.Helper()
	e, err := New(d, p, jitter)
	return labtest.Converged(t, e, err, 3000, 0.7, 1e-15)
}

func TestGolden(t *testing.T) {
	var ref struct {
		labtest.Problem
		Cases []struct {
			Kernel     string
			Parameters labtest.Parameters
			Sites      labtest.PairSites
			LogZq      float64 `json:"log_zq"`
			Gradient   labtest.Parameters
			labtest.Posterior
			Inner struct {
				Sweeps      int
				Damping     float64
				Sites       labtest.PairSites
				LogZq       float64            `json:"log_zq"`
				Exact       labtest.Parameters `json:"gradient_exact"`
				Approximate labtest.Parameters `json:"gradient_approximate"`
			}
		}
	}
	golden.Reference(t, "comparators/ep_pair.json", &ref)
	for _, c := range ref.Cases {
		t.Run(c.Kernel, func(t *testing.T) {
			e := converged(t, ref.Data(), c.Parameters.Params(), lab.Jitter)
			c.Sites.Check(t, &e.Sites, 1e-8)
			labtest.Near(t, "log evidence", e.LogZ(), c.LogZq, 1e-9)
			c.Posterior.Check(t, e.Sparse, ref.XNew, 1e-8)
			golden.Close(t, "gradient", e.Gradient(), c.Gradient.Theta(), 1e-7)
			golden.Close(t, "exact gradient", e.ExactGradient(), c.Gradient.Theta(), 1e-7)

			in, err := New(ref.Data(), c.Parameters.Params(), lab.Jitter)
			if err == nil {
				err = in.Run(c.Inner.Sweeps, c.Inner.Damping, 0)
			}
			if err != nil {
				t.Fatal(err)
			}
			c.Inner.Sites.Check(t, &in.Sites, 1e-10)
			labtest.Near(t, "log evidence before convergence", in.LogZ(), c.Inner.LogZq, 1e-9)
			golden.Close(t, "gradient before convergence", in.Gradient(), c.Inner.Approximate.Theta(), 1e-10)
			golden.Close(t, "exact gradient before convergence", in.ExactGradient(), c.Inner.Exact.Theta(), 1e-10)
		})
	}
}

func TestGradientsAreDifferences(t *testing.T) {
	d, shared := labtest.Twelve()
	for name, p := range map[string]model.Params{"shared": shared, "per class": labtest.PerClass(shared, d.C)} {
		t.Run(name, func(t *testing.T) {
			e := converged(t, d, p, lab.Jitter)
			want := labtest.Differences(p.Theta, 1e-5, func(theta []float64) float64 {
				return converged(t, d, model.Params{M: p.M, D: p.D, Theta: theta}, lab.Jitter).LogZ()
			})
			golden.Close(t, "gradient at the fixed point", e.Gradient(), want, 1e-6)
			golden.Close(t, "exact gradient at the fixed point", e.ExactGradient(), want, 1e-6)

			early, err := New(d, p, lab.Jitter)
			if err == nil {
				err = early.Run(3, 0.5, 0)
			}
			if err != nil {
				t.Fatal(err)
			}
			got := early.ExactGradient()
			want = labtest.Differences(p.Theta, 1e-5, func(theta []float64) float64 {
				if err := early.SetParams(model.Params{M: p.M, D: p.D, Theta: theta}); err != nil {
					t.Fatal(err)
				}
				return early.LogZ()
			})
			golden.Close(t, "exact gradient after three sweeps", got, want, 1e-6)
		})
	}
}
