package mixture

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"edge/model"
)

// randomExponents stores random evidence of a minibatch in x, and returns it as a
// matrix and a vector.
func randomExponents(x *exponents, rng *rand.Rand) (f *mat.SymDense, g *mat.VecDense) {
	n := len(x.at)
	f, g = mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	for i := range n {
		x.pendGrad[i] = 10 * rng.NormFloat64()
		g.SetVec(i, x.pendGrad[i])
		for j := range i + 1 {
			v := 0.1 * rng.NormFloat64()
			if i == j {
				v = 40 * rng.Float64()
			}
			x.pendCurve[i*n+j] = v
			f.SetSym(i, j, v)
		}
	}
	return f, g
}

// randomBlend stores random evidence of a minibatch in b.
func randomBlend(b *blend, rng *rand.Rand) {
	for _, x := range b.own() {
		randomExponents(x, rng)
		x.pendLL = -5 * rng.Float64()
	}
	b.pendLL[0], b.pendLL[1] = -6, -4
}

// Requested labels are those of the hardest samples: the same evidence moves the exponents less, in
// the limit by the quotient of the precisions, and the blend never answers alone.
func TestRequestedLabels(t *testing.T) {
	move := func(few bool) (moved, weight float64) {
		m := New(Config{Horizons: 3, Forest: true, FewLabels: few}, &model.Posterior{})
		x, f := &m.plain.slow, m.forestExpert()
		start := x.at[f]
		x.pendGrad[f] = 1e-3
		m.plain.logw[0], m.plain.logw[1] = -40, 0
		m.plain.learn(&m.view.Pool.Stack.Plain, Together(1))
		m.setStack()
		return x.at[f] - start, m.view.Pool.Stack.Plain.Weight
	}
	others, whole := move(false)
	requested, part := move(true)
	closeTo(t, "moves", []float64{requested * requestedPrior}, []float64{others}, 1e-12)
	closeTo(t, "weights", []float64{whole, part}, []float64{1, requestedShare}, 1e-12)
}

// Newton's steps of both learners against a general solver, and how curvature and
// evidence fade.
func TestBlendStep(t *testing.T) {
	m := newTestMixture()
	b := &m.ordered
	rng := rand.New(rand.NewPCG(1, 1))
	randomBlend(b, rng)
	b.slow.pendLL, b.fast.pendLL = -4.5, -3
	type learner struct {
		*exponents
		prior, weight float64
		before        []float64
		f             *mat.SymDense
		g             *mat.VecDense
	}
	const samples = 4
	all := []learner{{exponents: &b.slow, prior: stackPrior, weight: 0.5}, {exponents: &b.fast, prior: fastPrior * stackPrior, weight: 1}}
	for i := range all {
		x := &all[i]
		x.before = slices.Clone(x.at)
		x.f, x.g = randomExponents(x.exponents, rng)
	}
	m.Learn(Together(samples))
	for _, x := range all {
		n := len(x.at)
		x.f.ScaleSym(x.weight, x.f)
		x.g.ScaleVec(x.weight, x.g)
		for i := range n {
			x.f.SetSym(i, i, x.f.At(i, i)+x.prior)
		}
		var step mat.VecDense
		if err := step.SolveVec(x.f, x.g); err != nil {
			t.Fatal(err)
		}
		const fade = 1 - samples/float64(stackMemory)
		for i := range n {
			x.before[i] += min(max(step.AtVec(i), -maxStackStep), maxStackStep)
			for j := range i + 1 {
				want := fade * x.f.At(i, j)
				if i == j {
					want += (1 - fade) * x.prior
				}
				if got := x.curve[i*n+j]; math.Abs(got-want) > 1e-12*stackPrior {
					t.Errorf("curvature %d %d is %v, want %v", i, j, got, want)
				}
			}
		}
		closeTo(t, "exponent", x.at, x.before, 1e-12)
		if slices.Max(x.pendCurve) != 0 || slices.Max(x.pendGrad) != 0 || x.pendLL != 0 {
			t.Error("the evidence of the minibatch is still there")
		}
	}
	fast := 1 / (1 + math.Exp(slowLead*(1-samples/float64(stackMemory))-0.75)) // 1.5 nats of 4 samples in its favour
	want := slices.Clone(b.slow.at)
	for i, v := range b.fast.at {
		want[i] = (1-fast)*want[i] + fast*v
	}
	s := &m.view.Pool.Stack
	closeTo(t, "published exponent", s.Ordered.Exponents, want, 1e-12)
	if got, want := s.Ordered.Weight, 1/(1+math.Exp(-1)); math.Abs(got-want) > 1e-12 {
		t.Errorf("weight %v after evidence of 2 nats by 4 samples, want %v", got, want)
	}
	if slices.Min(b.pendLL) != 0 {
		t.Error("the evidence of the minibatch is still there")
	}
}

