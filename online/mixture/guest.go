package mixture

import (
	"math"

	"edge/model"
	"edge/online/wire"
)

// guest weighs the answer of a fleet's guest, during the warm-up, and the own one.
type guest struct {
	on         bool
	logw, pend [2]float64 // of the guest and of the own answer; their evidence in the minibatch that is filling
	forests    duel       // of its answers with the members' forests and without them
}

// StartGuest lets a guest answer, ahead of the own answer unless one has answered before.
// Its answers with the members' forests and without them begin with the same weight.
func (m *Mixture) StartGuest() {
	if !m.guest.on {
		m.guest = guest{on: true, logw: [2]float64{0, -Ahead}}
	}
}

// EndGuest ends the guest.
func (m *Mixture) EndGuest() { m.guest = guest{} }

// GuestLead is the log of the odds of the guest's answer, Ahead at most either way.
func (m *Mixture) GuestLead() float64 {
	return min(max(m.guest.logw[0]-m.guest.logw[1], -Ahead), Ahead)
}

// GuestWeight is the weight of the guest's answer; 0 without a guest.
func (m *Mixture) GuestWeight() float64 {
	if !m.guest.on {
		return 0
	}
	return 1 / (1 + math.Exp(m.guest.logw[1]-m.guest.logw[0]))
}

// GuestForests is the weight of the guest's answer with the members' forests against that
// without them.
func (m *Mixture) GuestForests() float64 { return m.guest.forests.share() }

// ObserveGuest adds the evidence of a sample of a class, with that weight, about the
// guest; the last prediction of the view is in ws. A class that the answers do not know
// is no evidence.
func (m *Mixture) ObserveGuest(class int, weight float64, ws *model.Workspace) {
	if !m.guest.on {
		return
	}
	guest, own := ws.Guest()
	addEvidence(&m.guest.pend, class, weight, guest, own)
	with, without := ws.GuestForests()
	addEvidence(&m.guest.forests.pend, class, weight, with, without)
}

// addEvidence adds the log probabilities of a class, times weight, by two answers.
func addEvidence(pend *[2]float64, class int, weight float64, first, second []float64) {
	for i, probs := range [...][]float64{first, second} {
		if class < len(probs) {
			pend[i] += weight * math.Log(max(probs[class], minProb))
		}
	}
}

// learnGuest updates the weights of the guest by the n samples of the minibatch.
func (m *Mixture) learnGuest(n int) {
	if g := &m.guest; g.on {
		weigh(g.logw[:], g.pend[:], n, memory)
		clear(g.pend[:])
		g.forests.learn(n, memory)
	}
}

// EncodeGuest appends the weights of the guest.
func (m *Mixture) EncodeGuest(e *wire.Encoder) {
	e.Floats(m.guest.logw[:])
	e.Floats(m.guest.pend[:])
	m.guest.forests.encode(e)
}

// DecodeGuest reads the values that EncodeGuest wrote, after StartGuest. They end the
// data; states of before end without the weight of the forests.
func (m *Mixture) DecodeGuest(d *wire.Decoder) {
	d.Fill(m.guest.logw[:], "guest's weight")
	d.Fill(m.guest.pend[:], "guest's weight")
	if d.Len() > 0 {
		m.guest.forests.decode(d)
	}
}
