package mixture

import (
	"math"
	"slices"

	"edge/model"
	"edge/online/wire"
)

// regression learns model.Stack.Linear by a step of stochastic gradient descent
// for each label, in order. The rate of each weight w follows from its past
// gradients, which fade:
//
//	g = x_j·(P(y=k | x) − [k is the label])·weight
//	G ← (1 − 1/memory)·G + g²,     w ← w − rate·g/(√G + tiny)
//
// so that features of any scale, and any number of them, learn alike. Every build
// of the model starts it again with all labels of the build.
//
// Source: Duchi, Hazan & Singer (2011), "Adaptive subgradient methods"; the
// fading sum keeps the rate from vanishing.
type regression struct {
	squares []float64 // C×(D+1)  G
	x       []float64 // D+1  scratch; the last is the constant 1
	logs    []float64 // C  scratch
}

const (
	linearRate   = 0.03
	linearMemory = 5000 // labels
	linearTiny   = 1e-4
)

// StartRegression begins with weights of 0.
func (m *Mixture) StartRegression() {
	m.regression, m.view.Pool.Stack.Linear = regression{}, model.Regression{D: m.cfg.Features}
	m.growRegression()
}

// growRegression makes room for the classes that were added to the view, once the
// model is built.
func (m *Mixture) growRegression() {
	r, v := &m.regression, &m.view.Pool.Stack.Linear
	n := len(m.view.Names) * (m.cfg.Features + 1)
	if !m.cfg.Regression || !m.view.Built() || len(v.W) >= n {
		return
	}
	v.D = m.cfg.Features
	w, squares := make([]float64, n), make([]float64, n)
	copy(w, v.W)
	copy(squares, r.squares)
	v.W, r.squares = w, squares
	r.x, r.logs = append(make([]float64, m.cfg.Features), 1), make([]float64, len(m.view.Names))
}

// LearnRegression learns samples in order.
//
//	x        n×D  raw
//	labels   n    classes
//	weights  n
func (m *Mixture) LearnRegression(x []float64, labels []int, weights []float64) {
	r, v := &m.regression, &m.view.Pool.Stack.Linear
	if len(v.W) == 0 {
		return
	}
	d, fade := m.cfg.Features, 1-1./linearMemory
	for i, label := range labels {
		m.view.Scale.To(r.x[:d], x[i*d:(i+1)*d])
		for j, v := range r.x {
			if v-v != 0 { // missing
				r.x[j] = 0
			}
		}
		v.LogsTo(r.logs, r.x[:d])
		for k, logp := range r.logs {
			miss := math.Exp(logp)
			if k == label {
				miss--
			}
			miss *= weights[i]
			row := k * (d + 1)
			w, squares := v.W[row:row+d+1], r.squares[row:row+d+1]
			for j, v := range r.x {
				g := miss * v
				squares[j] = fade*squares[j] + g*g
				w[j] -= linearRate * g / (math.Sqrt(squares[j]) + linearTiny)
			}
		}
	}
}

// RescaleRegression writes the weights for the scaling of the view, in place of the one of
// before. Where one of them has ranks, which are not linear, the regression starts again.
//
//	w_j ← w_j·sd_j'/sd_j,  b ← b + Σ_j w_j·(μ_j' − μ_j)/sd_j,  G_j ← G_j·(sd_j/sd_j')²
func (m *Mixture) RescaleRegression(before *model.Scale) {
	r, v, now, d := &m.regression, &m.view.Pool.Stack.Linear, &m.view.Scale, m.cfg.Features
	if len(v.W) == 0 {
		return
	}
	if before.Ranks != nil || now.Ranks != nil {
		if !slices.Equal(before.Ranks, now.Ranks) || !slices.Equal(before.Mu, now.Mu) || !slices.Equal(before.Sd, now.Sd) {
			m.StartRegression()
		}
		return
	}
	for row := 0; row < len(v.W); row += d + 1 {
		w, squares := v.W[row:row+d+1], r.squares[row:row+d+1]
		for j := range d {
			w[d] += float64(w[j] * ((now.Mu[j] - before.Mu[j]) / before.Sd[j]))
			ratio := now.Sd[j] / before.Sd[j]
			w[j] *= ratio
			squares[j] /= ratio * ratio
		}
	}
	if endless := func(v float64) bool { return v-v != 0 }; slices.ContainsFunc(v.W, endless) || slices.ContainsFunc(r.squares, endless) {
		m.StartRegression() // the scalings are too far apart
	}
}

// dropFromRegression removes class k.
func (m *Mixture) dropFromRegression(k int) {
	r, v := &m.regression, &m.view.Pool.Stack.Linear
	if len(v.W) == 0 {
		return
	}
	from, to := k*(m.cfg.Features+1), (k+1)*(m.cfg.Features+1)
	v.W, r.squares = slices.Concat(v.W[:from], v.W[to:]), slices.Concat(r.squares[:from], r.squares[to:])
	r.logs = r.logs[:len(r.logs)-1]
}

// EncodeRegression appends weights and gradients.
func (m *Mixture) EncodeRegression(e *wire.Encoder) {
	if m.view.Built() { // otherwise the next build starts it again
		e.Floats(m.view.Pool.Stack.Linear.W)
		e.Floats(m.regression.squares)
	}
}

// DecodeRegression reads the values that EncodeRegression wrote.
func (m *Mixture) DecodeRegression(d *wire.Decoder) {
	n := len(m.view.Names) * (m.cfg.Features + 1)
	w, squares := d.Floats(n, "regression"), d.Floats(n, "regression")
	if d.Err() != nil {
		return
	}
	for i, v := range w {
		if v-v != 0 || !(squares[i] >= 0 && squares[i] <= math.MaxFloat64) {
			d.Fail("regression holds a number that is not finite, or a negative square")
			return
		}
	}
	if !m.view.Built() {
		d.Fail("regression without a model")
		return
	}
	if !m.cfg.Regression {
		return
	}
	m.growRegression()
	copy(m.view.Pool.Stack.Linear.W, w)
	copy(m.regression.squares, squares)
}
