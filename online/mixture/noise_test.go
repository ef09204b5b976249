package mixture

import (
	"math"
	"math/rand/v2"
	"testing"

	"edge/model"
	"edge/online/wire"
)

// predictNoisy leaves a prediction in ws whose parts say p for the first class, at equal
// frequencies.
func predictNoisy(m *Mixture, p float64, ws *model.Workspace) {
	m.view.Counts = []uint64{9999, 9999}
	parts := []float32{1, float32(math.Log(p)), float32(math.Log(1 - p)), 0.5, 0.5}
	for range len(m.view.Pool.Stack.Plain.Exponents) {
		parts = append(parts, parts[1], parts[2])
	}
	if !m.view.Recall(parts, ws) {
		panic("parts do not fit")
	}
}

// newNoisy returns a mixture of one horizon over two classes whose answer is that of the
// horizon, with noise.
func newNoisy(cfg Config) *Mixture {
	cfg.Features, cfg.Horizons = 2, 1
	view := &model.Posterior{
		Names: []string{"a", "b"}, Counts: make([]uint64, 2), Bases: []*model.Basis{model.NewBasis(2, 2)}, Bank: make([]model.Gaussian, 1),
	}
	m := New(cfg, view)
	m.ResetHorizons()
	m.Grow(0)
	m.StartNoise(false)
	return m
}

// Labels of which a known share is wrong, whatever the sample is, are learnt as such: the
// answer, which is unsure and has half of the log odds, becomes sharp where it says little
// about wrong labels, and the loss comes near to the entropy of the labels.
func TestNoiseLearnt(t *testing.T) {
	m := newNoisy(Config{})
	rng := rand.New(rand.NewPCG(3, 3))
	var ws model.Workspace
	var loss, before, best float64
	const batches, size, share = 300, 16, 0.2 // a share of 0.2 follows the frequencies: 0.1 are wrong
	x := &m.noise
	for i := range batches {
		for range size {
			odds := 0.5 + 3*rng.Float64()
			p, truth := 1/(1+math.Exp(-odds)), 1/(1+math.Exp(-3*odds))
			q := (1-share)*truth + share/2
			k := 0
			if rng.Float64() > q {
				k = 1
			}
			predictNoisy(m, p, &ws)
			n := m.view.Pool.Noise
			if i >= batches/2 {
				sharp := 1 / (1 + math.Exp(-n.Sharpness*odds))
				answer := (1-n.Weight)*p + n.Weight*((1-n.Share)*sharp+n.Share/2)
				for sum, v := range map[*float64]float64{&loss: answer, &before: p, &best: q} {
					if k == 1 {
						v = 1 - v
					}
					*sum -= math.Log(v) / (batches / 2 * size)
				}
			}
			x.observe(k, 1, &ws)
		}
		x.learn(Together(size))
		m.setNoise()
	}
	if n := m.view.Pool.Noise; math.Abs(n.Share-share) > 0.06 || n.Sharpness < 1.8 || n.Weight < 0.9 {
		t.Errorf("learnt %+v, want a share of %v, a sharpness of about 3 and a weight near 1", n, share)
	}
	if loss > best+0.25*(before-best) {
		t.Errorf("log loss %.4f, without noise %.4f, best %.4f", loss, before, best)
	}
}

// Evidence of a few minibatches does not outvote that of the others, and a vote of many
// does not outvote the sum.
func TestNoiseVotes(t *testing.T) {
	for name, c := range map[string]struct {
		evidence func(i int) float64
		wins     bool
	}{
		"wrong labels at any time": {func(int) float64 { return 0.3 }, true},
		"bursts of errors":         {func(i int) float64 { return map[bool]float64{true: 20, false: -0.2}[i%20 == 0] }, false},
		"rare errors that cost":    {func(i int) float64 { return map[bool]float64{true: -20, false: 0.5}[i%20 == 0] }, false},
	} {
		m := newNoisy(Config{})
		for i := range 200 {
			m.noise.pending[5] = c.evidence(i)
			m.noise.learn(Together(16))
		}
		m.setNoise()
		if w := m.view.Pool.Noise.Weight; (w > 0.9) != c.wins || (w < 0.1) == c.wins {
			t.Errorf("%s: weight %v", name, w)
		}
	}
}

// Requested labels and labels that weigh by class are not judged; a model that is trusted
// answers as before.
func TestNoiseOff(t *testing.T) {
	for _, cfg := range []Config{{FewLabels: true}, {Weighted: true}} {
		if n := newNoisy(cfg).view.Pool.Noise; n != (model.Noise{}) {
			t.Errorf("%+v has %+v", cfg, n)
		}
	}
	m := newTestMixture()
	m.TrustBank()
	if w := m.view.Pool.Noise.Weight; w > 1e-12 {
		t.Errorf("weight %v of a trusted model, want none", w)
	}
}

// A minibatch that is filling continues to the same bits, with a fleet as without; no prefix
// of a state is accepted, and no number that is no number.
func TestEncodeNoise(t *testing.T) {
	for _, fleet := range []bool{false, true} {
		a, b := newNoisy(Config{}), newNoisy(Config{})
		for _, m := range []*Mixture{a, b} {
			if fleet {
				m.startOwn()
			}
		}
		rng := rand.New(rand.NewPCG(1, 2))
		a.noise.at = [2]float64{0.7, -1}
		a.noise.ahead, a.noise.pending[3] = [2]float64{rng.NormFloat64(), rng.NormFloat64()}, rng.NormFloat64()
		if fleet {
			a.own.noise.curve[1] = 0.25
		}
		a.setNoise()
		var e wire.Encoder
		a.EncodeNoise(&e)
		readAll(t, &e, b.DecodeNoise)
		if b.noise != a.noise || b.view.Pool.Noise != a.view.Pool.Noise || fleet && b.own.noise != a.own.noise {
			t.Errorf("decoded %+v, want %+v", b.noise, a.noise)
		}
		for n := range e.Buf {
			d := wire.NewDecoder(e.Buf[:n], "", wire.ErrState)
			if b.DecodeNoise(d); d.End() == nil {
				t.Errorf("%d of %d bytes were accepted", n, len(e.Buf))
			}
		}
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), 1e200} {
		m := newNoisy(Config{})
		m.noise.curve[0] = bad
		var e wire.Encoder
		m.EncodeNoise(&e)
		d := wire.NewDecoder(e.Buf, "", wire.ErrState)
		if m.DecodeNoise(d); d.End() == nil {
			t.Errorf("a curvature of %v was accepted", bad)
		}
	}
}
