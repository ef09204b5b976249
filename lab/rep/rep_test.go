package rep

import (
	"fmt"
	"testing"

	"edge/lab"
	"edge/lab/labtest"
	"edge/model"
	"edge/test/golden"
)

const nodes = 50 // exact to 1e-10 on these problems

func converged(t *testing.T, d *lab.Data, p model.Params, jitter, eps float64, nodes int) *REP {
	t.Helper()
	r, err := New(d, p, jitter, lab.NewJoint(nodes), eps)
	return labtest.Converged(t, r, err, 3000, 0.7, 1e-13)
}

func TestGolden(t *testing.T) {
	var ref struct {
		labtest.Problem
		Cases []struct {
			Kernel     string
			Parameters labtest.Parameters
			Eps        float64
			S1, S2     [][]float64
			LogZ       []float64 `json:"log_z"`
			LogZq      float64   `json:"log_zq"`
			Gradient   labtest.Parameters
			labtest.Posterior
		}
	}
	golden.Reference(t, "comparators/rep.json", &ref)
	for _, c := range ref.Cases {
		t.Run(fmt.Sprintf("%s, eps %g", c.Kernel, c.Eps), func(t *testing.T) {
			r := converged(t, ref.Data(), c.Parameters.Params(), lab.Jitter, c.Eps, 40)
			golden.Close(t, "s1", r.S1.RawMatrix().Data, golden.Flat(c.S1), 1e-8)
			golden.Close(t, "s2", r.S2.RawMatrix().Data, golden.Flat(c.S2), 1e-8)
			labtest.Near(t, "log evidence", r.LogZ(), c.LogZq, 1e-8)
			golden.Close(t, "log Z", r.Factors.LogZ, c.LogZ, 1e-8)
			c.Posterior.Check(t, r.Sparse, ref.XNew, 1e-8)
			golden.Close(t, "gradient", r.Gradient(), c.Gradient.Theta(), 1e-7)
		})
	}
}

func TestGradientsAreDifferences(t *testing.T) {
	d, shared := labtest.Twelve()
	for name, p := range map[string]model.Params{"shared": shared, "per class": labtest.PerClass(shared, d.C)} {
		for _, eps := range []float64{0, 0.05} {
			t.Run(fmt.Sprintf("%s, eps %g", name, eps), func(t *testing.T) {
				r := converged(t, d, p, lab.Jitter, eps, nodes)
				got := r.Gradient()
				want := labtest.Differences(p.Theta, 1e-5, func(theta []float64) float64 {
					err := r.SetParams(model.Params{M: p.M, D: p.D, Theta: theta})
					if err == nil {
						err = r.Run(1000, 0.7, 1e-12)
					}
					if err != nil {
						t.Fatal(err)
					}
					return r.LogZ()
				})
				golden.Close(t, "gradient at the fixed point", got, want, 1e-6)
				if r.Factors.Clipped != 0 {
					t.Errorf("%d sites are clipped, want none", r.Factors.Clipped)
				}

				early, err := New(d, p, lab.Jitter, lab.NewJoint(nodes), eps)
				if err == nil {
					err = early.Run(3, 0.5, 0)
				}
				if err != nil {
					t.Fatal(err)
				}
				got = early.exactGradient()
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
}

// Figures of the twelve points with the rows as inducing points, where the exact log
// evidence is −12.0635.
func TestTwelvePoints(t *testing.T) {
	d, p := labtest.Twelve()
	r := converged(t, d, lab.AtRows(d, p), 1e-9, 0, nodes)
	labtest.Near(t, "log evidence", r.LogZ(), -12.942, 5e-4)
}

// The sites of the learner, from the product of pairs, at their fixed point in arbitrary
// precision, with label noise and without.
func TestMergedGolden(t *testing.T) {
	var ref struct {
		Cases []struct {
			Eps      float64
			C        int
			Z        [][]float64
			LogEll   []float64 `json:"log_ell"`
			LogAmp   float64   `json:"log_amp"`
			LogNoise float64   `json:"log_noise"`
			X        [][]float64
			Y        []int
			S1, S2   [][]float64
			M        [][]float64
			LogZq    float64 `json:"log_zq"`
		}
	}
	golden.Reference(t, "ep_fixed_point.json", &ref)
	for _, c := range ref.Cases {
		t.Run(fmt.Sprintf("C = %d, eps %g", c.C, c.Eps), func(t *testing.T) {
			p := labtest.Parameters{Z: [][][]float64{c.Z}, LogEll: [][]float64{c.LogEll}, LogAmp: []float64{c.LogAmp}, LogNoise: []float64{c.LogNoise}}
			d := &lab.Data{D: len(c.X[0]), C: c.C, X: golden.Flat(c.X), Y: c.Y}
			r, err := New(d, p.Params(), lab.Jitter, new(lab.Product), c.Eps)
			if err == nil {
				err = r.Run(1000, 0.7, 1e-14)
			}
			if err != nil {
				t.Fatal(err)
			}
			golden.Close(t, "s1", r.S1.RawMatrix().Data, golden.Flat(c.S1), 1e-7)
			golden.Close(t, "s2", r.S2.RawMatrix().Data, golden.Flat(c.S2), 1e-7)
			golden.Close(t, "m", r.M.RawMatrix().Data, golden.Flat(c.M), 1e-7)
			labtest.Near(t, "log evidence", r.LogZ(), c.LogZq, 1e-9)
		})
	}
}

// exactGradient is the total derivative of LogZ with the sites held fixed, right before
// convergence as well.
func (r *REP) exactGradient() []float64 {
	r.match()
	f, dMean, dVar := r.Factors, lab.NewTable(r.Data), lab.NewTable(r.Data)
	for i := range r.Y {
		for k := range r.C {
			_, gd, td := lab.Normaliser(r.S1.At(i, k), r.S2.At(i, k), f.A.At(i, k), f.V.At(i, k))
			da, dt, e := f.G.At(i, k)-gd, f.T.At(i, k)-td, f.E.At(i, k)
			dMean.Set(i, k, da/e)
			dVar.Set(i, k, (da*(r.S1.At(i, k)*r.Mean.At(i, k)-r.S2.At(i, k))+dt)/(e*e))
		}
	}
	return r.Sparse.Gradient(lab.Features{W: r.ThroughPosterior(r.S1, r.S2, dMean, dVar), Q: f.T})
}
