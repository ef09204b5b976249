package mixture

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"edge/model"
	"edge/online/wire"
)

// newTestMixture returns a mixture of three horizons over three classes of two
// features, of a model that is built.
func newTestMixture() *Mixture {
	view := &model.Posterior{
		Names: []string{"a", "b", "c"}, Counts: make([]uint64, 3), Bases: []*model.Basis{model.NewBasis(2, 2)},
		Scale: model.Scale{Mu: []float64{0.3, -0.1}, Sd: []float64{1.2, 0.7}},
	}
	m := New(Config{Features: 2, Horizons: 3, Chain: true, Regression: true}, view)
	m.ResetHorizons()
	m.Grow(0)
	return m
}

// closeTo compares arrays by the largest difference.
func closeTo(t *testing.T, what string, got, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s has %d values, want %d", what, len(got), len(want))
		return
	}
	for i, v := range got {
		if !(math.Abs(v-want[i]) <= tol) {
			t.Errorf("%s %d is %v, want %v", what, i, v, want[i])
		}
	}
}

// The weights of the horizons follow the evidence; Undo restores them.
func TestHorizons(t *testing.T) {
	m := newTestMixture()
	closeTo(t, "first weight", m.view.Weights, []float64{1. / 3, 1. / 3, 1. / 3}, 1e-15)
	m.Save()
	m.WeighHorizons([]float64{-1, -2, -3}, 4)
	a, b, c := 1., math.Exp(-0.5), math.Exp(-1)
	closeTo(t, "weight", m.view.Weights, []float64{a / (a + b + c), b / (a + b + c), c / (a + b + c)}, 1e-15)
	var e wire.Encoder
	m.EncodeHorizons(&e)
	other := newTestMixture()
	other.DecodeHorizons(wire.NewDecoder(e.Buf, "", wire.ErrState))
	closeTo(t, "decoded weight", other.view.Weights, m.view.Weights, 0)
	m.Undo()
	closeTo(t, "restored weight", m.view.Weights, []float64{1. / 3, 1. / 3, 1. / 3}, 1e-15)
}

// The weights of the members follow the evidence, and forget it.
func TestMembers(t *testing.T) {
	m := newTestMixture()
	for i := range m.pending { // members 0 to 3 share the exponent of the chain
		m.pending[i] = -float64(i % 4)
	}
	m.Learn(10)
	w := m.view.Pool.Weights
	if !(w[0] > w[1] && w[1] > w[2] && w[2] > w[3]) || w[0] != w[4] || w[0] != w[8] {
		t.Errorf("weights %v do not follow the evidence", w)
	}
	before := w[3]
	for range 100 { // evidence is forgotten
		m.Learn(50)
	}
	if w[3] < before*1.5 || w[3] > w[0] {
		t.Errorf("weight of the worst member %v, was %v, of the best %v", w[3], before, w[0])
	}
	m.TrustBank()
	for i, member := range model.Members {
		if bank := member == (model.Member{Sharpness: 1}); bank != (w[i] > 0.999) {
			t.Errorf("member %v has the weight %v", member, w[i])
		}
	}
}

// randomBlend stores random evidence of a minibatch in b, and returns it as a
// matrix and a vector.
func randomBlend(b *blend, rng *rand.Rand) (f *mat.SymDense, g *mat.VecDense) {
	n := len(b.mean)
	f, g = mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	for i := range n {
		b.pendGrad[i] = 10 * rng.NormFloat64()
		g.SetVec(i, b.pendGrad[i])
		for j := range i + 1 {
			v := 0.1 * rng.NormFloat64()
			if i == j {
				v = 40 * rng.Float64()
			}
			b.pendFisher[i*n+j] = v
			f.SetSym(i, j, v)
		}
	}
	b.pendLL[0], b.pendLL[1] = -6, -4
	return f, g
}

// Newton's step against a general solver, and how curvature and evidence fade.
func TestBlendStep(t *testing.T) {
	m := newTestMixture()
	b, exponents := &m.ordered, m.view.Pool.Stack.Ordered.Exponents
	before, n := slices.Clone(exponents), len(exponents)
	f, g := randomBlend(b, rand.New(rand.NewPCG(1, 1)))
	f.ScaleSym(0.5, f)
	g.ScaleVec(0.5, g)
	for i := range n {
		f.SetSym(i, i, f.At(i, i)+stackPrior)
	}
	m.Learn(4)
	var step mat.VecDense
	if err := step.SolveVec(f, g); err != nil {
		t.Fatal(err)
	}
	const fade = 1 - 4./stackMemory
	for i := range n {
		before[i] += min(max(step.AtVec(i), -maxStackStep), maxStackStep)
		for j := range i + 1 {
			want := fade * f.At(i, j)
			if i == j {
				want += (1 - fade) * stackPrior
			}
			if got := b.fisher[i*n+j]; math.Abs(got-want) > 1e-12*stackPrior {
				t.Errorf("curvature %d %d is %v, want %v", i, j, got, want)
			}
		}
	}
	closeTo(t, "exponent", exponents, before, 1e-12)
	if got, want := m.view.Pool.Stack.Ordered.Weight, 1/(1+math.Exp(-1)); math.Abs(got-want) > 1e-12 {
		t.Errorf("weight %v after evidence of 2 nats by 4 samples, want %v", got, want)
	}
	if slices.Max(b.pendFisher) != 0 || slices.Max(b.pendGrad) != 0 || slices.Min(b.pendLL) != 0 {
		t.Error("the evidence of the minibatch is still there")
	}
}

