package mixture

import (
	"iter"
	"math"

	"edge/model"
)

// blend learns the exponents of a model.Blend, twice: slowly, where the errors of a
// minibatch's samples are taken for alike, and fast. In a fleet it does both by the own
// labels, and by those of all members (joint.go). The blend is the geometric mean of all
// answers, weighted by their evidence; it is a product of the same experts, with the
// weighted mean of the exponents.
//
// Source: van Erven & Koolen (2016), "MetaGrad: multiple learning rates in online
// learning", for learners of several rates under one that weighs them.
type blend struct {
	slow, fast exponents
	joint      joint
	lead       [4]float64 // log weights of the learners, the largest 0
	logw       []float64  // of the members' answer and of the blend's, the larger 0
	pendLL     []float64  // of both answers, in the minibatch that is filling
}

// own are the learners by own labels alone: slow and fast.
func (b *blend) own() [2]*exponents { return [2]*exponents{&b.slow, &b.fast} }

// learners are slow and fast, and those of the joint, which are used if it is on.
func (b *blend) learners() (all [4]*exponents, used int) {
	used = 2
	if b.joint.on {
		used = 4
	}
	return [4]*exponents{&b.slow, &b.fast, &b.joint.slow, &b.joint.fast}, used
}

// publish stores the exponents in the view.
func (b *blend) publish(v *model.Blend) {
	if b.joint.on {
		b.publishJoint(v)
		return
	}
	fast := 1 / (1 + math.Exp(b.lead[0]-b.lead[1]))
	v.Exponents = append(v.Exponents[:0], b.slow.at...)
	for i, x := range b.fast.at {
		v.Exponents[i] += float64(fast * (x - v.Exponents[i]))
	}
}

const (
	stackMemory  = 5000 // labels that the exponents and the weight of their answer remember
	stackPrior   = 30   // precision of the exponents' start
	forestPrior  = 10   // the same with a forest, of which the worth differs more between streams
	fastPrior    = 0.3  // the fast learner's precision, of these
	mostApart    = 16   // samples of a minibatch that count each for the fast learner
	slowLead     = 2    // log weight by which the slow learner begins ahead of the fast one
	forestShare  = 0.4  // the forest's first exponent
	linearShare  = 0.2  // the regression's
	maxStackStep = 0.2  // of an exponent in one minibatch

	// Where labels are requested they are those of the hardest samples, and say less of the exponents
	// and the weight that suit the others.
	requestedPrior = 10   // by which the exponents' start is more precise
	requestedShare = 0.75 // of the blend's weight
)

// newBlend begins with the geometric mean of the horizons, the regression and the forest where
// there are these, and, if the chain is among the experts, with the whole chain. The
// other exponents are 0. A forest whose exponent began at 0 would give a third less on
// streams of a few thousand labels.
func (m *Mixture) newBlend(chain bool) (blend, model.Blend) {
	horizons := m.banked()
	n, share, prior := horizons+1, 1., float64(stackPrior)
	if m.cfg.Forest {
		n, share, prior = n+1, 1-forestShare, forestPrior
	}
	if m.cfg.FewLabels {
		prior *= requestedPrior
	}
	if m.cfg.Regression {
		share -= linearShare
	}
	if chain {
		n += 1 + len(model.RecentMemories)
	}
	start := make([]float64, n)
	for i := range n {
		switch {
		case i < horizons:
			start[i] = share / float64(horizons)
		case i == horizons && m.cfg.Regression:
			start[i] = linearShare
		case i == m.forestExpert() && m.cfg.Forest:
			start[i] = forestShare
		case i == m.forestExpert() || i == m.forestExpert()+1 && m.cfg.Forest:
			start[i] = 1
		}
	}
	b := blend{
		slow: newExponents(start, prior, true), fast: newExponents(start, fastPrior*prior, false),
		lead: [4]float64{0, -slowLead}, logw: make([]float64, 2), pendLL: make([]float64, 2),
	}
	return b, model.Blend{Exponents: start}
}

// forestExpert is the index of the forest among the experts, if it is one.
func (m *Mixture) forestExpert() int { return m.banked() + 1 }

