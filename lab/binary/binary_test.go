package binary

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/lab/ep"
	"edge/lab/exact"
	"edge/lab/labtest"
	"edge/model"
	"edge/test/golden"
)

// approximations returns each approximation by name.
func approximations(t *testing.T, d *lab.Data, p model.Params, jitter float64, link Link) map[string]approximation {
	t.Helper()
	l, err1 := NewLaplace(d, p, jitter, link)
	e, err2 := NewEP(d, p, jitter, link)
	v, err3 := NewVI(d, p, jitter, link)
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			t.Fatal(err)
		}
	}
	all := map[string]approximation{"Laplace": l, "EP": e, "VI": v}
	for name, a := range all {
		if err := a.Run(2000, 1e-14); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return all
}

// goldenResult is a result of binary.json.
type goldenResult struct {
	Mode, W   []float64
	S1, S2    []float64
	Mean, Var []float64
	Evidence  float64 `json:"log_evidence"`
	Bound     float64
	Gradient  []float64
	MeanNew   []float64 `json:"mean_new"`
	VarNew    []float64 `json:"var_new"`
	PNew      []float64 `json:"p_new"`
}

func (g *goldenResult) check(t *testing.T, a approximation, b *process, x []float64) {
	t.Helper()
	const rel = 1e-8
	labtest.Near(t, "log evidence", a.LogZ(), g.Evidence+g.Bound, rel)
	grad := model.Params{M: b.Params.M, D: b.D, Theta: a.Gradient()}
	golden.Close(t, "gradient", append(append([]float64(nil), grad.LogEll()...), *grad.LogAmp()), g.Gradient, 1e-7)
	mean, variance := b.marginals(x)
	golden.Close(t, "mean of new rows", mean, g.MeanNew, rel)
	golden.Close(t, "variance of new rows", variance, g.VarNew, rel)
	p, err := a.Predict(x)
	if err != nil {
		t.Fatal(err)
	}
	golden.Close(t, "probabilities of new rows", mat.Col(nil, 1, p), g.PNew, rel)
}

// The golden vectors are of dense N×N formulas; here the rows are the inducing points.
func TestGolden(t *testing.T) {
	var ref struct {
		X             [][]float64
		New           [][]float64 `json:"X_new"`
		Y             []float64
		LogEll        []float64 `json:"log_ell"`
		LogAmp        float64   `json:"log_amp"`
		Jitter        float64
		LaplaceLogit  goldenResult `json:"laplace_logit"`
		LaplaceProbit goldenResult `json:"laplace_probit"`
		EPProbit      goldenResult `json:"ep_probit"`
		VIProbit      goldenResult `json:"vi_probit"`
	}
	golden.Reference(t, "comparators/binary.json", &ref)
	d := &lab.Data{D: 2, C: 2, X: golden.Flat(ref.X)}
	for _, y := range ref.Y {
		d.Y = append(d.Y, int(y+1)/2)
	}
	p := model.NewParams(0, 2)
	copy(p.LogEll(), ref.LogEll)
	*p.LogAmp() = ref.LogAmp
	p = lab.AtRows(d, p)
	x := golden.Flat(ref.New)
	probit := approximations(t, d, p, ref.Jitter/math.Exp(ref.LogAmp), Probit)
	logistic := approximations(t, d, p, ref.Jitter/math.Exp(ref.LogAmp), Logistic)
	logP, se := orthant(t, d, lab.Covariance(&p, d.X, d.X))
	labtest.Near(t, "exact log evidence", logP, -7.3712, 3e-4+3*se)
	for _, c := range []struct {
		name string
		a    approximation
		g    *goldenResult
	}{
		{"Laplace, logistic", logistic["Laplace"], &ref.LaplaceLogit}, {"Laplace, probit", probit["Laplace"], &ref.LaplaceProbit},
		{"EP, probit", probit["EP"], &ref.EPProbit}, {"VI, probit", probit["VI"], &ref.VIProbit},
	} {
		t.Run(c.name, func(t *testing.T) {
			switch a := c.a.(type) {
			case *Laplace:
				c.g.check(t, a, a.process, x)
				var f mat.VecDense
				f.MulVec(a.W(0), a.mode)
				golden.Close(t, "mode", f.RawVector().Data, c.g.Mode, 1e-7)
			case *EP:
				c.g.check(t, a, a.process, x)
				golden.Close(t, "s1", a.S1.RawMatrix().Data, c.g.S1, 1e-7)
				golden.Close(t, "s2", a.S2.RawMatrix().Data, c.g.S2, 1e-7)
				golden.Close(t, "mean", a.Mean.RawMatrix().Data, c.g.Mean, 1e-7)
				golden.Close(t, "variance", a.Var.RawMatrix().Data, c.g.Var, 1e-7)
			case *VI:
				c.g.check(t, a, a.process, x)
				golden.Close(t, "s1", a.S1.RawMatrix().Data, c.g.S1, 1e-7)
				golden.Close(t, "s2", a.S2.RawMatrix().Data, c.g.S2, 1e-7)
			}
		})
	}
}

