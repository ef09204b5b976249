package mixture

import (
	"math"

	"edge/model"
	"edge/online/wire"
)

// own learns the answer without the fleet as a mixture alone would, and its weight against
// the answer with the fleet. On streams that drift the exponents of so many experts may be
// learnt too slowly, or the members may know an earlier part of the stream: the answer
// without the fleet is better then.
//
// Their mixture by the evidence of the latest labels is a third answer. The three are weighted by the
// evidence of many labels, since few do not show which answer is always a little better:
//
//	p = s_1·p_with + s_2·p_without + s_3·(f·p_with + (1 − f)·p_without)
//
// Source: Herbster & Warmuth (1998), "Tracking the best expert", for weights that fade.
type own struct {
	*Mixture // it has no order of the labels and no regression; nil: there is no fleet

	fast   twoAnswers // f, of the answers with the fleet and without
	steady [3]float64 // log s, of these and of both mixed by fast, the largest 0
}

const (
	latest  = 50 // labels that the weights of fast remember, and those of a guest
	ownLead = 2  // log weight by which the answer with the fleet begins ahead
)

// startOwn begins the answer without the fleet at the present weights and exponents. It
// comes before the experts of the fleet are added.
func (m *Mixture) startOwn() {
	cfg := m.cfg
	cfg.Chain, cfg.Regression = false, false
	o := New(cfg, &model.Posterior{})
	o.take(m)
	m.own = own{Mixture: o, fast: twoAnswers{logw: [2]float64{0, -ownLead}}, steady: [3]float64{0, -ownLead, 0}}
}

// endOwn goes on with the weights and exponents of the answer without the fleet. It comes
// after the experts of the fleet are removed.
func (m *Mixture) endOwn() {
	o := m.own.Mixture
	m.own = own{}
	m.take(o)
}

// take copies the weights and exponents of another mixture of the same experts.
func (m *Mixture) take(from *Mixture) {
	var e wire.Encoder
	from.encodeAnswer(&e)
	m.decodeAnswer(wire.NewDecoder(e.Buf, "", wire.ErrState))
	m.noise = from.noise
	m.setNoise()
}

// Own returns the weights and exponents of the answer without the fleet, as model.Fleet.Own,
// and the weight of the answer with it; nil without a fleet. Read only, until the next change.
func (m *Mixture) Own() (view *model.Posterior, share float64) {
	if m.own.Mixture == nil {
		return nil, 1
	}
	var s [3]float64
	weightsTo(s[:], m.own.steady[:])
	return m.own.view, s[0] + float64(s[2]*m.own.fast.share())
}

// observe adds the evidence of a sample of a class, with that weight.
func (o *own) observe(class int, weight float64, names []string, ws *model.Workspace) {
	if o.Mixture == nil {
		return
	}
	if with, without, alone := ws.Own(); alone != nil {
		o.view.Names = names
		o.observeAnswer(class, weight, alone)
		if class < len(with) {
			o.weigh(weight, with[class], without[class])
		}
	}
}

// weigh updates the weights of both answers by a label, of which they had the probabilities
// with and without. It does so at once: where labels dwell, the next label is likely the same.
func (o *own) weigh(weight, with, without float64) {
	answers := [3]float64{with, without, without + float64(o.fast.share()*(with-without))}
	for i, p := range answers {
		answers[i] = weight * math.Log(max(p, minProb))
	}
	copy(o.fast.pend[:], answers[:])
	o.fast.learn(Together(1), latest)
	weigh(o.steady[:], answers[:], 1, 1, stackMemory)
}

// learn takes the steps of a minibatch.
func (o *own) learn(b Batch) {
	if o.Mixture != nil {
		o.learnAnswer(b)
	}
}

// EncodeOwn appends the answer without the fleet; nothing without a fleet.
func (m *Mixture) EncodeOwn(e *wire.Encoder) {
	if o := m.own; o.Mixture != nil {
		o.fast.encode(e)
		e.Floats(o.steady[:])
		o.encodeAnswer(e)
	}
}

func (m *Mixture) encodeAnswer(e *wire.Encoder) {
	e.Floats(m.members)
	e.Floats(m.pending)
	m.EncodeFrequencies(e)
	m.EncodeBlends(e)
}

// DecodeOwn reads the values that EncodeOwn wrote, after EncodeBlends.
func (m *Mixture) DecodeOwn(d *wire.Decoder) {
	o := &m.own
	if o.Mixture == nil {
		d.Fail("an answer without a fleet that is not there")
		return
	}
	o.fast.decode(d, "weight of the fleet")
	d.Numbers(o.steady[:], "weight of the fleet")
	o.decodeAnswer(d)
}

func (m *Mixture) decodeAnswer(d *wire.Decoder) {
	d.Numbers(m.members, "weights of the pool")
	d.Numbers(m.pending, "evidence of the pool")
	m.DecodeFrequencies(d)
	m.DecodeBlends(d, d.Bool())
	m.setMembers()
}
