package mixture

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

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

// readAll reads what e holds, to the last byte.
func readAll(t *testing.T, e *wire.Encoder, decode func(*wire.Decoder)) {
	t.Helper()
	d := wire.NewDecoder(e.Buf, "", wire.ErrState)
	if decode(d); d.End() != nil {
		t.Fatal(d.Err())
	}
}

// The weights of the horizons follow the evidence; Undo restores them.
func TestHorizons(t *testing.T) {
	m := newTestMixture()
	closeTo(t, "first weight", m.view.Weights, []float64{1. / 3, 1. / 3, 1. / 3}, 1e-15)
	m.Save()
	m.WeighHorizons([]float64{-1, -2, -3}, Together(4))
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
	m.Learn(Together(10))
	w := m.view.Pool.Weights
	if !(w[0] > w[1] && w[1] > w[2] && w[2] > w[3]) || w[0] != w[4] || w[0] != w[8] {
		t.Errorf("weights %v do not follow the evidence", w)
	}
	before := w[3]
	for range 100 { // evidence is forgotten
		m.Learn(Together(50))
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

// A mixture that is decoded encodes to the same bytes; numbers that are not finite
// are refused.
func TestEncode(t *testing.T) {
	m := newTestMixture()
	rng := rand.New(rand.NewPCG(4, 4))
	m.StartRegression()
	for _, b := range []*blend{&m.ordered, &m.plain} {
		randomBlend(b, rng)
	}
	m.Learn(Together(3))
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
		m.DecodeBlends(d, d.Bool())
		m.DecodeRegression(d)
		m.DecodeOrder(d)
		return d.End()
	}
	data, again := encode(m), newTestMixture()
	if err := decode(again, data); err != nil || !slices.Equal(encode(again), data) {
		t.Errorf("%v; decoding and encoding changes the bytes", err)
	}
	order, covariance := &m.view.Pool.Order, m.view.Pool.Stack.Linear.V
	for name, spoil := range map[string]struct {
		at *float64
		to float64
	}{
		"weight":        {&m.view.Pool.Stack.Linear.W[4], math.Inf(1)},
		"variance":      {&covariance[2], -1},
		"covariance":    {&covariance[4], math.Inf(1)},
		"exponent":      {&m.plain.fast.at[0], math.Inf(-1)},
		"evidence":      {&order.Steps[3].Evidence[2], math.NaN()},
		"moves":         {&order.Steps[3].Evidence[2], math.Inf(1)},
		"latest labels": {&order.Recent[1], math.Inf(1)},
		"path":          {&m.order.paths[0], math.Inf(1)},
		"member":        {&m.members[2], math.Inf(1)},
		"horizon":       {&m.horizons[1], math.Inf(-1)},
		"blend":         {&m.ordered.logw[0], math.Inf(1)},
	} {
		was := *spoil.at
		*spoil.at = spoil.to
		if err := decode(newTestMixture(), encode(m)); !errors.Is(err, wire.ErrState) {
			t.Errorf("%s: %v, want %v", name, err, wire.ErrState)
		}
		*spoil.at = was
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
	m.Learn(Together(4))
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
		for l, x := range m.ordered.own() {
			closeTo(t, "curvature", x.curve[i*n:i*n+i+1], fresh.ordered.own()[l].curve[i*n:i*n+i+1], 0)
		}
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
