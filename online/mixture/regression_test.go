package mixture

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"edge/model"
	"edge/online/wire"
)

// newRegression returns a mixture whose regression has the three classes of newTestMixture and d
// features, which are standardised by means and deviations that differ.
func newRegression(d int) (*Mixture, *model.Regression) {
	m := newTestMixture()
	m.cfg.Features = d
	s := &m.view.Scale
	s.Mu, s.Sd = make([]float64, d), make([]float64, d)
	for j := range d {
		s.Mu[j], s.Sd[j] = 0.1*float64(j%3), 0.5+0.1*float64(j%7)
	}
	m.StartRegression()
	return m, &m.view.Pool.Stack.Linear
}

// teachRegression learns n samples of random classes.
func teachRegression(m *Mixture, rng *rand.Rand, n int) {
	x := make([]float64, m.cfg.Features)
	for i := range n {
		for j := range x {
			x[j] = rng.NormFloat64() + float64(i%3*(j%2))
		}
		m.LearnRegression(x, []int{i % 3}, []float64{1})
	}
}

// covariance is the matrix of the weights' covariances.
func covariance(r *model.Regression) *mat.SymDense {
	n := r.D + 1
	v := mat.NewSymDense(n, nil)
	at := 0
	for i := range n {
		if r.Diagonal() {
			v.SetSym(i, i, r.V[i])
			continue
		}
		for j := range i + 1 {
			v.SetSym(i, j, r.V[at])
			at++
		}
	}
	return v
}

// A step against the inverse of the precision V⁻¹ + c·xxᵀ and the derivative of the log loss.
func TestRegressionStep(t *testing.T) {
	for _, d := range []int{3, model.MaxCorrelated + 1} {
		m, r := newRegression(d)
		rng := rand.New(rand.NewPCG(5, 5))
		teachRegression(m, rng, 30)
		raw := make([]float64, d)
		for j := range raw {
			raw[j] = rng.NormFloat64()
		}
		raw[1] = math.NaN()
		x, logs := make([]float64, d+1), make([]float64, 3)
		m.view.Scale.To(x[:d], raw)
		model.KnownTo(x, x[:d])
		x[d] = 1
		r.LogsTo(logs, x[:d])
		const label, weight = 2, 1.5
		var c float64
		for _, logp := range logs {
			c += weight * 0.25 * 3 / 4 * math.Exp(logp) * (1 - math.Exp(logp))
		}
		before, v := slices.Clone(r.W), covariance(r)
		m.LearnRegression(raw, []int{label}, []float64{weight})
		var precision, want mat.Dense
		if err := precision.Inverse(v); err != nil {
			t.Fatal(err)
		}
		in := mat.NewVecDense(d+1, x)
		precision.RankOne(&precision, c, in, in)
		if err := want.Inverse(&precision); err != nil {
			t.Fatal(err)
		}
		var step mat.VecDense
		step.MulVec(&want, in)
		for k, logp := range logs {
			miss := weight * math.Exp(logp)
			if k == label {
				miss -= weight
			}
			for j := range d + 1 {
				i := k*(d+1) + j
				if w := before[i] - miss*step.AtVec(j); !r.Diagonal() && math.Abs(r.W[i]-w) > 1e-9 {
					t.Errorf("weight %d of class %d is %v, want %v", j, k, r.W[i], w)
				}
			}
		}
		got := covariance(r)
		for i := range d + 1 {
			for j := range i + 1 {
				w := want.At(i, j) / (1 - 1./5000)
				if r.Diagonal() { // off it the product is left out
					j, w = i, want.At(i, i)/(1-1./5000)
				}
				if math.Abs(got.At(i, j)-w) > 1e-9 {
					t.Fatalf("%d features: the covariance of %d and %d is %v, want %v", d, i, j, got.At(i, j), w)
				}
			}
		}
	}
}

