package mixture

import (
	"math"
	"testing"
)

// Labels of a delay that are learnt one by one move the weights and exponents by as much in all
// as those of one minibatch do; the weights with the long memory as one label does.
func TestLateLabelsCountTogether(t *testing.T) {
	const late = 16
	const fade = late * late / 2. / memory // what the short memory forgets between the first label and the last one
	learn := func(b Batch, times int) *Mixture {
		m := newTestMixture()
		for range times {
			n := float64(b.N)
			m.pending[1] = 0.01 * n
			m.frequencies.pending = -3 * n
			m.plain.slow.pendGrad[0], m.plain.fast.pendGrad[0] = 1e-4*n, 1e-4*n
			m.plain.slow.pendLL, m.plain.pendLL[1] = 0.01*n, 0.01*n
			evidence := make([]float64, m.cfg.Horizons)
			evidence[0] = 0.01 * n
			m.WeighHorizons(evidence, b)
			m.Learn(b)
		}
		return m
	}
	values := func(m *Mixture) map[string]float64 {
		return map[string]float64{
			"horizon": m.horizons[0] - m.horizons[1], "member": m.members[1] - m.members[0],
			"votes": m.frequencies.odds - firstOdds,
			"slow":  m.plain.slow.at[0] - start(m), "fast": m.plain.fast.at[0] - start(m),
		}
	}
	together, single, one := values(learn(Together(late), 1)), learn(Batch{N: 1, Alike: late}, late), learn(Together(1), 1)
	for name, want := range together {
		if got := values(single)[name]; want == 0 || math.Abs(got/want-1) > fade {
			t.Errorf("%s moves by %v with late labels, by %v in a minibatch", name, got, want)
		}
	}
	for name, of := range map[string]func(*Mixture) float64{
		"lead":   func(m *Mixture) float64 { return m.plain.lead[0] - m.plain.lead[1] - slowLead },
		"answer": func(m *Mixture) float64 { return m.plain.logw[1] - m.plain.logw[0] },
	} {
		if got, want := of(single), of(one); want == 0 || math.Abs(got/want-1) > slowLead*late/float64(stackMemory)/want {
			t.Errorf("%s moves by %v with late labels, by %v with one label", name, got, want)
		}
	}
}

// start is the first exponent of a horizon.
func start(m *Mixture) float64 {
	_, v := m.newBlend(false)
	return v.Exponents[0]
}

func TestBatchWeights(t *testing.T) {
	for _, c := range []struct {
		b                      Batch
		part, root, once, most float64 // most of 16
	}{
		{Together(1), 1, 1, 1, 1},
		{Together(16), 1, 0.25, 0.25, 1},
		{Together(64), 1, 0.125, 0.125, 0.25},
		{Batch{1, 100}, 0.01, 0.1, 0.01, 0.16},
		{Batch{4, 100}, 0.04, 0.1, 0.02, 0.16},
	} {
		for name, pair := range map[string][2]float64{
			"part": {c.b.part(), c.part}, "root": {c.b.root(), c.root}, "once": {c.b.once(), c.once}, "most": {c.b.most(16), c.most},
		} {
			if math.Abs(pair[0]-pair[1]) > 1e-15 {
				t.Errorf("%s of %+v is %v, want %v", name, c.b, pair[0], pair[1])
			}
		}
	}
}