// The sums of a minibatch against differences of the labels' log probability: the
// gradient is its derivative, the curvature minus the second one.
func TestExponentsObserve(t *testing.T) {
	const n, c, weight, h = 3, 4, 1.5, 1e-4
	rng := rand.New(rand.NewPCG(7, 7))
	x := emptyExponents(n, 1, false)
	for i := range x.at {
		x.at[i] = rng.NormFloat64()
	}
	var samples [5][]float64
	for i := range samples {
		samples[i] = make([]float64, n*c)
		for j := range samples[i] {
			samples[i][j] = math.Log(rng.Float64())
		}
	}
	loss := func(at []float64) (sum float64) {
		for i, experts := range samples {
			var logits [c]float64
			total := 0.
			for k := range logits {
				for j, v := range at {
					logits[k] += v * experts[j*c+k]
				}
				total += math.Exp(logits[k])
			}
			sum += weight * (logits[i%c] - math.Log(total))
		}
		return sum
	}
	for i, experts := range samples {
		x.observe(experts, i%c, weight)
	}
	shifted := func(by ...int) float64 { // loss with some exponents moved by ±h; by counts from 1
		at := slices.Clone(x.at)
		for _, i := range by {
			if i > 0 {
				at[i-1] += h
			} else {
				at[-i-1] -= h
			}
		}
		return loss(at)
	}
	if want := loss(x.at); math.Abs(x.pendLL-want) > 1e-12 {
		t.Errorf("log probability %v, want %v", x.pendLL, want)
	}
	for i := 1; i <= n; i++ {
		if got, want := x.pendGrad[i-1], (shifted(i)-shifted(-i))/(2*h); math.Abs(got-want) > 1e-6 {
			t.Errorf("derivative %d is %v, want %v", i, got, want)
		}
		for j := 1; j <= i; j++ {
			want := -(shifted(i, j) - shifted(i, -j) - shifted(-i, j) + shifted(-i, -j)) / (4 * h * h)
			if got := x.pendCurve[(i-1)*n+j-1]; math.Abs(got-want) > 1e-5 {
				t.Errorf("curvature %d %d is %v, want %v", i, j, got, want)
			}
		}
	}
}

// A large minibatch moves the fast learner no further than mostApart of its samples would.
func TestLargeMinibatch(t *testing.T) {
	const n, times = 2, 4
	small, large := newExponents(make([]float64, n), 5, false), newExponents(make([]float64, n), 5, false)
	for _, x := range []*exponents{&small, &large} {
		x.pendGrad[0], x.pendGrad[1], x.pendCurve[0], x.pendCurve[n+1] = 0.3, -0.2, 2, 3
	}
	for _, pending := range [][]float64{large.pendGrad, large.pendCurve} {
		scale(times, pending)
	}
	small.learn(Together(mostApart))
	large.learn(Together(times * mostApart))
	closeTo(t, "exponent", large.at, small.at, 1e-15)
	if large.at[0] <= 0 {
		t.Errorf("the exponents are %v", large.at)
	}
}
