package binary

import (
	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/model"
)

// VI is the Gaussian q(e) with the largest lower bound Σ E_i − KL, E_i = ⟨log p(y_i|f)⟩ over
// the marginal of f_i. The likelihood is log-concave, so that there is one optimum, with
// sites of positive precision.
type VI struct {
	*process
	S1, S2 *mat.Dense // N×1, natural parameters of q

	expected []float64
	g, h     *mat.Dense // N×1, ⟨∂ log p⟩ and ⟨−∂² log p⟩
}

// NewVI returns the q of the prior.
func NewVI(d *lab.Data, p model.Params, jitter float64, link Link) (*VI, error) {
	b, err := newProcess(d, p, jitter, link)
	if err != nil {
		return nil, err
	}
	table := func() *mat.Dense { return lab.NewTable(b.Data) }
	return &VI{process: b, S1: table(), S2: table(), g: table(), h: table(), expected: make([]float64, d.N())}, nil
}

// SetParams moves the parameters and computes q from the stored sites.
func (v *VI) SetParams(p model.Params) error {
	if err := v.Sparse.SetParams(p); err != nil {
		return err
	}
	return v.Solve(v.S1, v.S2)
}

// expect computes E and the expected derivatives by quadrature.
func (v *VI) expect() {
	for i, y := range v.sign {
		e, g, h := v.link.expected(v.rule, y, v.Mean.At(i, 0), v.Var.At(i, 0)+v.residual(i))
		v.expected[i] = e
		v.g.Set(i, 0, g)
		v.h.Set(i, 0, h)
	}
}

// Run takes natural-gradient steps of 0.5: s1 ← H, s2 ← G + H mean.
func (v *VI) Run(steps int, tolerance float64) error {
	const step = 0.5
	return lab.Converge(steps, tolerance, func() (float64, error) {
		v.expect()
		s2 := lab.NewTable(v.Data)
		s2.MulElem(v.h, v.Mean)
		s2.Add(s2, v.g)
		change := max(lab.Blend(v.S1, v.h, step), lab.Blend(v.S2, s2, step))
		return change, v.Solve(v.S1, v.S2)
	})
}

// LogZ is the bound, with KL = ½ (tr V + |m|² − M − log|V|).
func (v *VI) LogZ() float64 {
	v.expect()
	m := v.M.RowView(0)
	halfLogP := 0.5*mat.Dot(v.B.RowView(0), m) - v.LogN[0] // −½ log|V|
	sum := -0.5*(mat.Trace(v.V[0])+mat.Dot(m, m)-float64(v.Params.M)) - halfLogP
	for _, e := range v.expected {
		sum += e
	}
	return sum
}

// Gradient is the derivative of the bound with q held fixed, which is the total one at the
// optimum.
func (v *VI) Gradient() []float64 {
	v.expect()
	var c, q mat.Dense
	c.Scale(-1, v.h)
	q.Scale(-0.5, v.h)
	return v.gradient(lab.Features{W: v.AlongPosterior(v.g, &c), Q: &q})
}
