package mixture

import (
	"math"

	"edge/model"
	"edge/online/wire"
)

// unseen learns the exponent of a fleet's answer for classes with few own labels. Own labels
// tell it by the probabilities of the other classes among each other: how sure the answer may
// be is the same for all classes.
type unseen struct {
	exponents           // of one expert
	logs      []float64 // scratch: log probabilities of the classes with own labels
}

const (
	leastUnseen = 0.25 // bounds of the exponent that answers
	mostUnseen  = 4
)

func newUnseen() unseen { return unseen{exponents: newExponents([]float64{1}, stackPrior, false)} }

// UnseenExponent is the exponent of the fleet's answer for classes with few own labels; 1 at
// first.
func (m *Mixture) UnseenExponent() float64 {
	if m.fleet.horizons == 0 {
		return 1
	}
	return min(max(m.fleet.unseen.at[0], leastUnseen), mostUnseen)
}

// ObserveUnseen learns the exponent by a sample of a class, with that weight; the last
// prediction of the view is in ws, and rare tells the classes with few own labels. It does so
// at once.
func (m *Mixture) ObserveUnseen(class int, weight float64, rare []bool, ws *model.Workspace) {
	if m.fleet.horizons > 0 {
		m.fleet.unseen.follow(class, weight, rare, ws.Unseen())
	}
}

func (u *unseen) follow(class int, weight float64, rare []bool, answer []float64) {
	at := -1
	u.logs = u.logs[:0]
	for k, p := range answer[:min(len(answer), len(rare))] {
		if rare[k] {
			continue
		}
		if k == class {
			at = len(u.logs)
		}
		u.logs = append(u.logs, math.Log(max(p, minProb)))
	}
	if at >= 0 {
		u.observe(u.logs, at, weight)
		u.learn(Together(1))
	}
}

// EncodeUnseen appends the exponent; nothing if no label has taught it.
func (m *Mixture) EncodeUnseen(e *wire.Encoder) {
	if u := &m.fleet.unseen; m.fleet.horizons > 0 && (u.at[0] != 1 || u.curve[0] != u.prior) {
		e.Float(u.at[0])
		e.Float(u.curve[0])
	}
}

// DecodeUnseen reads the values that EncodeUnseen wrote, after Join.
func (m *Mixture) DecodeUnseen(d *wire.Decoder) {
	u := &m.fleet.unseen
	if m.fleet.horizons == 0 {
		d.Fail("an exponent of a fleet that is not there")
		return
	}
	u.at[0] = d.Number("exponent of the fleet")
	if u.curve[0] = d.Number("exponent of the fleet"); !(u.curve[0] > 0) {
		d.Fail("an exponent of the fleet with the curvature %g", u.curve[0])
	}
}
