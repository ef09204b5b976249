package sep_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"edge/model"
	"edge/model/dense"
	"edge/online/sep"
	"edge/test/golden"
	"edge/test/offlineep"
)

func TestFixedPointGolden(t *testing.T) {
	var ref struct {
		Cases []struct {
			C                int
			Eps              float64
			Z, X             [][]float64
			LogEll           []float64 `json:"log_ell"`
			LogAmp           float64   `json:"log_amp"`
			LogNoise         float64   `json:"log_noise"`
			Y                []int
			S1, S2           [][]float64
			V                [][][]float64
			Mean             [][]float64 `json:"m"`
			LogZq            float64     `json:"log_zq"`
			GradFixed, Total struct {
				Z        [][]float64
				LogEll   []float64 `json:"log_ell"`
				LogAmp   float64   `json:"log_amp"`
				LogNoise float64   `json:"log_noise"`
			}
			Gradient struct {
				Z        [][]float64
				LogEll   []float64 `json:"log_ell"`
				LogAmp   float64   `json:"log_amp"`
				LogNoise float64   `json:"log_noise"`
			} `json:"gradient_fixed_cavity"`
		}
	}
	golden.Reference(t, "ep_fixed_point.json", &ref)
	if len(ref.Cases) == 0 {
		t.Error("no cases")
	}
	for _, r := range ref.Cases {
		p := model.NewParams(len(r.Z), len(r.LogEll))
		copy(p.Z(), golden.Flat(r.Z))
		copy(p.LogEll(), r.LogEll)
		*p.LogAmp(), *p.LogNoise() = r.LogAmp, r.LogNoise
		e := offlineep.New(t, p, golden.Flat(r.X), r.Y, r.C, r.Eps)
		e.Converge(t)
		golden.Close(t, "s1", e.S1, golden.Flat(r.S1), 1e-7)
		golden.Close(t, "s2", e.S2, golden.Flat(r.S2), 1e-7)
		golden.Close(t, "m", e.Posterior.Mean, golden.Flat(r.Mean), 1e-7)
		m := p.M
		for k := range r.V {
			v := make([]float64, m*m)
			lower := make([]float64, m*m)
			for i := range m {
				copy(lower[i*m:i*m+i+1], e.Posterior.U[(k*m+i)*m:(k*m+i)*m+i+1])
			}
			dense.Gemm(true, false, m, m, m, 1, lower, m, lower, m, 0, v, m)
			golden.Close(t, "V", v, golden.Flat(r.V[k]), 1e-7)
		}
		want := append(golden.Flat(r.Gradient.Z), r.Gradient.LogEll...)
		want = append(want, r.Gradient.LogAmp, r.Gradient.LogNoise)
		golden.Close(t, "gradient", e.Gradient(t), want, 1e-6)
		golden.Close(t, "log Z_q", []float64{e.LogZq(t)}, []float64{r.LogZq}, 1e-9/math.Abs(r.LogZq))
	}
}

// A converged site is a fixed point: one more sweep does not move it.
func TestConvergedSiteIsAFixedPoint(t *testing.T) {
	e := offlineep.Random(t, 12, 5, 3, 4, 0, 3)
	e.Converge(t)
	if _, change := e.Sweep(t, nil); change > 1e-12 {
		t.Errorf("a sweep after convergence moved a site by %g", change)
	}
}

// With an inducing point at every training input the sparse posterior is the
// full Gaussian process's: the oracle runs the same sites in function space
// with explicit matrices.
func TestInducingAtInputsIsTheFullProcess(t *testing.T) {
	const n, d, c = 10, 2, 3
	e := offlineep.Random(t, n, n, d, c, 0, 11)
	copy(e.Params.Z(), e.X)
	e = offlineep.New(t, e.Params, e.X, e.Y, c, 0)
	e.Converge(t)

	k := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			var s float64
			for f := range d {
				diff := (e.X[i*d+f] - e.X[j*d+f]) * math.Exp(-e.Params.LogEll()[f])
				s += diff * diff
			}
			k.SetSym(i, j, math.Exp(*e.Params.LogAmp()-0.5*s))
		}
	}
	noise := math.Exp(*e.Params.LogNoise())
	s1, s2 := mat.NewDense(n, c, nil), mat.NewDense(n, c, nil)
	mean, variance := mat.NewDense(n, c, nil), mat.NewDense(n, c, nil)
	for range 300 {
		for cl := range c { // Σ = (K⁻¹ + S)⁻¹ = K − K(K + S⁻¹)⁻¹K, as K·(I + S·K)⁻¹
			var isk, inv, cov mat.Dense
			isk.Apply(func(i, j int, v float64) float64 {
				v *= s1.At(i, cl)
				if i == j {
					v++
				}
				return v
			}, k)
			if err := inv.Inverse(&isk); err != nil {
				t.Fatal(err)
			}
			cov.Mul(k, &inv)
			for i := range n {
				var mu float64
				for j := range n {
					mu += cov.At(i, j) * s2.At(j, cl)
				}
				mean.Set(i, cl, mu)
				variance.Set(i, cl, cov.At(i, i))
			}
		}
		for i, y := range e.Y {
			var st sep.Site
			st.Resize(c)
			for cl := range c {
				v := variance.At(i, cl)
				cut := 1 - s1.At(i, cl)*v
				st.A[cl], st.V[cl] = (mean.At(i, cl)-v*s2.At(i, cl))/cut, v/cut
				st.T[cl] = st.V[cl] + noise
			}
			st.Update(y, 0, 1)
			s1.SetRow(i, st.S1)
			s2.SetRow(i, st.S2)
		}
	}
	for i := range n {
		for cl := range c {
			m, v := e.Marginal(i, cl)
			if math.Abs(m-mean.At(i, cl)) > 2e-5 || math.Abs(v-variance.At(i, cl)) > 2e-5 {
				t.Errorf("point %d class %d: N(%.7f, %.7f), full process N(%.7f, %.7f)", i, cl, m, v, mean.At(i, cl), variance.At(i, cl))
			}
		}
	}
}
