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
	m.JoinForests(true)
	closeTo(t, "first share", []float64{m.ForestShare()}, []float64{0.5}, 0)
	m.ObserveForests(0, 1, &model.Workspace{}) // without a prediction there is no evidence
	closeTo(t, "evidence", m.fleet.forests.pend[:], []float64{0, 0}, 0)
	m.fleet.forests.pend = [2]float64{math.Log(0.8), math.Log(0.1)}
	var e wire.Encoder
	m.EncodeForests(&e)
	again := newTestMixture()
	again.DecodeForests(wire.NewDecoder(e.Buf, "", wire.ErrState))
	for name, m := range map[string]*Mixture{"share": m, "restored share": again} {
		m.learnForests(4)
		odds := 0.8 / 0.1 // each sample counts whole
		closeTo(t, name, []float64{m.ForestShare()}, []float64{odds / (1 + odds)}, 1e-12)
	}
	before := m.ForestShare()
	m.JoinForests(true)
	closeTo(t, "share after another merge", []float64{m.ForestShare()}, []float64{before}, 0)
	m.JoinForests(false)
	m.fleet.forests.pend[0] = 3
	m.learnForests(4)
	closeTo(t, "share without members", []float64{m.ForestShare()}, []float64{0.5}, 0)
}