// A step against the derivative of the log loss by differences, and the rates
// that follow from two of them.
func TestRegressionStep(t *testing.T) {
	m := newTestMixture()
	m.StartRegression()
	r, v := &m.regression, &m.view.Pool.Stack.Linear
	if len(v.W) != 9 {
		t.Fatalf("%d weights, want 9", len(v.W))
	}
	loss := func(w, x []float64, label int) float64 {
		logs := make([]float64, 3)
		(&model.Regression{D: 2, W: w}).LogsTo(logs, x)
		return -logs[label]
	}
	const weight = 1.5
	raw, labels := []float64{0.4, -1.2, math.NaN(), 0.7}, []int{2, 0}
	for i, label := range labels {
		w, squares := slices.Clone(v.W), slices.Clone(r.squares)
		sample := raw[2*i : 2*i+2]
		m.LearnRegression(sample, labels[i:i+1], []float64{weight})
		x := make([]float64, 2)
		m.view.Scale.To(x, sample)
		for j := range w {
			const h = 1e-5
			at := slices.Clone(w)
			at[j] += h
			up := loss(at, x, label)
			at[j] -= 2 * h
			g := weight * (up - loss(at, x, label)) / (2 * h)
			wantSquare := squares[j]*(1-1./linearMemory) + g*g
			want := w[j] - linearRate*g/(math.Sqrt(wantSquare)+linearTiny)
			if math.Abs(r.squares[j]-wantSquare) > 1e-8 || math.Abs(v.W[j]-want) > 1e-6 {
				t.Errorf("sample %d, weight %d: %v with %v, want %v with %v", i, j, v.W[j], r.squares[j], want, wantSquare)
			}
		}
	}
	before, squares := slices.Clone(v.W), slices.Clone(r.squares)
	m.view.Names = append(m.view.Names, "d")
	m.Grow(3)
	closeTo(t, "weight with a fourth class", v.W, append(slices.Clone(before), 0, 0, 0), 0)
	m.DropClass(1, []int{0, -1, 1, 2})
	closeTo(t, "weight without the second", v.W, append(slices.Concat(before[:3], before[6:]), 0, 0, 0), 0)
	closeTo(t, "square", r.squares, append(slices.Concat(squares[:3], squares[6:]), 0, 0, 0), 0)
}

// The section "stack" of earlier programs, with one blend and without expert H, is
// read into the ordered blend.
func TestDecodeStack(t *testing.T) {
	m := newTestMixture()
	randomBlend(&m.ordered, rand.New(rand.NewPCG(2, 2)))
	m.Learn(4)
	randomBlend(&m.ordered, rand.New(rand.NewPCG(3, 3)))
	m.NextLabel(1)
	b, v, out := &m.ordered, &m.view.Pool.Stack, m.cfg.Horizons
	var e wire.Encoder
	others := func(x []float64, n int) {
		for j, v := range x[:n] {
			if j != out {
				e.Float(v)
			}
		}
	}
	n := len(b.mean)
	others(v.Ordered.Exponents, n)
	e.Floats(b.logw)
	e.Floats(b.pendLL)
	others(b.pendGrad, n)
	for i := range n {
		if i != out {
			others(b.fisher[i*n:], i+1)
			others(b.pendFisher[i*n:], i+1)
		}
	}
	e.Bool(true)
	e.Floats(m.view.Pool.Order.Recent)

	old := newTestMixture()
	d := wire.NewDecoder(e.Buf, "", wire.ErrState)
	if old.DecodeStack(d); d.End() != nil {
		t.Fatal(d.Err())
	}
	s, want := &old.view.Pool.Stack, slices.Clone(v.Ordered.Exponents)
	want[out] = 0
	closeTo(t, "exponent", s.Ordered.Exponents, want, 0)
	closeTo(t, "latest label", old.view.Pool.Order.Recent, m.view.Pool.Order.Recent, 0)
	if s.Ordered.Weight != v.Ordered.Weight {
		t.Errorf("weight %v, want %v", s.Ordered.Weight, v.Ordered.Weight)
	}
	for i := range n {
		for j := range i + 1 {
			if i != out && j != out && old.ordered.fisher[i*n+j] != b.fisher[i*n+j] {
				t.Errorf("curvature %d %d is %v, want %v", i, j, old.ordered.fisher[i*n+j], b.fisher[i*n+j])
			}
		}
	}
}

