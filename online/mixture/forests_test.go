package mixture

import (
	"math"
	"testing"

	"edge/model"
	"edge/online/wire"
)

// The weight of the members' forests follows the evidence, is restored with what the
// minibatch that is filling has brought, and begins again with each fleet.
func TestMembersShare(t *testing.T) {
	m := newTestMixture()
	m.AddForest()
	m.JoinForests(true)
	first := math.Exp(forestLead) // odds
	closeTo(t, "first share", []float64{m.ForestShare()}, []float64{first / (1 + first)}, 1e-15)
	m.ObserveForests(0, 1, &model.Workspace{}) // without a prediction there is no evidence
	closeTo(t, "evidence", m.fleet.forests.pend[:], []float64{0, 0}, 0)
	m.fleet.forests.pend = [2]float64{math.Log(0.8), math.Log(0.1)}
	var e wire.Encoder
	m.EncodeForests(&e)
	again := newTestMixture()
	again.DecodeForests(wire.NewDecoder(e.Buf, "", wire.ErrState))
	for name, m := range map[string]*Mixture{"share": m, "restored share": again} {
		m.learnForests(Together(4))
		odds := 0.8 / 0.1 * math.Exp(forestLead*(1-4./stackMemory)) // each sample counts whole
		closeTo(t, name, []float64{m.ForestShare()}, []float64{odds / (1 + odds)}, 1e-12)
	}
	before := m.ForestShare()
	m.JoinForests(true)
	closeTo(t, "share after another merge", []float64{m.ForestShare()}, []float64{before}, 0)
	m.JoinForests(false)
	m.fleet.forests.pend[0] = 3
	m.learnForests(Together(4))
	closeTo(t, "share without members", []float64{m.ForestShare()}, []float64{0.5}, 0)
}

// The exponent of the forest begins again with that of a first forest, where labels have made
// it smaller; a larger one stays, and so do all when the members' forests end.
func TestMemberForestsRaiseTheExponent(t *testing.T) {
	for exponent, want := range map[float64]float64{-0.1: forestShare, 0.2: forestShare, 0.7: 0.7} {
		m := newTestMixture()
		m.AddForest()
		f := m.forestExpert()
		for b, v := range m.blends() {
			for _, x := range b.own() {
				x.at[f] = exponent
			}
			b.publish(v)
		}
		before := m.view.Pool.Stack.Plain.Exponents[0]
		for _, on := range []bool{true, false} {
			m.JoinForests(on)
			for _, v := range m.blends() {
				closeTo(t, "exponents", []float64{v.Exponents[f], v.Exponents[0]}, []float64{want, before}, 1e-15)
			}
		}
	}
}
