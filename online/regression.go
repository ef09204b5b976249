package online

import (
	"math"
	"slices"

	"edge/model"
)

// regression learns model.Stack.Linear by a step of stochastic gradient descent
// for each label, in order. The rate of each weight w follows from its gradients
// so far, which fade:
//
//	g = x_j·(P(y=k | x) − [k is the label])·weight
//	G ← (1 − 1/memory)·G + g²,     w ← w − rate·g/(√G + tiny)
//
// so that features of any scale, and any number of them, learn alike. It is
// begun anew with every build of the model, and learns all its labels.
//
// Source: Duchi, Hazan & Singer (2011), "Adaptive subgradient methods"; that the
// sum fades keeps the rate from ending.
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

// startRegression begins with weights of 0.
func (l *Learner) startRegression() {
	l.regression, l.view.Pool.Stack.Linear = regression{}, model.Regression{D: l.d}
	l.growRegression()
}

// growRegression makes room for the classes that were published since, once the
// model is built.
func (l *Learner) growRegression() {
	r, v := &l.regression, &l.view.Pool.Stack.Linear
	n := len(l.view.Names) * (l.d + 1)
	if !l.view.Built() || len(v.W) >= n {
		return
	}
	v.D = l.d
	w, squares := make([]float64, n), make([]float64, n)
	copy(w, v.W)
	copy(squares, r.squares)
	v.W, r.squares = w, squares
	r.x, r.logs = append(make([]float64, l.d), 1), make([]float64, len(l.view.Names))
}

// learnRegression learns samples in order.
//
//	x        n×D  raw
//	labels   n    classes
//	weights  n
func (l *Learner) learnRegression(x []float64, labels []int, weights []float64) {
	r, v := &l.regression, &l.view.Pool.Stack.Linear
	if len(v.W) == 0 {
		return
	}
	d, fade := l.d, 1-1./linearMemory
	for i, label := range labels {
		l.view.Scale.To(r.x[:d], x[i*d:(i+1)*d])
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

// dropFromRegression takes class k out.
func (l *Learner) dropFromRegression(k int) {
	r, v := &l.regression, &l.view.Pool.Stack.Linear
	if len(v.W) == 0 {
		return
	}
	from, to := k*(l.d+1), (k+1)*(l.d+1)
	v.W, r.squares = slices.Concat(v.W[:from], v.W[to:]), slices.Concat(r.squares[:from], r.squares[to:])
	r.logs = r.logs[:len(r.logs)-1]
}

// encodeRegression writes weights and gradients.
func (l *Learner) encodeRegression(e *encoder) {
	if l.view.Built() { // else it is begun anew with the next build
		e.floats(l.view.Pool.Stack.Linear.W)
		e.floats(l.regression.squares)
	}
}

func (l *Learner) decodeRegression(d *decoder) {
	n := len(l.view.Names) * (l.d + 1)
	w, squares := d.floats(n, "regression"), d.floats(n, "regression")
	for i, v := range w {
		if v-v != 0 || !(squares[i] >= 0 && squares[i] <= math.MaxFloat64) {
			d.fail("regression holds a number that is not finite, or a negative square")
			return
		}
	}
	if d.err != nil {
		return
	}
	if !l.view.Built() {
		d.fail("regression without a model")
		return
	}
	l.growRegression()
	copy(l.view.Pool.Stack.Linear.W, w)
	copy(l.regression.squares, squares)
}
