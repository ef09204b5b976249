package mixture

import (
	"math"

	"edge/model"
	"edge/online/wire"
)

// duel weighs the members' forests and the own one, by the answers that the blend has
// given with either of them. The evidence of the forests' own answers would not do: on
// streams that drift, forests with the better answers made those of the blend worse,
// because the horizons of the fleet knew the same.
type duel struct {
	on         bool
	logw, pend [2]float64 // of the members' answer and of the own one, the larger 0; their evidence in the minibatch that is filling
}

// JoinForests lets the forests of members answer together with the own one, as one
// expert with the exponents that the own one has, or with on = false no longer. Both sides
// begin with the same weight.
func (m *Mixture) JoinForests(on bool) {
	if on == m.fleet.forests.on {
		return
	}
	m.fleet.forests = duel{on: on}
}

// ForestShare is the weight of the members' forests against the own one.
func (m *Mixture) ForestShare() float64 {
	f := &m.fleet.forests
	return 1 / (1 + math.Exp(f.logw[1]-f.logw[0]))
}

// ObserveForests adds the evidence of a sample of a class, with that weight, about the
// members' forests; the last prediction of the view is in ws.
func (m *Mixture) ObserveForests(class int, weight float64, ws *model.Workspace) {
	if !m.fleet.forests.on {
		return
	}
	members, own := ws.ForestAnswers(m.view)
	for i, probs := range [...][]float64{members, own} {
		if class < len(probs) {
			m.fleet.forests.pend[i] += weight * math.Log(max(probs[class], minProb))
		}
	}
}

// learnForests updates the weight by the n samples of the minibatch.
func (m *Mixture) learnForests(n int) {
	if f := &m.fleet.forests; f.on {
		weigh(f.logw[:], f.pend[:], n, stackMemory)
		clear(f.pend[:])
	}
}

// EncodeForests appends the weight of the members' forests.
func (m *Mixture) EncodeForests(e *wire.Encoder) {
	e.Floats(m.fleet.forests.logw[:])
	e.Floats(m.fleet.forests.pend[:])
}

// DecodeForests reads the values that EncodeForests wrote.
func (m *Mixture) DecodeForests(d *wire.Decoder) {
	f := &m.fleet.forests
	f.on = true
	d.Fill(f.logw[:], "forests' weight")
	d.Fill(f.pend[:], "forests' weight")
}
