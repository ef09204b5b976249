package mixture

import (
	"slices"

	"edge/online/wire"
)

// fleet are the weights with the horizons of a fleet. Those of the own horizons among
// themselves stay apart, with their own maximum: the gradient of the parameters is
// weighted by them, and must not differ by a rounding from that without a fleet.
type fleet struct {
	horizons    int           // F; 0: there is no fleet
	logw, saved []float64     // H+F  log weights, the largest 0; their copy for Undo
	own         []float64     // H  softmax of the own horizons' log weights
	forests     memberForests // of the members' forests and the own one
	unseen      unseen        // of the answer for classes with few own labels
}

// Ahead is the log weight by which the horizons of a fleet begin ahead of the own ones:
// more data is better until the evidence shows the contrary.
const Ahead = 4

// banked is the number of horizons in the bank, with those of the fleet.
func (m *Mixture) banked() int { return m.cfg.Horizons + m.fleet.horizons }

// OwnWeights are the weights of the H own horizons among themselves, sum 1. Read only, until the
// next change.
func (m *Mixture) OwnWeights() []float64 {
	if m.fleet.horizons > 0 {
		return m.fleet.own
	}
	return m.view.Weights
}

// Join makes room for a posterior of a fleet beside each of the own horizons, in the
// place of those there were; without any the fleet ends, and the answer without it goes on.
//
// New ones begin with the log weights of their horizons, which themselves begin lead
// behind. In the blends a new one takes over the exponent of its horizon if lead is above
// 0, and begins with 0 otherwise. If it is, the blends also begin blendLead ahead of the
// pool's members at least. The own horizons inherit the exponents of those that end.
func (m *Mixture) Join(own []int, lead float64) {
	h, from, to := m.cfg.Horizons, m.fleet.horizons, len(own)
	m.endJoint()
	switch {
	case from > 0:
		m.insertExperts(-from)
	case to > 0:
		m.startOwn()
	}
	answer := m.fleet.unseen
	if from == 0 {
		answer = newUnseen()
	}
	m.fleet = fleet{horizons: to, forests: m.fleet.forests, unseen: answer}
	m.view.Weights = make([]float64, h+to)
	if to > 0 {
		m.startHorizons(own, lead)
	}
	if from > 0 && to == 0 {
		m.endOwn()
	}
	m.startJoint()
	m.setHorizons()
	m.setStack()
}

// startHorizons begins the weights and the exponents of the fleet's horizons, see Join.
func (m *Mixture) startHorizons(own []int, lead float64) {
	h := m.cfg.Horizons
	m.fleet.own = make([]float64, h)
	m.fleet.logw = slices.Clone(m.horizons)
	for i := range m.fleet.logw {
		m.fleet.logw[i] -= lead
	}
	for _, at := range own {
		m.fleet.logw = append(m.fleet.logw, m.horizons[at])
	}
	top := slices.Max(m.fleet.logw)
	for i := range m.fleet.logw {
		m.fleet.logw[i] -= top
	}
	m.insertExperts(len(own))
	for b, v := range m.blends() {
		if lead > 0 {
			for _, x := range b.own() {
				for f, at := range own {
					x.at[h+f], x.at[at] = x.at[at], 0
				}
			}
			ahead := b.ahead()
			copy(b.logw, ahead[:])
		}
		b.publish(v)
	}
}

// insertExperts makes room for n horizons behind the own ones in both blends, with
// exponents of 0, or removes −n of them.
func (m *Mixture) insertExperts(n int) {
	at := m.cfg.Horizons
	for b, v := range m.blends() {
		var kept []int // place of each expert afterwards among those before; −1: new
		for i := range v.Exponents {
			if i == at {
				for range n {
					kept = append(kept, -1)
				}
			}
			if i < at || i >= at-min(n, 0) {
				kept = append(kept, i)
			}
		}
		for _, x := range b.own() {
			dropped := x.resize(kept)
			inherit(x.at[:at], dropped)
		}
		b.publish(v)
	}
}

// EncodeFleet appends the log weights with the fleet's horizons.
func (m *Mixture) EncodeFleet(e *wire.Encoder) { e.Floats(m.fleet.logw) }

// DecodeFleet reads the values that EncodeFleet wrote, after Join.
func (m *Mixture) DecodeFleet(d *wire.Decoder) {
	d.Numbers(m.fleet.logw, "fleet's weights")
	m.setHorizons()
}
