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
	twoAnswers
}

// forestLead is the log weight by which the members' forests begin ahead of the own one.
const forestLead = 2

// JoinForests lets the forests of members answer together with the own one, as one
// expert, or with on = false no longer. The members' begin ahead, and the expert with the
// exponent of a first forest at least: they have learnt from more labels.
func (m *Mixture) JoinForests(on bool) {
	if on == m.fleet.forests.on {
		return
	}
	m.fleet.forests = memberForests{on: on}
	if !on {
		return
	}
	m.fleet.forests.logw[1] = -forestLead
	f := m.forestExpert()
	for b, v := range m.blends() {
		for _, x := range b.own() {
			x.at[f] = max(x.at[f], forestShare)
		}
		b.publish(v)
	}
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

// learnForests updates the weight by the samples of the minibatch.
func (m *Mixture) learnForests(b Batch) {
	if m.fleet.forests.on {
		m.fleet.forests.learnFast(b, stackMemory)
	}
}

// EncodeForests appends the weight of the members' forests.
func (m *Mixture) EncodeForests(e *wire.Encoder) { m.fleet.forests.encode(e) }

// DecodeForests reads the values that EncodeForests wrote.
func (m *Mixture) DecodeForests(d *wire.Decoder) {
	m.fleet.forests.on = true
	m.fleet.forests.decode(d, "forests' weight")
}
