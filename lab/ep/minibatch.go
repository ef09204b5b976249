package ep

import (
	"context"
	"errors"

	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/model"
)

// Minibatch is EP that sees some rows at a time. It keeps the sites of all rows as numbers,
// and their sums A_k = Σ s1 w wᵀ, b_k = Σ s2 w, to which a minibatch adds its changes. The
// features w move with the parameters, so that Rebuild sums the sites anew once a pass.
//
// Memory 4 N(C−1) + 2 C M²; a step of n rows costs C(n M² + 6 M³).
type Minibatch struct {
	*EP // of the present rows

	whole *lab.Data
	sites lab.PairSites // of all rows
	size  int           // rows of a part in Rebuild
	a     []*mat.Dense  // C of M×M, lower triangles
	b     []*mat.VecDense
}

// NewMinibatch returns an EP on minibatches of that size whose sites are all 1.
func NewMinibatch(data *lab.Data, p model.Params, size int) (*Minibatch, error) {
	size = min(size, data.N())
	rows := make([]int, size)
	e, err := New(data.Rows(rows), p, lab.Jitter)
	if err != nil {
		return nil, err
	}
	m := &Minibatch{EP: e, whole: data, sites: lab.NewPairSites(data), size: size}
	for range data.C {
		m.a, m.b = append(m.a, mat.NewDense(p.M, p.M, nil)), append(m.b, mat.NewVecDense(p.M, nil))
	}
	return m, nil
}

// load moves to other rows, without the posterior.
func (m *Minibatch) load(rows []int, p model.Params) error {
	if len(rows) != m.N() {
		m.Factors = lab.NewPairFactors(m.whole.Rows(rows))
	}
	m.SetRows(m.whole.Rows(rows))
	m.EP.Sites = m.sites.Rows(rows)
	return m.Sparse.SetParams(p)
}

// posterior computes it, and the marginals of the present rows, from A and b.
func (m *Minibatch) posterior() error {
	for k := range m.a {
		if err := m.SetNatural(k, m.a[k], m.b[k]); err != nil {
			return err
		}
	}
	return nil
}

// add adds sites of the present rows to A and b.
func (m *Minibatch) add(s1, s2 *mat.Dense) {
	for k := range m.a {
		a, b := m.Natural(k, s1, s2)
		m.a[k].Add(m.a[k], a)
		m.b[k].AddVec(m.b[k], b)
	}
}

// Rebuild sums the sites of all rows at some parameters. It costs C N M².
func (m *Minibatch) Rebuild(p model.Params) error {
	for k := range m.a {
		m.a[k].Zero()
		m.b[k].Zero()
	}
	for from := 0; from < m.whole.N(); from += m.size {
		var rows []int
		for i := from; i < min(from+m.size, m.whole.N()); i++ {
			rows = append(rows, i)
		}
		if err := m.load(rows, p); err != nil {
			return err
		}
		m.add(m.EP.Sites.Totals(m.Y))
	}
	return m.posterior()
}

// Step takes one damped sweep of the sites of some rows at some parameters, and returns the
// gradient of those rows, weighted by N/n. Where the moved features leave a precision that
// is not positive definite, all sites are summed anew.
func (m *Minibatch) Step(rows []int, p model.Params, rho float64) (grad []float64, err error) {
	if err = m.load(rows, p); err == nil {
		err = m.posterior()
	}
	if errors.Is(err, model.ErrFactor) {
		err = m.again(rows, p)
	}
	if err != nil {
		return nil, err
	}
	m.match()
	old1, old2 := m.EP.Sites.Totals(m.Y)
	m.EP.Sites.Blend(&m.Factors.Next, rho)
	m.sites.SetRows(rows, &m.EP.Sites)
	s1, s2 := m.EP.Sites.Totals(m.Y)
	s1.Sub(s1, old1)
	s2.Sub(s2, old2)
	m.add(s1, s2)
	if err = m.posterior(); errors.Is(err, model.ErrFactor) {
		err = m.again(rows, p)
	}
	if err != nil {
		return nil, err
	}
	grad = m.Gradient()
	weight := float64(m.whole.N()) / float64(len(rows))
	for i := range grad {
		grad[i] *= weight
	}
	return grad, nil
}

// again sums all sites anew, and returns to rows.
func (m *Minibatch) again(rows []int, p model.Params) error {
	if err := m.Rebuild(p); err != nil {
		return err
	}
	if err := m.load(rows, p); err != nil {
		return err
	}
	return m.posterior()
}

// Stochastic returns a method that learns by Adam on minibatches; the updates of a problem
// are passes.
func Stochastic(size int, rate float64) lab.Method {
	return func(ctx context.Context, p *lab.Problem) (lab.Classifier, error) {
		m, err := NewMinibatch(p.Data, p.Start, size)
		if err != nil {
			return nil, err
		}
		at := p.Start.Clone()
		begin := func(pass int) error {
			if pass == 0 {
				return nil // there are no sites yet
			}
			lab.Clamp(&at)
			return m.Rebuild(at)
		}
		step := func(rows []int) ([]float64, error) {
			lab.Clamp(&at)
			return m.Step(rows, at, between)
		}
		if err := lab.Minibatches(ctx, p, size, rate, m, at.Theta, begin, step); err != nil {
			return nil, err
		}
		return m, begin(p.Updates)
	}
}
