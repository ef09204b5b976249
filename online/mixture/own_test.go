package mixture

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/online/wire"
)

// withOwn returns a mixture in a fleet of which both answers have learnt.
func withOwn() *Mixture {
	m := newTestMixture()
	learnRandom(m, 1, 10)
	m.Join([]int{0, 1, 2}, Ahead)
	learnRandom(m, 2, 10)
	learnRandom(m.own.Mixture, 3, 10)
	for i := range m.own.members {
		m.own.members[i] = -float64(i)
	}
	m.own.weigh(1, 0.2, 0.8)
	m.own.frequencies.odds = 3
	return m
}

// A fleet's answers learn without a trace in the answer without it: when the fleet ends,
// the mixture is as if it had not been.
func TestOwnIsWithoutFleet(t *testing.T) {
	m, alone := newTestMixture(), newTestMixture()
	for _, m := range []*Mixture{m, alone} {
		learnRandom(m, 1, 10)
	}
	m.Join([]int{0, 1, 2}, Ahead)
	view, share := m.Own()
	if !slices.Equal(view.Weights, alone.view.Weights) || !(share > 0.5 && share < 1) {
		t.Errorf("weights %v and share %v at first", view.Weights, share)
	}
	learnRandom(m, 2, 10)
	learnRandom(m.own.Mixture, 3, 10)
	learnRandom(alone, 3, 10)
	m.Join([]int{0, 2}, Ahead) // other horizons
	if other, _ := m.Own(); other != view {
		t.Error("the answer without the fleet begins again with other horizons")
	}
	for end := range 2 {
		closeTo(t, "exponent", view.Pool.Stack.Plain.Exponents, alone.view.Pool.Stack.Plain.Exponents, 0)
		closeTo(t, "exponent", view.Pool.Stack.Ordered.Exponents, alone.view.Pool.Stack.Ordered.Exponents, 0)
		closeTo(t, "weight of a member", view.Pool.Weights, alone.view.Pool.Weights, 0)
		closeTo(t, "weight of a horizon", view.Weights, alone.view.Weights, 0)
		if end == 0 {
			m.Join(nil, 0)
			view = m.view
		}
	}
	if own, share := m.Own(); own != nil || share != 1 {
		t.Errorf("without a fleet: %v, %v", own, share)
	}
}

// The weights follow the evidence of the latest labels.
func TestOwnFollowsTheEvidence(t *testing.T) {
	m := withOwn()
	for range 200 {
		m.own.weigh(1, 0.5, 0.6)
	}
	if _, share := m.Own(); share > 0.02 {
		t.Errorf("share %v of the worse answer", share)
	}
	for range 60 { // the steady weight forgets less
		m.own.weigh(1, 0.6, 0.5)
	}
	if _, share := m.Own(); share < 0.95 {
		t.Errorf("share %v of the better answer", share)
	}
	m = withOwn()
	for range 1500 {
		m.own.weigh(1, 0.51, 0.5)
	}
	if _, share := m.Own(); m.own.fast.share() > 0.8 || share < 0.99 {
		t.Errorf("shares %v and %v of an answer that is a little better", m.own.fast.share(), share)
	}
}

// Whatever the labels, the mixture of both answers is little worse than the better one.
func TestOwnRegret(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 6))
	for _, edge := range []float64{-0.2, -0.05, 0, 0.05, 0.2} {
		m := withOwn()
		var with, own, mixed float64
		for range 3000 {
			p := 0.3 + 0.4*rng.Float64()
			q := min(max(p*math.Exp(-edge+0.3*rng.NormFloat64()), 0.01), 0.99)
			_, share := m.Own()
			with, own, mixed = with-math.Log(p), own-math.Log(q), mixed-math.Log(q+share*(p-q))
			m.own.weigh(1, p, q)
		}
		if best := min(with, own); mixed > best+3 {
			t.Errorf("with %.1f, without %.1f, mixed %.1f nats", with, own, mixed)
		}
	}
}

// A state continues to the last bit.
func TestOwnIsRestored(t *testing.T) {
	m := withOwn()
	var blends, own wire.Encoder
	m.EncodeBlends(&blends)
	m.EncodeOwn(&own)
	again := inFleet()
	readAll(t, &blends, func(d *wire.Decoder) { again.DecodeBlends(d, d.Bool()) })
	readAll(t, &own, again.DecodeOwn)
	var twice wire.Encoder
	if again.EncodeOwn(&twice); !slices.Equal(twice.Buf, own.Buf) {
		t.Error("the state is another one")
	}
	view, share := again.Own()
	want, wantShare := m.Own()
	m.own.setMembers()
	closeTo(t, "exponent", view.Pool.Stack.Plain.Exponents, want.Pool.Stack.Plain.Exponents, 0)
	closeTo(t, "weight of a member", view.Pool.Weights, want.Pool.Weights, 0)
	if share != wantShare || m.own.frequencies != again.own.frequencies {
		t.Errorf("share %v, want %v", share, wantShare)
	}
	d := wire.NewDecoder(own.Buf, "", wire.ErrState)
	if newTestMixture().DecodeOwn(d); d.End() == nil {
		t.Error("an answer without the fleet is read where there is none")
	}
}

func FuzzDecodeOwn(f *testing.F) {
	var e wire.Encoder
	withOwn().EncodeOwn(&e)
	f.Add(e.Buf)
	f.Fuzz(func(t *testing.T, data []byte) {
		m, d := inFleet(), wire.NewDecoder(data, "", wire.ErrState)
		if m.DecodeOwn(d); d.End() != nil {
			return
		}
		view, share := m.Own()
		for _, v := range append(view.Pool.Weights, share, view.Pool.Prior) {
			if v-v != 0 {
				t.Fatalf("weights %v, share %v, prior %v", view.Pool.Weights, share, view.Pool.Prior)
			}
		}
		learnRandom(m.own.Mixture, 3, 1)
	})
}
