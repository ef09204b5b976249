package online

import (
	"math"

	"edge/model"
	"edge/model/dense"
)

// stack learns the exponents of model.Stack: Newton's steps on the log
// probability of the labels, one a minibatch, with a curvature that fades.
//
//	g = n^−½ Σ_i (e_iy − E[e_i])          e_i the experts' logarithms for sample i, E under the stack's answer
//	F ← F + n^−½ Σ_i Cov[e_i]             exponents ← exponents + F⁻¹g
//	F ← (1 − n/memory)·F + n/memory·prior·I
//
// n^−½ because the n samples of a minibatch err alike, as in weigh.
type stack struct {
	fisher []float64 // F×F  lower triangle
	logw   []float64 // of the members' answer and of the stack's, the larger 0

	pendGrad, pendFisher []float64 // F, F×F  sums of the minibatch that is filling
	pendLL               []float64 // of both answers

	mean, step, chol []float64 // scratch
}

const (
	stackMemory  = 5000 // labels that the exponents and the weight of their answer remember
	stackPrior   = 30   // precision of the exponents' start
	maxStackStep = 0.2  // of an exponent in one minibatch
)

// startStack begins with the geometric mean of the horizons and the whole chain,
// and without the regression.
func (l *Learner) startStack() {
	hs := len(l.cfg.Horizons)
	n := hs + 1 + len(model.RecentMemories) + 1
	floats := func(n int) []float64 { return make([]float64, n) }
	s := &l.stack
	*s = stack{
		fisher: floats(n * n), logw: floats(2), pendGrad: floats(n), pendFisher: floats(n * n), pendLL: floats(2),
		mean: floats(n), step: floats(n), chol: floats(n * n),
	}
	for i := range n {
		s.fisher[i*n+i] = stackPrior
	}
	v := &l.view.Pool.Stack
	*v = model.Stack{Exponents: floats(n)}
	for h := range hs {
		v.Exponents[h] = 1 / float64(hs)
	}
	v.Exponents[hs] = 1
	l.setStackWeight()
}

// distrustStack lets the members alone answer until the stack has earned its trust.
func (l *Learner) distrustStack() {
	l.stack.logw[0], l.stack.logw[1] = 0, distrust
	l.setStackWeight()
}

func (l *Learner) setStackWeight() {
	w := l.stack.logw
	l.view.Pool.Stack.Weight = 1 / (1 + math.Exp(w[0]-w[1]))
}

// observeStack notes a sample of class k and of that weight, from what the last
// prediction left in the workspace.
func (l *Learner) observeStack(k int, weight float64) {
	s := &l.stack
	answer, members, experts := l.ws.SecondOpinion()
	if answer == nil {
		return
	}
	c, n := len(answer), len(s.mean)
	s.pendLL[0] += weight * math.Log(max(members[k], minMixProb))
	s.pendLL[1] += weight * math.Log(max(answer[k], minMixProb))
	for i := range n {
		row := experts[i*c : (i+1)*c]
		s.mean[i] = dense.Dot(answer, row)
		s.pendGrad[i] += weight * (row[k] - s.mean[i])
		for j := range i + 1 {
			other, cov := experts[j*c:(j+1)*c], 0.0
			for k, p := range answer {
				cov += p * (row[k] - s.mean[i]) * (other[k] - s.mean[j])
			}
			s.pendFisher[i*n+j] += weight * cov
		}
	}
}

// learnStack takes the step of a minibatch of n samples. It stands even if the
// model's step is refused: the predictions were made.
func (l *Learner) learnStack(n int) {
	s, exponents := &l.stack, l.view.Pool.Stack.Exponents
	size, one := len(exponents), 1/math.Sqrt(float64(n))
	dense.Axpy(one, s.pendFisher, s.fisher)
	copy(s.chol, s.fisher)
	if dense.Cholesky(size, s.chol, size) {
		for i, g := range s.pendGrad {
			s.step[i] = one * g
		}
		dense.SolveTriTrans(1, size, s.chol, size, s.step, size)
		dense.SolveTri(1, size, s.chol, size, s.step, size)
		for i, v := range s.step {
			exponents[i] += min(max(v, -maxStackStep), maxStackStep)
		}
	}
	fade := 1 - float64(n)/stackMemory
	scale(fade, s.fisher)
	for i := range size {
		s.fisher[i*size+i] += (1 - fade) * stackPrior
	}
	weigh(s.logw, s.pendLL, n, stackMemory)
	clear(s.pendGrad)
	clear(s.pendFisher)
	clear(s.pendLL)
	l.setStackWeight()
}

// growRecent makes room for the classes that were published since there were old.
func (l *Learner) growRecent(old int) {
	c, s := len(l.view.Names), &l.view.Pool.Stack
	if l.cfg.Temporal == TemporalOff || (c == old && s.Recent != nil) {
		return
	}
	recent := make([]float64, len(model.RecentMemories)*c)
	if s.Recent != nil {
		for j := range model.RecentMemories {
			copy(recent[j*c:(j+1)*c], s.Recent[j*old:(j+1)*old])
		}
	}
	s.Recent = recent
}

// noteRecent counts a label of class k among the latest.
func (l *Learner) noteRecent(k int) {
	recent, c := l.view.Pool.Stack.Recent, len(l.view.Names)
	if recent == nil {
		return
	}
	for j, memory := range model.RecentMemories {
		row := recent[j*c : (j+1)*c]
		scale(1-1/memory, row)
		row[k]++
	}
}

// dropFromRecent takes class k of c out of the latest labels.
func (l *Learner) dropFromRecent(k, c int) {
	s := &l.view.Pool.Stack
	if s.Recent == nil {
		return
	}
	var kept []float64
	for i, v := range s.Recent {
		if i%c != k {
			kept = append(kept, v)
		}
	}
	s.Recent = kept
}

func (l *Learner) encodeStack(e *encoder) {
	s, v := &l.stack, &l.view.Pool.Stack
	others := len(s.mean) - 1 // the regression, which came later, has a section of its own
	e.floats(v.Exponents[:others])
	e.floats(s.logw)
	e.floats(s.pendLL)
	e.floats(s.pendGrad[:others])
	for i := range others {
		e.floats(s.fisher[i*len(s.mean) : i*len(s.mean)+i+1])
		e.floats(s.pendFisher[i*len(s.mean) : i*len(s.mean)+i+1])
	}
	e.bool(v.Recent != nil)
	e.floats(v.Recent)
}

func (l *Learner) decodeStack(d *decoder) {
	s, v := &l.stack, &l.view.Pool.Stack
	others := len(s.mean) - 1
	for _, x := range [][]float64{v.Exponents[:others], s.logw, s.pendLL, s.pendGrad[:others]} {
		for i := range x {
			x[i] = d.number("exponents")
		}
	}
	for i := range others {
		d.fill(s.fisher[i*len(s.mean):i*len(s.mean)+i+1], "curvature")
		d.fill(s.pendFisher[i*len(s.mean):i*len(s.mean)+i+1], "curvature")
	}
	if d.bool() {
		recent := d.floats(len(model.RecentMemories)*len(l.view.Names), "latest labels")
		if l.cfg.Temporal != TemporalOff {
			v.Recent = recent
		}
	}
	l.setStackWeight()
}
