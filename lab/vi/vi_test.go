package vi

import (
	"fmt"
	"testing"

	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/lab/labtest"
	"edge/model"
	"edge/test/golden"
)

// optimum returns the best q for the parameters, by natural gradients.
func optimum(t *testing.T, d *lab.Data, p model.Params, eps float64, nodes int) (*VI, *Sites) {
	t.Helper()
	v, err := New(d, p, eps, nodes)
	s := NewSites(d)
	if err == nil {
		err = v.RunNatural(s, 5000, 0.2, 1e-14)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v, s
}

func TestGolden(t *testing.T) {
	var ref struct {
		labtest.Problem
		Cases []struct {
			Kernel     string
			Parameters labtest.Parameters
			Eps        float64
			At         struct {
				M        [][]float64   `json:"m"`
				R        [][][]float64 `json:"R"`
				Expected []float64
				KL       float64       `json:"kl"`
				ELBO     float64       `json:"elbo"`
				DM       [][]float64   `json:"d_m"`
				DR       [][][]float64 `json:"d_R"`
				Gradient labtest.Parameters
			}
			Optimum struct {
				ELBO     float64 `json:"elbo"`
				S1, S2   [][]float64
				Gradient labtest.Parameters
				labtest.Posterior
			}
		}
	}
	golden.Reference(t, "comparators/vi.json", &ref)
	for _, c := range ref.Cases {
		t.Run(fmt.Sprintf("%s, eps %g", c.Kernel, c.Eps), func(t *testing.T) {
			v, err := New(ref.Data(), c.Parameters.Params(), c.Eps, 40)
			if err != nil {
				t.Fatal(err)
			}
			for k, r := range c.At.R {
				v.R[k].Copy(labtest.Table(r))
				v.SetQ(k, c.At.M[k])
			}
			elbo, d := v.Bound()
			golden.Close(t, "E", v.expected, c.At.Expected, 1e-9)
			labtest.Near(t, "KL", v.KL(), c.At.KL, 1e-12)
			labtest.Near(t, "bound", elbo, c.At.ELBO, 1e-8)
			golden.Close(t, "derivative in m", d.M.RawMatrix().Data, golden.Flat(c.At.DM), 1e-9)
			for k := range d.R {
				golden.Close(t, "derivative in R", d.R[k].RawMatrix().Data, golden.Flat(c.At.DR[k]), 1e-9)
			}
			golden.Close(t, "gradient", d.Theta, c.At.Gradient.Theta(), 1e-8)

			v, s := optimum(t, ref.Data(), c.Parameters.Params(), c.Eps, 100)
			elbo, d = v.Bound()
			labtest.Near(t, "bound at the optimum", elbo, c.Optimum.ELBO, 1e-8)
			golden.Close(t, "s1", s.S1.RawMatrix().Data, golden.Flat(c.Optimum.S1), 1e-6)
			golden.Close(t, "s2", s.S2.RawMatrix().Data, golden.Flat(c.Optimum.S2), 1e-6)
			c.Optimum.Check(t, v.Sparse, ref.XNew, 1e-6)
			golden.Close(t, "gradient at the optimum", d.Theta, c.Optimum.Gradient.Theta(), 1e-6)
		})
	}
}

func TestDerivativesAreDifferences(t *testing.T) {
	d, shared := labtest.Twelve()
	for name, p := range map[string]model.Params{"shared": shared, "per class": labtest.PerClass(shared, d.C)} {
		t.Run(name, func(t *testing.T) {
			v, _ := optimum(t, d, p, 0.01, 80)
			x := v.Vector()
			for i := range x[:len(x)-len(p.Theta)] { // away from the optimum of q
				x[i] += 0.05 * float64(i%5-2)
			}
			value := func(x []float64) (float64, []float64) {
				bound, err := v.SetVector(x)
				if err != nil {
					t.Fatal(err)
				}
				return bound()
			}
			_, got := value(x)
			want := labtest.Differences(x, 1e-5, func(x []float64) float64 { elbo, _ := value(x); return elbo })
			golden.Close(t, "derivatives", got, want, 1e-6)
		})
	}
}

// The fixed point of the natural gradient is an optimum of the bound, which L-BFGS over q
// with the parameters held finds as well.
func TestNaturalGradientEndsAtTheOptimum(t *testing.T) {
	d, p := labtest.Twelve()
	v, _ := optimum(t, d, p, 0.01, 80)
	elbo, at := v.Bound()
	if most := at.Largest(); !(most < 1e-10) {
		t.Errorf("the largest derivative in q is %g, want 0", most)
	}
	w, err := New(d, p, 0.01, 80)
	if err != nil {
		t.Fatal(err)
	}
	free := len(w.Vector()) - len(p.Theta)
	best, err := lab.LBFGS(w.Vector(), 2000, func(x []float64) (float64, []float64, error) {
		bound, err := w.SetVector(x)
		if err != nil {
			return 0, nil, err
		}
		elbo, grad := bound()
		clear(grad[free:])
		return elbo, grad, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.SetVector(best); err != nil {
		t.Fatal(err)
	}
	batch, _ := w.Bound()
	labtest.Near(t, "bound of L-BFGS", batch, elbo, 1e-6)
	golden.Close(t, "m of L-BFGS", w.M.RawMatrix().Data, v.M.RawMatrix().Data, 1e-3)
}

func TestMinibatchesAverageToTheWhole(t *testing.T) {
	d, p := labtest.Twelve()
	whole, _ := optimum(t, d, p, 0.01, 40)
	x := whole.Vector()
	x[0] += 0.3
	at := func(data *lab.Data, weight float64) []float64 {
		v, err := New(data, p, 0.01, 40)
		if err != nil {
			t.Fatal(err)
		}
		v.setRows(data, weight)
		bound, err := v.SetVector(x)
		if err != nil {
			t.Fatal(err)
		}
		elbo, grad := bound()
		return append(grad, elbo)
	}
	want := at(d, 1)
	got := make([]float64, len(want))
	for b := range 3 {
		for i, v := range at(d.Rows([]int{b, b + 3, b + 6, b + 9}), 3) {
			got[i] += v / 3
		}
	}
	golden.Close(t, "mean of three minibatches", got, want, 1e-12)
}

// Each training ends with a better bound than the best one of the first parameters.
func TestTrainingImprovesTheBound(t *testing.T) {
	d, p := labtest.Twelve()
	problem := &lab.Problem{Data: d, Start: p, Updates: 60, Seed: 1}
	start, _ := optimum(t, d, p, eps, lab.TrainNodes)
	before, _ := start.Bound()
	for name, method := range map[string]lab.Method{"batch": Batch, "stochastic": Stochastic(100, 0.01), "natural": Natural} {
		c, err := method(t.Context(), problem)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		v := c.(*VI)
		elbo, _ := v.Bound()
		t.Logf("%s: bound %.3f, at the first parameters %.3f", name, elbo, before)
		if elbo < before {
			t.Errorf("%s: bound %g, below that of the first parameters, %g", name, elbo, before)
		}
		probs, err := c.Predict(d.X)
		if err != nil {
			t.Fatal(err)
		}
		if r, _ := probs.Dims(); r != d.N() || mat.Min(probs) < eps/4 {
			t.Errorf("%s: %d rows with the least probability %g", name, r, mat.Min(probs))
		}
	}
}
