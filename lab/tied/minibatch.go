package tied

import (
	"context"

	"edge/lab"
	"edge/model"
)

// Minibatch is a SEP that sees some rows at a time: n of N rows have the share n/N of the tied
// sites, which a step renews:
//
//	A ← (1 − ρ n/N) A + ρ Σ s1 w wᵀ
//
// without the first factor in the first pass, and b likewise. Memory C M², however many rows.
type Minibatch struct {
	*SEP  // of the present rows
	whole *lab.Data
}

// NewMinibatch returns a SEP on minibatches of that size, without sites.
func NewMinibatch(data *lab.Data, p model.Params, kind Kind, eps float64, nodes, size int) (*Minibatch, error) {
	s, err := New(data.Rows(make([]int, min(size, data.N()))), p, kind, eps, nodes)
	if err != nil {
		return nil, err
	}
	s.Count = counts(data, kind)
	return &Minibatch{s, data}, nil
}

// Step learns some rows at some parameters, and returns their gradient, weighted by N/n.
func (m *Minibatch) Step(rows []int, p model.Params, rho float64, first bool) (grad []float64, err error) {
	data := m.whole.Rows(rows)
	if data.N() != m.N() {
		m.factors = m.room(data)
	}
	m.SetRows(data)
	if err := m.SetParams(p); err != nil {
		return nil, err
	}
	part, keep := float64(len(rows))/float64(m.whole.N()), 1.0
	if !first {
		keep -= rho * part
	}
	_, grad, err = m.blend(keep, rho)
	for i := range grad {
		grad[i] /= part
	}
	return grad, err
}

// Stochastic returns a method that learns by Adam on minibatches, whose sites are not damped;
// the updates of a problem are passes.
func Stochastic(kind Kind, size int, rate float64) lab.Method {
	return func(ctx context.Context, p *lab.Problem) (lab.Classifier, error) {
		m, err := NewMinibatch(p.Data, p.Start, kind, eps, lab.TrainNodes, size)
		if err != nil {
			return nil, err
		}
		at := p.Start.Clone()
		var first bool
		begin := func(pass int) error { first = pass == 0; return nil }
		step := func(rows []int) ([]float64, error) {
			lab.Clamp(&at)
			return m.Step(rows, at, 1, first)
		}
		err = lab.Minibatches(ctx, p, size, rate, m, at.Theta, begin, step)
		return m, err
	}
}
