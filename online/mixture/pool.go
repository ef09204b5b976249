package mixture

import (
	"math"

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

// growChain makes room for the classes that were added to the view since it had old.
func (m *Mixture) growChain(old int) {
	c := len(m.view.Names)
	if !m.cfg.Chain || (c == old && m.view.Pool.Moves != nil) {
		return
	}
	moves := make([]float64, c*c)
	for i := range old {
		copy(moves[i*c:], m.view.Pool.Moves[i*old:(i+1)*old])
	}
	m.view.Pool.Moves = moves
}

// extendChain appends a label of class k to the chain.
func (m *Mixture) extendChain(k int) {
	p := &m.view.Pool
	if p.Moves == nil {
		return
	}
	if p.Last >= 0 {
		p.Moves[p.Last*len(m.view.Names)+k]++
	}
	p.Last = k
}

// dropFromChain removes class k from the transition counts.
func (m *Mixture) dropFromChain(k int, to []int) {
	p := &m.view.Pool
	if p.Last >= 0 {
		p.Last = to[p.Last]
	}
	if p.Moves == nil {
		return
	}
	c := len(to)
	moves := make([]float64, 0, (c-1)*(c-1))
	moves = appendWithout(moves, p.Moves[:k*c], k, c)
	p.Moves = appendWithout(moves, p.Moves[(k+1)*c:], k, c)
}

// EncodePool appends the weights of the members, the evidence of the minibatch that
// is filling, and the chain of labels.
func (m *Mixture) EncodePool(e *wire.Encoder) {
	e.Int(len(m.members))
	e.Floats(m.members)
	e.Floats(m.pending)
	e.Bool(m.view.Pool.Moves != nil)
	e.Floats(m.view.Pool.Moves)
	e.Int(m.view.Pool.Last + 1)
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
	c, p := len(m.view.Names), &m.view.Pool
	d.Fill(m.members[:members], "weights of the pool")
	d.Fill(m.pending[:members], "evidence of the pool")
	for i := members; i < len(m.members); i++ {
		m.members[i] = earned
	}
	p.Moves = nil
	if d.Bool() {
		p.Moves = d.Floats(c*c, "chain of labels")
	}
	for _, v := range p.Moves {
		if v < 0 {
			d.Fail("a transition has a negative count")
		}
	}
	p.Last = d.Int(c, "last label") - 1
	switch {
	case d.Err() != nil:
		return
	case !m.cfg.Chain:
		p.Moves, p.Last = nil, -1
	case p.Moves == nil: // the order of labels counts from now on
		p.Moves = make([]float64, c*c)
	}
	m.setMembers()
	p.Stack.Recent = nil
	m.growRecent(0)
	m.distrustStack() // unless the state has it
}
