package mixture

import (
	"edge/model"
	"edge/online/wire"
)

// EncodeRegression appends the weights and their covariance.
func (m *Mixture) EncodeRegression(e *wire.Encoder) {
	if v := &m.view.Pool.Stack.Linear; m.view.Built() { // otherwise the next build starts it again
		e.Floats(v.W)
		e.Floats(v.V)
	}
}

// DecodeRegression reads the values that EncodeRegression wrote.
func (m *Mixture) DecodeRegression(d *wire.Decoder) {
	v := model.NewRegression(m.cfg.Features, len(m.view.Names))
	m.restoreRegression(d, v, d.Floats(len(v.W), "regression"), d.Floats(len(v.V), "regression"))
}

// DecodeFormerRegression reads the section "regression" of earlier programs: the weights, and the
// sums of squared gradients of each. The variances are those of weights that these tell.
func (m *Mixture) DecodeFormerRegression(d *wire.Decoder) {
	v := model.NewRegression(m.cfg.Features, len(m.view.Names))
	n, c := m.cfg.Features+1, float64(len(m.view.Names))
	w, squares := d.Floats(len(v.W), "regression"), d.Floats(len(v.W), "regression")
	for j := range n {
		var sum float64
		for row := 0; row < len(squares); row += n {
			sum += squares[row+j]
		}
		*v.VarianceAt(j) = 1 / (1 + linearCurvature*c/(2*max(c-1, 1))*sum)
	}
	m.restoreRegression(d, v, w, v.V)
}

// restoreRegression sets the weights of v and their covariance, after a check.
func (m *Mixture) restoreRegression(d *wire.Decoder, v model.Regression, weights, covariance []float64) {
	if d.Err() != nil {
		return
	}
	v.W, v.V = weights, covariance
	switch {
	case !sound(&v):
		d.Fail("regression holds a number that is not finite or too large, or a variance that is not positive")
	case !m.view.Built():
		d.Fail("regression without a model")
	case m.cfg.Regression:
		m.useRegression(v)
	}
}
