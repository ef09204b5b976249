package mixture

import (
	"math"

	"edge/model"
	"edge/online/wire"
)

// frequencies learns model.Pool.Prior, the weight of the class frequencies against
// the answer of features and order p. Every minibatch votes by its evidence:
//
//	odds ← odds + clip(Σ_i log p(y_i | x_i)/π(y_i), ±v),   Prior = 1/(1 + e^odds)
//
// with v = maxVote, and less of it where minibatches share a vote because their errors are alike.
// The errors of a minibatch are alike, so that one that p fails to predict must not
// outvote all others. Where features have nothing to do with the label, each label counts for
// little, and its evidence must not be discounted as in weigh. The bound on the odds lets
// the frequencies answer soon where the features lose their meaning, and the
// features where they gain one.
//
// Source: Herbster & Warmuth (1998), "Tracking the best expert", for bounded odds.
type frequencies struct {
	odds    float64 // log odds of the answer p
	pending float64 // Σ log p/π of the minibatch that is filling
}

const (
	firstOdds = 4.0 // a weight of 0.02 for the frequencies
	maxVote   = 2.0 // nats of a minibatch
	maxOdds   = 12.0
)

// observe adds the evidence of a sample of class k, with that weight, of which the
// last prediction is in ws.
func (f *frequencies) observe(k int, weight float64, ws *model.Workspace) {
	p, pi := ws.Informed()
	f.pending += weight * math.Log(max(p[k], minProb)/max(pi[k], minProb))
}

// learn takes the vote of the minibatch. Odds beyond the bound, with which older
// states begin, do not grow.
func (f *frequencies) learn(b Batch) {
	most := maxVote * b.part()
	vote := min(max(f.pending, -most), most)
	f.odds = max(min(f.odds+vote, max(f.odds, maxOdds)), -maxOdds)
	f.pending = 0
}

// setFrequencies stores the weight of the frequencies in the view. Those of
// requested labels are not the stream's, and have no weight.
func (m *Mixture) setFrequencies() {
	m.view.Pool.Prior = 1 / (1 + math.Exp(m.frequencies.odds))
	if m.cfg.FewLabels || m.cfg.Weighted {
		m.view.Pool.Prior = 0
	}
}

// distrustFrequencies lets the frequencies earn their weight.
func (m *Mixture) distrustFrequencies() {
	m.frequencies = frequencies{odds: -earned}
	m.setFrequencies()
}

// EncodeFrequencies appends the weight of the class frequencies.
func (m *Mixture) EncodeFrequencies(e *wire.Encoder) {
	e.Float(m.frequencies.odds)
	e.Float(m.frequencies.pending)
}

// DecodeFrequencies reads the values that EncodeFrequencies wrote.
func (m *Mixture) DecodeFrequencies(d *wire.Decoder) {
	m.frequencies.odds = d.Number("odds of the class frequencies")
	m.frequencies.pending = d.Number("evidence of the class frequencies")
	m.setFrequencies()
}