// withForest returns a mixture as newTestMixture, with a forest among the experts and
// random exponents.
func withForest(rng *rand.Rand) *Mixture {
	m := newTestMixture()
	m.AddForest()
	for b, v := range m.blends() {
		randomBlend(b, rng)
		for i := range v.Exponents {
			v.Exponents[i] = rng.NormFloat64()
		}
		for i := range b.fisher {
			b.fisher[i] = rng.NormFloat64()
		}
	}
	m.NextLabel(1)
	return m
}

// The forest begins with its share of the exponents, and under the precision of its
// prior.
func TestForestShare(t *testing.T) {
	m := newTestMixture()
	m.AddForest()
	s := &m.view.Pool.Stack
	closeTo(t, "ordered exponent", s.Ordered.Exponents, []float64{0.2, 0.2, 0.2, 0, 0.4, 1, 0, 0, 0}, 1e-15)
	closeTo(t, "plain exponent", s.Plain.Exponents, []float64{0.2, 0.2, 0.2, 0, 0.4}, 1e-15)
	if got := m.plain.fisher[4*5+4]; got != forestPrior {
		t.Errorf("precision %v, want %v", got, forestPrior)
	}
	m.RestartForest()
	closeTo(t, "plain exponent", s.Plain.Exponents, []float64{1. / 3, 1. / 3, 1. / 3, 0, 0}, 1e-15)
}

// Blends are carried over between mixtures with and without a forest: the exponents of
// the others stay, and the horizons inherit that of a forest that is lost.
func TestDecodeWithAndWithoutForest(t *testing.T) {
	const at = 4
	rng := rand.New(rand.NewPCG(5, 5))
	without := func(x []float64) []float64 { return slices.Delete(slices.Clone(x), at, at+1) }
	decode := func(m *Mixture, data []byte, read func(m *Mixture, d *wire.Decoder)) *Mixture {
		t.Helper()
		d := wire.NewDecoder(data, "", wire.ErrState)
		if read(m, d); d.End() != nil {
			t.Fatal(d.Err())
		}
		return m
	}
	same := func(what string, large, small *Mixture, inherited bool) {
		t.Helper()
		big := &large.view.Pool.Stack
		for b, v := range small.blends() {
			of, exponents := &large.ordered, slices.Clone(big.Ordered.Exponents)
			if b == &small.plain {
				of, exponents = &large.plain, slices.Clone(big.Plain.Exponents)
			}
			for h := range 3 {
				if inherited {
					exponents[h] += exponents[at] / 3
				}
			}
			closeTo(t, what+": exponent", v.Exponents, without(exponents), 1e-15)
			closeTo(t, what+": gradient", b.pendGrad, without(of.pendGrad), 0)
			n := len(b.mean)
			for i := range n {
				for j := range i + 1 {
					k, l := i, j
					if i >= at {
						k++
					}
					if j >= at {
						l++
					}
					if b.fisher[i*n+j] != of.fisher[k*(n+1)+l] || b.pendFisher[i*n+j] != of.pendFisher[k*(n+1)+l] {
						t.Errorf("%s: curvature %d %d differs", what, i, j)
					}
				}
			}
		}
	}

	m := withForest(rng)
	var e wire.Encoder
	if m.EncodeBlends(&e); len(e.Buf) > 0 {
		t.Errorf("blends with a forest take %d bytes of the section without", len(e.Buf))
	}
	m.EncodeExperts(&e)
	kept := newTestMixture()
	kept.AddForest()
	decode(kept, e.Buf, (*Mixture).DecodeExperts)
	var again wire.Encoder
	if kept.EncodeExperts(&again); !slices.Equal(again.Buf, e.Buf) {
		t.Error("decoding and encoding changes the bytes")
	}
	same("lost", m, decode(newTestMixture(), e.Buf, (*Mixture).DecodeExperts), true)

	old := newTestMixture()
	randomBlend(&old.ordered, rng)
	old.Learn(3)
	var o wire.Encoder
	old.EncodeBlends(&o)
	added := newTestMixture()
	added.AddForest()
	decode(added, o.Buf, (*Mixture).DecodeBlends)
	same("added", added, old, false)
	for b, v := range added.blends() {
		if n := len(b.mean); v.Exponents[at] != 0 || b.fisher[at*n+at] != forestPrior || b.fisher[at*n] != 0 {
			t.Errorf("the added forest has the exponent %v and the precision %v", v.Exponents[at], b.fisher[at*n+at])
		}
	}
}

