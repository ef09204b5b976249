package mixture

import (
	"math"
	"math/rand/v2"
	"testing"

	"edge/model"
	"edge/online/wire"
)

// The weight is that of the logistic function of the sum of bounded votes.
func TestFrequenciesVote(t *testing.T) {
	m := newTestMixture()
	odds := firstOdds
	for i, evidence := range []float64{0.5, -40, -1.25, 300, 0} {
		m.frequencies.pending = evidence
		m.Learn(Together(100))
		odds += min(max(evidence, -maxVote), maxVote)
		if got, want := m.view.Pool.Prior, 1/(1+math.Exp(odds)); math.Abs(got-want) > 1e-15 {
			t.Errorf("after minibatch %d: weight %v, want %v", i, got, want)
		}
	}
	for _, evidence := range []float64{-1, 1} {
		for range 100 {
			m.frequencies.pending = evidence
			m.Learn(Together(100))
		}
		if got, want := m.frequencies.odds, evidence*maxOdds; got != want {
			t.Errorf("odds %v after 100 votes of %v, want %v", got, evidence, want)
		}
	}
}

// Before a state has earned a weight for the frequencies they do not count, and
// neither do those of requested labels or of samples weighted by class.
func TestFrequenciesDistrusted(t *testing.T) {
	m := newTestMixture()
	m.TrustBank()
	if w := m.view.Pool.Prior; w > 1e-12 {
		t.Errorf("weight %v, want none", w)
	}
	m.frequencies.pending = 5
	m.Learn(Together(1))
	if w := m.view.Pool.Prior; w > 1e-12 {
		t.Errorf("weight %v after evidence against it, want none", w)
	}
	for _, cfg := range []Config{{Features: 2, Horizons: 3, FewLabels: true}, {Features: 2, Horizons: 3, Weighted: true}} {
		m := New(cfg, &model.Posterior{})
		for range 10 {
			m.frequencies.pending = -5
			m.Learn(Together(1))
		}
		if w := m.view.Pool.Prior; w != 0 {
			t.Errorf("weight %v under %+v, want 0", w, cfg)
		}
	}
}

// Where features say nothing and mislead by a little, the loss is that of the
// frequencies and a few minibatches; where they inform it is that of the features.
// The reference computes the loss from the definition, without logarithms.
func TestFrequenciesRegret(t *testing.T) {
	const batches, size = 60, 100
	for name, c := range map[string]struct {
		right, limit float64 // probability of the label by the features, where π has 0.6; largest regret in nats
	}{
		"misleading":  {0.55, 25}, // 8.7 nats a minibatch
		"informative": {0.8, 5},   // 28.8 nats a minibatch
	} {
		m := newTestMixture()
		var loss float64
		for range batches {
			w := m.view.Pool.Prior
			for range size {
				loss -= math.Log((1-w)*c.right + w*0.6)
			}
			m.frequencies.pending = size * math.Log(c.right/0.6)
			m.Learn(Together(size))
		}
		best := -batches * size * math.Log(max(c.right, 0.6))
		if regret := loss - best; !(regret >= 0 && regret < c.limit) {
			t.Errorf("%s features: %.2f nats more than the better of both, want at most %v", name, regret, c.limit)
		}
	}
}

// A minibatch that is filling continues to the same bits.
func TestEncodeFrequencies(t *testing.T) {
	a, b := newTestMixture(), newTestMixture()
	rng := rand.New(rand.NewPCG(1, 2))
	a.frequencies = frequencies{odds: rng.NormFloat64(), pending: rng.NormFloat64()}
	a.setFrequencies()
	var e wire.Encoder
	a.EncodeFrequencies(&e)
	d := wire.NewDecoder(e.Buf, "", wire.ErrState)
	if b.DecodeFrequencies(d); d.End() != nil {
		t.Fatal(d.Err())
	}
	if b.frequencies != a.frequencies || b.view.Pool.Prior != a.view.Pool.Prior {
		t.Errorf("decoded %+v, weight %v, want %+v, %v", b.frequencies, b.view.Pool.Prior, a.frequencies, a.view.Pool.Prior)
	}
	for n := range e.Buf {
		d := wire.NewDecoder(e.Buf[:n], "", wire.ErrState)
		if b.DecodeFrequencies(d); d.End() == nil {
			t.Errorf("%d of %d bytes were accepted", n, len(e.Buf))
		}
	}
}

func FuzzDecodeFrequencies(f *testing.F) {
	var e wire.Encoder
	newTestMixture().EncodeFrequencies(&e)
	f.Add(e.Buf)
	f.Fuzz(func(t *testing.T, data []byte) {
		m := newTestMixture()
		d := wire.NewDecoder(data, "", wire.ErrState)
		m.DecodeFrequencies(d)
		m.Learn(Together(3)) // what was accepted can be used
		if w := m.view.Pool.Prior; d.Err() == nil && !(w >= 0 && w <= 1) {
			t.Errorf("weight %v", w)
		}
	})
}
