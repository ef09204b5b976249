package mixture

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/online/wire"
)

// The section "stack" of earlier programs, with one blend and without expert H, is
// read into the ordered blend.
func TestDecodeStack(t *testing.T) {
	m := newTestMixture()
	randomBlend(&m.ordered, rand.New(rand.NewPCG(2, 2)))
	m.Learn(Together(4))
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
	x, n := &b.slow, len(b.slow.at)
	others(x.at, n)
	e.Floats(b.logw)
	e.Floats(b.pendLL)
	others(x.pendGrad, n)
	for i := range n {
		if i != out {
			others(x.curve[i*n:], i+1)
			others(x.pendCurve[i*n:], i+1)
		}
	}
	e.Bool(true)
	e.Floats(m.view.Pool.Order.Recent)

	old := newTestMixture()
	d := wire.NewDecoder(e.Buf, "", wire.ErrState)
	if old.DecodeStack(d); d.End() != nil {
		t.Fatal(d.Err())
	}
	s, want := &old.view.Pool.Stack, slices.Clone(x.at)
	want[out] = 0
	closeTo(t, "exponent", s.Ordered.Exponents, want, 0)
	closeTo(t, "latest label", old.view.Pool.Order.Recent, m.view.Pool.Order.Recent, 0)
	if s.Ordered.Weight != v.Ordered.Weight {
		t.Errorf("weight %v, want %v", s.Ordered.Weight, v.Ordered.Weight)
	}
	for i := range n {
		for j := range i + 1 {
			if got := old.ordered.fast.curve[i*n+j]; i != out && j != out && got != x.curve[i*n+j] {
				t.Errorf("curvature %d %d is %v, want %v", i, j, got, x.curve[i*n+j])
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
		for _, x := range b.own() {
			for i := range x.at {
				x.at[i] = rng.NormFloat64()
			}
			for i := range x.curve {
				x.curve[i] = rng.NormFloat64()
			}
		}
		b.publish(v)
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
	closeTo(t, "ordered exponent", s.Ordered.Exponents, []float64{0.4 / 3, 0.4 / 3, 0.4 / 3, 0.2, 0.4, 1, 0, 0, 0}, 1e-15)
	closeTo(t, "plain exponent", s.Plain.Exponents, []float64{0.4 / 3, 0.4 / 3, 0.4 / 3, 0.2, 0.4}, 1e-15)
	if slow, fast := m.plain.slow.curve[4*5+4], m.plain.fast.curve[4*5+4]; slow != forestPrior || fast != fastPrior*forestPrior {
		t.Errorf("precisions %v and %v, want %v and %v", slow, fast, forestPrior, fastPrior*forestPrior)
	}
	m.RestartForest()
	closeTo(t, "plain exponent", s.Plain.Exponents, []float64{0.8 / 3, 0.8 / 3, 0.8 / 3, 0.2, 0}, 1e-15)
}

// Blends are carried over between mixtures with and without a forest: the exponents of
// the others stay, and the horizons inherit that of a forest that is lost.
func TestDecodeWithAndWithoutForest(t *testing.T) {
	const at = 4
	rng := rand.New(rand.NewPCG(5, 5))
	without := func(x []float64) []float64 { return slices.Delete(slices.Clone(x), at, at+1) }
	decode := func(m *Mixture, data []byte) *Mixture {
		t.Helper()
		d := wire.NewDecoder(data, "", wire.ErrState)
		if m.DecodeBlends(d, d.Bool()); d.End() != nil {
			t.Fatal(d.Err())
		}
		return m
	}
	same := func(name string, large, small *Mixture, inherited bool) {
		t.Helper()
		all := map[*blend]*blend{&small.ordered: &large.ordered, &small.plain: &large.plain}
		for one, other := range all {
			for i, x := range one.own() {
				of := other.own()[i]
				exponents := slices.Clone(of.at)
				for h := range 3 {
					if inherited {
						exponents[h] += exponents[at] / 3
					}
				}
				closeTo(t, name+": exponent", x.at, without(exponents), 1e-15)
				closeTo(t, name+": gradient", x.pendGrad, without(of.pendGrad), 0)
				n := len(x.at)
				for i := range n {
					for j := range i + 1 {
						k, l := i, j
						if i >= at {
							k++
						}
						if j >= at {
							l++
						}
						if x.curve[i*n+j] != of.curve[k*(n+1)+l] || x.pendCurve[i*n+j] != of.pendCurve[k*(n+1)+l] {
							t.Errorf("%s: curvature %d %d differs", name, i, j)
						}
					}
				}
			}
		}
	}

	m := withForest(rng)
	var e wire.Encoder
	m.EncodeBlends(&e)
	kept := newTestMixture()
	kept.AddForest()
	decode(kept, e.Buf)
	var again wire.Encoder
	if kept.EncodeBlends(&again); !slices.Equal(again.Buf, e.Buf) {
		t.Error("decoding and encoding changes the bytes")
	}
	same("lost", m, decode(newTestMixture(), e.Buf), true)

	old := newTestMixture()
	randomBlend(&old.ordered, rng)
	old.Learn(Together(3))
	var o wire.Encoder
	old.EncodeBlends(&o)
	added := newTestMixture()
	added.AddForest()
	decode(added, o.Buf)
	same("added", added, old, false)
	for b, v := range added.blends() {
		if n, x := len(v.Exponents), &b.slow; v.Exponents[at] != 0 || x.curve[at*n+at] != forestPrior || x.curve[at*n] != 0 {
			t.Errorf("the added forest has the exponent %v and the precision %v", v.Exponents[at], x.curve[at*n+at])
		}
	}
}

// encodeFormer appends the blends as programs with one learner for each did.
func (m *Mixture) encodeFormer(e *wire.Encoder) {
	for b := range m.blends() {
		x := &b.slow
		e.Floats(x.at)
		e.Floats(b.logw)
		e.Floats(b.pendLL)
		e.Floats(x.pendGrad)
		for i := range x.at {
			e.Floats(x.curve[i*len(x.at) : i*len(x.at)+i+1])
			e.Floats(x.pendCurve[i*len(x.at) : i*len(x.at)+i+1])
		}
	}
	e.Bool(false)
}

// The blends of earlier programs are read into both learners, with a forest and without.
func TestDecodeFormer(t *testing.T) {
	for name, m := range map[string]*Mixture{"with a forest": withForest(rand.New(rand.NewPCG(6, 6))), "without": newTestMixture()} {
		randomBlend(&m.plain, rand.New(rand.NewPCG(8, 8)))
		var e wire.Encoder
		m.encodeFormer(&e)
		again := newTestMixture()
		if m.cfg.Forest {
			again.AddForest()
		}
		d := wire.NewDecoder(e.Buf, "", wire.ErrState)
		if again.DecodeFormer(d, m.cfg.Forest); d.End() != nil {
			t.Fatal(d.Err())
		}
		for _, pair := range [][2]*blend{{&again.ordered, &m.ordered}, {&again.plain, &m.plain}} {
			for _, x := range pair[0].own() {
				of := &pair[1].slow
				closeTo(t, name+": exponent", x.at, of.at, 0)
				closeTo(t, name+": gradient", x.pendGrad, of.pendGrad, 0)
				n := len(x.at)
				for i := range n {
					closeTo(t, name+": curvature", x.curve[i*n:i*n+i+1], of.curve[i*n:i*n+i+1], 0)
				}
			}
		}
	}
}

// Whatever is read, the blends stay finite or the state is refused.
func FuzzDecodeBlends(f *testing.F) {
	for _, forest := range []bool{false, true} {
		m := newTestMixture()
		if forest {
			m = withForest(rand.New(rand.NewPCG(9, 9)))
		}
		var e wire.Encoder
		m.EncodeBlends(&e)
		f.Add(e.Buf)
		m.ordered.slow.at[0], m.ordered.fast.at[0] = -math.MaxFloat64, math.MaxFloat64
		e.Buf = nil
		m.EncodeBlends(&e)
		f.Add(e.Buf)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, forest := range []bool{false, true} {
			m := newTestMixture()
			if forest {
				m.AddForest()
			}
			d := wire.NewDecoder(data, "", wire.ErrState)
			if m.DecodeBlends(d, d.Bool()); d.End() != nil {
				continue
			}
			for b, v := range m.blends() {
				for _, x := range append(slices.Concat(v.Exponents, b.slow.curve, b.fast.curve, b.logw, b.lead[:]), v.Weight) {
					if x-x != 0 {
						t.Fatalf("%v is not finite", x)
					}
				}
			}
		}
	})
}