// A mixture that is decoded encodes to the same bytes; numbers that are not finite
// are refused.
func TestEncode(t *testing.T) {
	m := newTestMixture()
	rng := rand.New(rand.NewPCG(4, 4))
	m.StartRegression()
	for _, b := range []*blend{&m.ordered, &m.plain} {
		randomBlend(b, rng)
	}
	m.Learn(3)
	for i := range 20 {
		m.NextLabel(i % 3)
		m.LearnRegression([]float64{rng.NormFloat64(), 1}, []int{i % 3}, []float64{1})
	}
	encode := func(m *Mixture) []byte {
		var e wire.Encoder
		m.EncodePool(&e)
		m.EncodeHorizons(&e)
		m.EncodeBlends(&e)
		m.EncodeRegression(&e)
		m.EncodeOrder(&e)
		return e.Buf
	}
	decode := func(m *Mixture, data []byte) error {
		d := wire.NewDecoder(data, "", wire.ErrState)
		m.DecodePool(d, 2)
		m.DecodeHorizons(d)
		m.DecodeBlends(d)
		m.DecodeRegression(d)
		m.DecodeOrder(d)
		return d.End()
	}
	data, again := encode(m), newTestMixture()
	if err := decode(again, data); err != nil || !slices.Equal(encode(again), data) {
		t.Errorf("%v; decoding and encoding changes the bytes", err)
	}
	w, squares, evidence := m.view.Pool.Stack.Linear.W, m.regression.squares, &m.view.Pool.Order.Steps[3].Evidence
	for name, spoil := range map[string]func(){
		"weight":   func() { w[4] = math.Inf(1) },
		"square":   func() { squares[4] = -1 },
		"squares":  func() { squares[4] = math.Inf(1) },
		"exponent": func() { m.view.Pool.Stack.Plain.Exponents[0] = math.Inf(-1) },
		"evidence": func() { evidence[2] = math.NaN() },
	} {
		weight, square, exponent, one := w[4], squares[4], m.view.Pool.Stack.Plain.Exponents[0], evidence[2]
		spoil()
		if err := decode(newTestMixture(), encode(m)); !errors.Is(err, wire.ErrState) {
			t.Errorf("%s: %v, want %v", name, err, wire.ErrState)
		}
		w[4], squares[4], m.view.Pool.Stack.Plain.Exponents[0], evidence[2] = weight, square, exponent, one
	}
}

// At the end of the warm-up members that differ in sharpness alone have the mean of
// their weights, and the experts of the features their first exponents; what each use of
// the chain is worth stays.
func TestEndWarmup(t *testing.T) {
	m := newTestMixture()
	for i := range m.members {
		m.members[i] = -0.3 * float64(i*i%11)
	}
	m.setMembers()
	worth := func() map[float64]float64 {
		sums := map[float64]float64{}
		for i, member := range model.Members {
			sums[member.Persistence] += m.view.Pool.Weights[i]
		}
		return sums
	}
	randomBlend(&m.ordered, rand.New(rand.NewPCG(4, 4)))
	m.Learn(4)
	before := worth()
	ordered := slices.Clone(m.view.Pool.Stack.Ordered.Exponents)
	m.EndWarmup()
	fresh, features := newTestMixture(), m.cfg.Horizons+1
	if m.cfg.Forest {
		features++
	}
	now, n := m.view.Pool.Stack.Ordered.Exponents, len(ordered)
	closeTo(t, "exponent of a feature", now[:features], fresh.view.Pool.Stack.Ordered.Exponents[:features], 0)
	closeTo(t, "exponent of the order", now[features:], ordered[features:], 0)
	for i := range features {
		closeTo(t, "curvature", m.ordered.fisher[i*n:i*n+i+1], fresh.ordered.fisher[i*n:i*n+i+1], 0)
	}
	for persistence, want := range before {
		if got := worth()[persistence]; !(math.Abs(got-want) < 1e-12) {
			t.Errorf("members of persistence %g have the weight %v, want %v", persistence, got, want)
		}
	}
	for i, a := range model.Members {
		for j, b := range model.Members {
			if v, w := m.view.Pool.Weights[i], m.view.Pool.Weights[j]; a.Persistence == b.Persistence && v != w {
				t.Errorf("members %d and %d have the weights %v and %v", i, j, v, w)
			}
		}
	}
	if top := slices.Max(m.members); top != 0 {
		t.Errorf("the largest log weight is %v, want 0", top)
	}
}
