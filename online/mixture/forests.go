package mixture

import (
	"edge/model"
	"edge/online/wire"
)

// memberForests weighs the members' forests and the own one, by the answers that the blend
// has given with either of them. The evidence of the forests' own answers would not do: on
// streams that drift, forests with the better answers made those of the blend worse,
// because the horizons of the fleet knew the same.
type memberForests struct {
	on bool
	duel
}

// JoinForests lets the forests of members answer together with the own one, as one
// expert with the exponents that the own one has, or with on = false no longer. Both sides
// begin with the same weight.
func (m *Mixture) JoinForests(on bool) {
	if on == m.fleet.forests.on {
		return
	}
	m.fleet.forests = memberForests{on: on}
}

// ForestShare is the weight of the members' forests against the own one.
func (m *Mixture) ForestShare() float64 { return m.fleet.forests.share() }

// ObserveForests adds the evidence of a sample of a class, with that weight, about the
// members' forests; the last prediction of the view is in ws.
func (m *Mixture) ObserveForests(class int, weight float64, ws *model.Workspace) {
	if m.fleet.forests.on {
		members, own := ws.ForestAnswers(m.view)
		m.fleet.forests.observe(class, weight, members, own)
	}
}

// learnForests updates the weight by the n samples of the minibatch.
func (m *Mixture) learnForests(n int) {
	if m.fleet.forests.on {
		m.fleet.forests.learnFast(n, stackMemory)
	}
}

// EncodeForests appends the weight of the members' forests.
func (m *Mixture) EncodeForests(e *wire.Encoder) { m.fleet.forests.encode(e) }

// DecodeForests reads the values that EncodeForests wrote.
func (m *Mixture) DecodeForests(d *wire.Decoder) {
	m.fleet.forests.on = true
	m.fleet.forests.decode(d, "forests' weight")
}
