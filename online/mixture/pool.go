package mixture

import (
	"math"
	"slices"

	"edge/model"
	"edge/online/wire"
)

// setMembers stores softmax(members) in the view, over the members that the
// configuration allows.
func (m *Mixture) setMembers() {
	weights := m.view.Pool.Weights
	var sum float64
	for i, member := range model.Members {
		weights[i] = math.Exp(m.members[i])
		if m.cfg.Always && member.Persistence == 0 {
			weights[i] = 0
		}
		sum += weights[i]
	}
	for i := range weights {
		weights[i] /= sum
	}
}

// EndWarmup gives members that differ in their sharpness alone the same weight, the
// mean of theirs. The models of the warm-up had few observations: the sharpness that suited
// their answers need not suit the last one. For the same reason the experts of the features
// begin anew. The weight of the order of the labels stays.
func (m *Mixture) EndWarmup() {
	m.restartFeatures()
	mean := make([]float64, len(model.Members))
	for i, member := range model.Members {
		var sum, alike float64
		for j, other := range model.Members {
			if other.Sharpness = member.Sharpness; other == member {
				sum += math.Exp(m.members[j])
				alike++
			}
		}
		mean[i] = math.Log(max(sum/alike, minProb))
	}
	top := slices.Max(mean)
	for i, v := range mean {
		m.members[i] = v - top
	}
	m.setMembers()
}

// EncodePool appends the weights of the members, the evidence of the minibatch that
// is filling, and a place for the moves of earlier programs, which are in a section now.
func (m *Mixture) EncodePool(e *wire.Encoder) {
	e.Int(len(m.members))
	e.Floats(m.members)
	e.Floats(m.pending)
	e.Bool(false)
	e.Int(m.view.Pool.Order.Last + 1)
}

// firstMembers is the number of members in states of version 1, which do not hold it.
const firstMembers = 12

// DecodePool reads the values that EncodePool wrote in that version of the state.
// Members that were added later have to earn their weight.
func (m *Mixture) DecodePool(d *wire.Decoder, version uint64) {
	members := firstMembers
	if version > 1 {
		members = d.Int(len(model.Members), "number of the pool's members")
	}
	c := len(m.view.Names)
	d.Numbers(m.members[:members], "weights of the pool")
	d.Numbers(m.pending[:members], "evidence of the pool")
	for i := members; i < len(m.members); i++ {
		m.members[i] = earned
	}
	var moves []float64
	if d.Bool() {
		moves = d.Floats(c*c, "chain of labels")
	}
	last := d.Int(c, "last label") - 1
	if d.Err() != nil {
		return
	}
	m.setMembers()
	m.readMoves(d, moves, last)
	m.distrustStack() // unless the state has it
	m.distrustFrequencies()
}

// readMoves begins the order of the labels with moves from one label to the next, all
// that earlier programs counted. Moves nil: the order counts from now on.
func (m *Mixture) readMoves(d *wire.Decoder, moves []float64, last int) {
	m.order, m.view.Pool.Order = order{}, model.Order{Last: -1}
	m.setPaths()
	if !m.cfg.Chain {
		m.view.Pool.Order.Last = last
		return
	}
	m.growOrder(0)
	v := &m.view.Pool.Order
	for i, n := range moves {
		if !(n >= 0 && n <= math.MaxUint32) {
			d.Fail("a transition has the count %g", n)
			return
		}
		v.Steps[0].Counts[i] = uint32(n)
	}
	v.Steps[0].Recount(len(m.view.Names))
	if last >= 0 {
		m.order.ring[0], m.order.known, v.Labels, v.Last = int16(last), 1, 1, last
	}
}