// Another scaling of the features changes no answer.
func TestRegressionRescaled(t *testing.T) {
	m, r := newRegression(4)
	rng := rand.New(rand.NewPCG(6, 6))
	teachRegression(m, rng, 50)
	raw := []float64{0.4, -1.2, math.NaN(), 0.7}
	for j := range raw {
		if raw[j] != raw[j] {
			raw[j] = m.view.Scale.Mu[j] // one that is missing has another mean afterwards
		}
	}
	answer := func() []float64 {
		x, logs := make([]float64, 4), make([]float64, 3)
		m.view.Scale.To(x, raw)
		r.LogsTo(logs, x)
		return logs
	}
	want, before := answer(), model.Scale{Mu: slices.Clone(m.view.Scale.Mu), Sd: slices.Clone(m.view.Scale.Sd)}
	for j := range raw {
		m.view.Scale.Mu[j] += 0.3 * float64(j)
		m.view.Scale.Sd[j] *= 1.5 - 0.2*float64(j)
	}
	m.RescaleRegression(&before)
	closeTo(t, "log probability", answer(), want, 1e-12)
	before.Sd[0] = m.view.Scale.Sd[0] * 1e-200
	m.RescaleRegression(&before)
	closeTo(t, "weight after scalings that are too far apart", r.W, make([]float64, 15), 0)
}

// A new class begins with weights of 0.
func TestRegressionClasses(t *testing.T) {
	m, r := newRegression(2)
	teachRegression(m, rand.New(rand.NewPCG(7, 7)), 50)
	before, v := slices.Clone(r.W), slices.Clone(r.V)
	m.view.Names = append(m.view.Names, "d")
	m.Grow(3)
	closeTo(t, "weight with a fourth class", r.W, append(slices.Clone(before), 0, 0, 0), 0)
	m.DropClass(1, []int{0, -1, 1, 2})
	closeTo(t, "weight without the second", r.W, append(slices.Concat(before[:3], before[6:]), 0, 0, 0), 0)
	closeTo(t, "covariance", r.V, v, 0)
}

// The covariance stays positive and bounded over many labels, where features repeat each other, never
// change, or are far outside.
func TestRegressionLasts(t *testing.T) {
	for _, d := range []int{6, model.MaxCorrelated + 1} {
		m, r := newRegression(d)
		rng := rand.New(rand.NewPCG(9, 9))
		x := make([]float64, d)
		for i := range 40000 * 6 / d {
			a := rng.NormFloat64()
			for j := range x {
				x[j] = []float64{a, a + 1e-9*rng.NormFloat64(), 3, 1e300 * a, 0, -a}[j%6]
			}
			m.LearnRegression(x, []int{i % 3 * (i / 7 % 2)}, []float64{1})
		}
		var trace float64
		for j := range d + 1 {
			trace += *r.VarianceAt(j)
		}
		if !(trace < 1.01*float64(d+1)) {
			t.Errorf("%d features: the variances sum to %v", d, trace)
		}
		var eigen mat.EigenSym
		if !eigen.Factorize(covariance(r), false) {
			t.Fatal("no eigenvalues")
		}
		if least := slices.Min(eigen.Values(nil)); !(least > 0) {
			t.Errorf("%d features: an eigenvalue of the covariance is %v", d, least)
		}
		for i, w := range r.W {
			if !(math.Abs(w) < 1e3) {
				t.Errorf("%d features: weight %d is %v", d, i, w)
			}
		}
	}
}

// The section of earlier programs has weights and squared gradients.
func TestFormerRegression(t *testing.T) {
	for _, d := range []int{2, model.MaxCorrelated + 1} {
		m, r := newRegression(d)
		w, squares := make([]float64, 3*(d+1)), make([]float64, 3*(d+1))
		for i := range w {
			w[i], squares[i] = 0.1*float64(i), float64(i%5)
		}
		var e wire.Encoder
		e.Floats(w)
		e.Floats(squares)
		readAll(t, &e, m.DecodeFormerRegression)
		closeTo(t, "weight", r.W, w, 0)
		for j := range d + 1 {
			var sum float64
			for k := range 3 {
				sum += squares[k*(d+1)+j]
			}
			closeTo(t, fmt.Sprint("variance of weight ", j), []float64{*r.VarianceAt(j)}, []float64{1 / (1 + 0.25*0.75*sum)}, 1e-15)
		}
	}
}
