package mixture

import (
	"math"
	"slices"

	"edge/model"
	"edge/online/natural"
	"edge/online/wire"
)

// joint are the learners of a blend by the labels of all members of a fleet. Each merge brings
// the evidence of the others' labels, as a Gaussian factor for each learner; joint begins
// there again with the product of the own posterior and these factors,
//
//	F ← F_own + Σ_i Λ_i,     F·at ← F_own·at_own + Σ_i η_i
//
// and learns the own labels until the next merge.
type joint struct {
	on         bool
	slow, fast exponents
	logw       [2]float64 // as blend.logw, since joint began
}

const (
	blendLead    = 2   // log weight by which the answer of a blend is ahead of the members' at least, when its experts become better
	maxExponents = 100 // magnitude of an exponent with which joint begins
)

// startJoint ends joint in both blends, and begins the factors of the own labels, if there
// is a fleet.
func (m *Mixture) startJoint() {
	m.endJoint()
	for b := range m.blends() {
		for _, x := range b.own() {
			x.factor = nil
			if m.fleet.horizons > 0 {
				x.factor = natural.New(len(x.at))
			}
		}
	}
}

// endJoint ends joint in both blends.
func (m *Mixture) endJoint() {
	for b := range m.blends() {
		b.endJoint()
	}
}

func (b *blend) endJoint() {
	b.joint = joint{}
	top := max(b.lead[0], b.lead[1])
	b.lead = [4]float64{b.lead[0] - top, b.lead[1] - top}
}

// joinedExperts are those of the exponents that the factors are of.
func (m *Mixture) joinedExperts() natural.Experts {
	return natural.Experts{Own: m.cfg.Horizons, Fleet: m.fleet.horizons, Forest: m.cfg.Forest}
}

// OwnFactors returns the factors of the own labels since the fleet began, which share no memory
// with m; nil without a fleet.
func (m *Mixture) OwnFactors() *natural.Exponents {
	if m.fleet.horizons == 0 {
		return nil
	}
	all := natural.Exponents{Experts: m.joinedExperts()}
	for b := range m.blends() {
		for _, x := range b.own() {
			all.Factors = append(all.Factors, x.factor)
		}
	}
	return all.Clone()
}

// MergeFactors begins the learners by the labels of all members again, with the factors of the
// other members; with nil, or with those of other experts, it ends them. Learners that were
// not used before begin with the weights of those by own labels, and the blend's answer with
// a lead of blendLead at least: the evidence against it is of immature exponents.
func (m *Mixture) MergeFactors(others *natural.Exponents) {
	if others != nil && (m.fleet.horizons == 0 || others.Experts != m.joinedExperts() || len(others.Factors) != natural.MaxFactors) {
		others = nil
	}
	i := 0
	for b, v := range m.blends() {
		if others == nil || !b.mergeFactors(others.Factors[i:i+2]) {
			b.endJoint()
		}
		i += 2
		b.publish(v)
	}
	m.setStack()
}

// ahead are the log weights of the members' answer and of the blend's, with a lead of
// blendLead at least: the evidence against the blend is of worse experts or exponents.
func (b *blend) ahead() [2]float64 { return [2]float64{min(b.logw[0]-b.logw[1], -blendLead), 0} }

// mergeFactors begins joint with the factors of others, for slow and fast. It reports false if they
// are of another number of experts, or lead to exponents that are too large.
func (b *blend) mergeFactors(others []*natural.Factor) bool {
	next := joint{on: true}
	for i, x := range [...]*exponents{&next.slow, &next.fast} {
		own, of := b.own()[i], others[i]
		if *x = emptyExponents(len(own.at), own.prior, own.alike); len(of.Shift) != len(own.at) {
			return false
		}
		x.follow(own)
		x.pendLL = own.pendLL
		if !of.Mean(x.at, x.curve, own.at) || slices.ContainsFunc(x.at, func(v float64) bool { return math.Abs(v) > maxExponents }) {
			return false
		}
	}
	if next.logw = b.joint.logw; !b.joint.on {
		b.lead[2], b.lead[3] = b.lead[0], b.lead[1]
		next.logw = b.ahead()
	}
	b.joint = next
	return true
}

// publishJoint stores the mean of the exponents of all learners in the view, by their
// weights.
func (b *blend) publishJoint(v *model.Blend) {
	all, used := b.learners()
	var weights [len(all)]float64
	weightsTo(weights[:used], b.lead[:used])
	v.Exponents = append(v.Exponents[:0], b.slow.at...)
	clear(v.Exponents)
	for j, x := range all[:used] {
		for i, e := range x.at {
			v.Exponents[i] += float64(weights[j] * e)
		}
	}
}

// EncodeJoint appends the factors of the own labels since the fleet began, and the learners
// by the labels of all; nothing without a fleet.
func (m *Mixture) EncodeJoint(e *wire.Encoder) {
	if m.fleet.horizons == 0 {
		return
	}
	e.Bool(m.cfg.Forest)
	for b := range m.blends() {
		for _, x := range b.own() {
			e.Floats(x.factor.Precision)
			e.Floats(x.factor.Shift)
		}
		if e.Bool(b.joint.on); b.joint.on {
			e.Floats(b.lead[:])
			e.Floats(b.joint.logw[:])
			b.joint.slow.encode(e)
			b.joint.fast.encode(e)
		}
	}
}

// DecodeJoint reads the values that EncodeJoint wrote, after those of EncodeBlends. Where
// the configuration has other experts since then, they are left unused.
func (m *Mixture) DecodeJoint(d *wire.Decoder) {
	if m.fleet.horizons == 0 {
		d.Fail("exponents of a fleet that is not there")
		return
	}
	if d.Bool() != m.cfg.Forest {
		d.Bytes(d.Len(), "exponents")
		return
	}
	for b, v := range m.blends() {
		for _, x := range b.own() {
			d.Numbers(x.factor.Precision, "exponents")
			d.Numbers(x.factor.Shift, "exponents")
		}
		if d.Bool() {
			d.Numbers(b.lead[:], "exponents")
			d.Numbers(b.joint.logw[:], "exponents")
			all := m.experts(b)
			b.joint.on = true
			for i, x := range [...]*exponents{&b.joint.slow, &b.joint.fast} {
				own := b.own()[i]
				*x = emptyExponents(len(own.at), own.prior, own.alike)
				x.decode(d, all, m.banked())
				x.pendLL = d.Number("exponents")
				x.decodeSums(d, all)
			}
		}
		b.publishRead(d, v)
	}
	m.setStack()
}