// two is the twelve points, class 0 against the others, with one latent function.
func two(t *testing.T) (*lab.Data, model.Params) {
	t.Helper()
	d, p := labtest.Twelve()
	out := &lab.Data{D: d.D, C: 2, X: d.X}
	for _, y := range d.Y {
		out.Y = append(out.Y, min(y, 1))
	}
	return out, Kernel(p)
}

func TestGradientsAreDifferences(t *testing.T) {
	d, p := two(t)
	for _, link := range []Link{Probit, Logistic} {
		for name, a := range approximations(t, d, p, lab.Jitter, link) {
			t.Run(fmt.Sprintf("%s, %s", name, link), func(t *testing.T) {
				got := a.Gradient()
				want := labtest.Differences(p.Theta, 1e-5, func(theta []float64) float64 {
					err := a.SetParams(model.Params{M: p.M, D: p.D, Theta: theta})
					if err == nil {
						err = a.Run(1000, 1e-13)
					}
					if err != nil {
						t.Fatal(err)
					}
					return a.LogZ()
				})
				noise := len(want) - 2 // fixed at 1
				want[noise] = 0
				golden.Close(t, "gradient", got, want, 1e-6)
			})
		}
	}
}

// The slopes of both links, smoothed or not, are those of differences.
func TestSlopesAreDifferences(t *testing.T) {
	r := new(rule)
	for _, link := range []Link{Probit, Logistic} {
		for _, y := range []float64{-1, 1} {
			for _, f := range []float64{-3, 0.4, 2} {
				const v = 0.7
				s := link.smoothed(r, y, f, v)
				for j := range 4 {
					next := labtest.Differences([]float64{f}, 1e-4, func(x []float64) float64 { return link.smoothed(r, y, x[0], v)[j] })
					labtest.Near(t, fmt.Sprintf("derivative %d of %s at %g", j+1, link, f), s[j+1], next[0], 1e-6)
				}
				in := labtest.Differences([]float64{v}, 1e-4, func(x []float64) float64 { return link.smoothed(r, y, f, x[0])[0] })
				labtest.Near(t, "derivative in the variance", s.variance(), in[0], 1e-6)
				in = labtest.Differences([]float64{v}, 1e-4, func(x []float64) float64 { return link.smoothed(r, y, f, x[0])[1] })
				labtest.Near(t, "derivative of l1 in the variance", s.firstInVariance(), in[0], 1e-6)
				in = labtest.Differences([]float64{v}, 1e-4, func(x []float64) float64 { return link.smoothed(r, y, f, x[0])[2] })
				labtest.Near(t, "derivative of l2 in the variance", s.secondInVariance(), in[0], 1e-6)
				if y == 1 {
					labtest.Near(t, "probabilities of both labels", math.Exp(s[0])+math.Exp(link.smoothed(r, -1, f, v)[0]), 1, 1e-12)
				}
				e, g, h := link.expected(r, y, f, v)
				mean := func(j int) (sum float64) { // by 20,000 midpoints
					for i := range 20000 {
						z := -10 + 20*(float64(i)+0.5)/20000
						sum += link.smoothed(r, y, f+math.Sqrt(v)*z, 0)[j] * math.Exp(-0.5*z*z) / math.Sqrt(2*math.Pi) * 20 / 20000
					}
					return sum
				}
				golden.Close(t, "expected log p and derivatives", []float64{e, g, -h}, []float64{mean(0), mean(1), mean(2)}, 1e-9)
			}
		}
	}
}

// Far in the tail and at any variance the slopes are finite, and h is positive and below
// 1/v, without which a site has no precision.
func TestSlopesAreFinite(t *testing.T) {
	r := new(rule)
	for _, link := range []Link{Probit, Logistic} {
		for _, v := range []float64{1e-10, 0.1, 1, 10, 100, 1000, 4000} {
			for _, f := range []float64{-2000, -300, -40, -5, 0, 5, 40, 300, 2000} {
				s := link.smoothed(r, 1, f, v)
				for j, x := range s {
					if math.IsNaN(x) || math.IsInf(x, 0) {
						t.Fatalf("%s at %g with variance %g: derivative %d is %g", link, f, v, j, x)
					}
				}
				if s[0] > 1e-12 || s[1] < 0 || -s[2] < -1e-9 || -s[2]*v > 1 {
					t.Errorf("%s at %g with variance %g: %v", link, f, v, s)
				}
			}
		}
	}
}