// restartFeatures starts the exponents of the experts that use the features again.
func (m *Mixture) restartFeatures() {
	m.startJoint()
	features := m.forestExpert()
	if m.cfg.Forest {
		features++
	}
	for b, v := range m.blends() {
		_, start := m.newBlend(len(v.Exponents) > features)
		for _, x := range b.own() {
			for i := range features {
				x.restart(i, start.Exponents[i])
			}
		}
		b.publish(v)
	}
}

// RestartForest prepares the blends for a forest that begins empty: the horizons
// inherit its exponent, and it begins with 0.
func (m *Mixture) RestartForest() {
	if !m.cfg.Forest {
		return
	}
	if m.own.Mixture != nil {
		m.own.RestartForest()
	}
	m.startJoint()
	f := m.forestExpert()
	for b, v := range m.blends() {
		for _, x := range b.own() {
			inherit(x.at[:m.banked()], x.at[f])
			x.restart(f, 0)
		}
		b.publish(v)
	}
	m.setStack()
}

// AddForest begins the blends anew, with a forest among the experts.
func (m *Mixture) AddForest() {
	m.cfg.Forest = true
	m.startStack()
	if m.own.Mixture != nil {
		m.own.AddForest()
	}
}

// inherit spreads an exponent over others.
func inherit(exponents []float64, exponent float64) {
	for h := range exponents {
		exponents[h] += exponent / float64(len(exponents))
	}
}

// blends are both blends with their places in the view.
func (m *Mixture) blends() iter.Seq2[*blend, *model.Blend] {
	return func(yield func(*blend, *model.Blend) bool) {
		s := &m.view.Pool.Stack
		_ = yield(&m.ordered, &s.Ordered) && yield(&m.plain, &s.Plain)
	}
}

// startStack begins with two blends: of all experts, and of those that do not use
// the order of the labels.
func (m *Mixture) startStack() {
	v := &m.view.Pool.Stack
	m.ordered, v.Ordered = m.newBlend(true)
	m.plain, v.Plain = m.newBlend(false)
	m.startJoint()
	m.setStack()
}

// distrustStack lets the members alone answer until the stack has earned its weight.
func (m *Mixture) distrustStack() {
	m.ordered.logw[0], m.ordered.logw[1] = 0, earned
	m.plain.logw[0], m.plain.logw[1] = 0, earned
	m.setStack()
}

// setStack stores the weight of each blend in the view.
func (m *Mixture) setStack() {
	v := &m.view.Pool.Stack
	v.Ordered.Weight, v.Plain.Weight = m.ordered.weight(), m.plain.weight()
	if m.cfg.FewLabels {
		v.Plain.Weight *= requestedShare
	}
}

// weight is the weight of the blend's answer.
func (b *blend) weight() float64 {
	logw := b.logw
	if b.joint.on {
		logw = b.joint.logw[:]
	}
	return 1 / (1 + math.Exp(logw[0]-logw[1]))
}

// observe adds a sample of class k with that weight; out holds the answers of its
// prediction.
func (b *blend) observe(out model.BlendOutput, k int, weight float64) {
	if len(out.Answer) == 0 {
		return
	}
	b.pendLL[0] += weight * math.Log(max(out.Members[k], minProb))
	b.pendLL[1] += weight * math.Log(max(out.Answer[k], minProb))
	all, used := b.learners()
	for _, x := range all[:used] {
		x.observe(out.Experts, k, weight)
	}
}

// learn takes the step of a minibatch. The weights remember so long that the labels of a
// delay may count as those of one minibatch.
func (b *blend) learn(v *model.Blend, batch Batch) {
	all, used := b.learners()
	var evidence [len(all)]float64
	for i, x := range all[:used] {
		evidence[i] = x.pendLL
	}
	weigh(b.lead[:used], evidence[:used], batch.N, batch.once(), stackMemory)
	weigh(b.logw, b.pendLL, batch.N, batch.once(), stackMemory)
	if b.joint.on {
		weigh(b.joint.logw[:], b.pendLL, batch.N, batch.once(), stackMemory)
	}
	clear(b.pendLL)
	for _, x := range all[:used] {
		x.learn(batch)
	}
	b.publish(v)
}
