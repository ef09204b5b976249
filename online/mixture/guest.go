package mixture

import (
	"edge/model"
	"edge/online/wire"
)

// guest weighs the answer of a fleet's guest, during the warm-up, and the own one.
type guest struct {
	on bool
	twoAnswers
	forests twoAnswers // of its answers with the members' forests and without them
}

// StartGuest lets a guest answer, ahead of the own answer unless one has answered before.
// Its answers with the members' forests and without them begin with the same weight.
func (m *Mixture) StartGuest() {
	if !m.guest.on {
		m.guest = guest{on: true, twoAnswers: twoAnswers{logw: [2]float64{0, -Ahead}}}
	}
}

// EndGuest removes the guest and its weights.
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
	return m.guest.share()
}

// GuestForests is the weight of the guest's answer with the members' forests against that
// without them.
func (m *Mixture) GuestForests() float64 { return m.guest.forests.share() }

// ObserveGuest updates the weights of the guest by a sample of a class, with that weight; the
// last prediction of the view is in ws. It does so at once, as with the answers of a member
// (see own): a newcomer has few labels, and those of one minibatch may be alike.
func (m *Mixture) ObserveGuest(class int, weight float64, ws *model.Workspace) {
	if !m.guest.on {
		return
	}
	guest, own := ws.Guest()
	m.guest.follow(class, weight, guest, own)
	with, without := ws.GuestForests()
	m.guest.forests.follow(class, weight, with, without)
}

// EncodeGuest appends the weights of the guest.
func (m *Mixture) EncodeGuest(e *wire.Encoder) {
	m.guest.encode(e)
	m.guest.forests.encode(e)
}

// DecodeGuest reads the values that EncodeGuest wrote, after StartGuest. They end the
// data; states of before end without the weight of the forests.
func (m *Mixture) DecodeGuest(d *wire.Decoder) {
	m.guest.decode(d, "guest's weight")
	if d.Len() > 0 {
		m.guest.forests.decode(d, "weight of the guest's forests")
	}
}