// The order of the approximate evidences on the full process: exact > EP > VI > Laplace.
func TestEvidencesAgainstTheExactOnes(t *testing.T) {
	d, p := two(t)
	p = lab.AtRows(d, p)
	probit, logistic := approximations(t, d, p, 1e-10, Probit), approximations(t, d, p, 1e-10, Logistic)
	c := lab.Covariance(&p, d.X, d.X)
	orthant, se := orthant(t, d, c)
	e, v, l := probit["EP"].LogZ(), probit["VI"].LogZ(), probit["Laplace"].LogZ()
	t.Logf("probit: exact %.4f ± %.4f, EP %.4f, VI %.4f, Laplace %.4f", orthant, se, e, v, l)
	if !(orthant+3*se > e && e > v && v > l) || orthant-e > 0.1 {
		t.Errorf("probit: exact %g, EP %g, VI %g, Laplace %g, want this order, EP near the exact one", orthant, e, v, l)
	}
	sampled, sampledSE := samplePrior(t, d, c)
	e, v, l = logistic["EP"].LogZ(), logistic["VI"].LogZ(), logistic["Laplace"].LogZ()
	t.Logf("logistic: sampled %.4f ± %.4f, EP %.4f, VI %.4f, Laplace %.4f", sampled, sampledSE, e, v, l)
	labtest.Near(t, "logistic EP", e, sampled, 4*sampledSE+0.05)
	if v > sampled+4*sampledSE {
		t.Errorf("the bound %g is above the log evidence %g", v, sampled)
	}
}

// orthant is the exact log evidence of the probit: all y f + noise are positive.
func orthant(t *testing.T, d *lab.Data, c *mat.Dense) (logP, se float64) {
	t.Helper()
	cov := mat.NewSymDense(d.N(), nil)
	for i := range d.N() {
		for j := range i {
			cov.SetSym(i, j, c.At(i, j)*float64((2*d.Y[i]-1)*(2*d.Y[j]-1)))
		}
		cov.SetSym(i, i, c.At(i, i)+1)
	}
	logP, se, err := exact.LogOrthant(cov, 5000, 1)
	if err != nil {
		t.Fatal(err)
	}
	return logP, se
}

// samplePrior is the logistic log evidence as a mean over draws of the prior.
func samplePrior(t *testing.T, d *lab.Data, c *mat.Dense) (logZ, se float64) {
	t.Helper()
	const draws = 200000
	n := d.N()
	k := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			k.SetSym(i, j, c.At(i, j))
		}
		k.SetSym(i, i, k.At(i, i)+1e-9)
	}
	var chol mat.Cholesky
	if !chol.Factorize(k) {
		t.Fatal("the prior has no factor")
	}
	var l mat.TriDense
	chol.LTo(&l)
	r := rand.New(rand.NewPCG(1, 1))
	var sum, square float64
	z, f := mat.NewVecDense(n, nil), mat.NewVecDense(n, nil)
	for range draws {
		for i := range n {
			z.SetVec(i, r.NormFloat64())
		}
		f.MulVec(&l, z)
		p := 1.0
		for i, y := range d.Y {
			p /= 1 + math.Exp(-float64(2*y-1)*f.AtVec(i))
		}
		sum, square = sum+p, square+p*p
	}
	mean := sum / draws
	return math.Log(mean), math.Sqrt((square/draws-mean*mean)/draws) / mean
}

// The multi-class model with two classes has the same predictions within a few per cent.
func TestOneLatentIsTheModelOfTwo(t *testing.T) {
	d, _ := two(t)
	_, p := labtest.Twelve()
	p = lab.AtRows(d, p)
	e, err := ep.New(d, p, 1e-9)
	if err == nil {
		err = e.Run(1000, 0.7, 1e-12)
	}
	if err != nil {
		t.Fatal(err)
	}
	x := []float64{0.3, -0.4, -1.1, 0.8, 2.0, 1.5}
	want, err := e.Predict(x)
	if err != nil {
		t.Fatal(err)
	}
	for name, a := range approximations(t, d, Kernel(p), 1e-9, Probit) {
		got, err := a.Predict(x)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			labtest.Near(t, name+": probability", got.At(i, 1), want.At(i, 1), 0.06)
		}
	}
}

func TestTrainingImprovesTheEvidence(t *testing.T) {
	d, p := two(t)
	_, start := labtest.Twelve()
	for _, link := range []Link{Probit, Logistic} {
		first := approximations(t, d, p, lab.Jitter, link)
		for name, method := range map[string]lab.Method{"Laplace": TrainLaplace(link), "EP": TrainEP(link), "VI": TrainVI(link)} {
			c, err := method(t.Context(), &lab.Problem{Data: d, Start: start, Updates: 30})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if after, before := c.(approximation).LogZ(), first[name].LogZ(); !(after > before) {
				t.Errorf("%s, %s: log evidence %g after training, %g before", name, link, after, before)
			}
		}
	}
	if _, err := TrainEP(Probit)(t.Context(), &lab.Problem{Data: &lab.Data{D: 2, C: 3}, Start: start}); err == nil {
		t.Error("no error for three classes")
	}
}
