package online

import (
	"math"

	"edge/model"
	"edge/model/dense"
)

// blend learns the exponents of a model.Blend: Newton's steps on the log
// probability of the labels, one a minibatch, with a curvature that fades.
//
//	g = n^−½ Σ_i (e_iy − E[e_i])          e_i the experts' logarithms for sample i, E under the blend's answer
//	F ← F + n^−½ Σ_i Cov[e_i]             exponents ← exponents + F⁻¹g
//	F ← (1 − n/memory)·F + n/memory·prior·I
//
// n^−½ because the n samples of a minibatch err alike, as in weigh.
type blend struct {
	fisher []float64 // F×F  lower triangle
	logw   []float64 // of the members' answer and of the blend's, the larger 0

	pendGrad, pendFisher []float64 // F, F×F  sums of the minibatch that is filling
	pendLL               []float64 // of both answers

	mean, step, chol []float64 // scratch
}

const (
	stackMemory  = 5000 // labels that the exponents and the weight of their answer remember
	stackPrior   = 30   // precision of the exponents' start
	maxStackStep = 0.2  // of an exponent in one minibatch
)

// newBlend begins with the geometric mean of the horizons, the whole chain, if
// it is among the n experts, and nothing else.
func newBlend(n, horizons int) (blend, model.Blend) {
	floats := func(n int) []float64 { return make([]float64, n) }
	b := blend{
		fisher: floats(n * n), logw: floats(2), pendGrad: floats(n), pendFisher: floats(n * n), pendLL: floats(2),
		mean: floats(n), step: floats(n), chol: floats(n * n),
	}
	v := model.Blend{Exponents: floats(n)}
	for i := range n {
		b.fisher[i*n+i] = stackPrior
		switch {
		case i < horizons:
			v.Exponents[i] = 1 / float64(horizons)
		case i == horizons+1:
			v.Exponents[i] = 1
		}
	}
	return b, v
}

// startStack begins with all experts, and with those that know no order.
func (l *Learner) startStack() {
	hs, v := len(l.cfg.Horizons), &l.view.Pool.Stack
	l.ordered, v.Ordered = newBlend(hs+2+len(model.RecentMemories), hs)
	l.plain, v.Plain = newBlend(hs+1, hs)
	l.setStackWeights()
}

// distrustStack lets the members alone answer until the stack has earned its trust.
func (l *Learner) distrustStack() {
	l.ordered.logw[0], l.ordered.logw[1] = 0, distrust
	l.plain.logw[0], l.plain.logw[1] = 0, distrust
	l.setStackWeights()
}

// setStackWeights gives each blend the weight that it has earned. Where labels
// are asked for, the members alone answer for samples without one: what labels of
// the hardest samples have taught a blend does not hold for the others.
func (l *Learner) setStackWeights() {
	v := &l.view.Pool.Stack
	v.Ordered.Weight, v.Plain.Weight = l.ordered.weight(), l.plain.weight()
	if l.cfg.Passes > 0 {
		v.Plain.Weight = 0
	}
}

// weight is that of the answer.
func (b *blend) weight() float64 { return 1 / (1 + math.Exp(b.logw[0]-b.logw[1])) }

// observeStack notes a sample of class k and of that weight, from what the last
// prediction left in the workspace.
func (l *Learner) observeStack(k int, weight float64) {
	l.ordered.observe(l.ws.Ordered(), k, weight)
	l.plain.observe(l.ws.Plain(&l.view), k, weight)
}

func (b *blend) observe(said model.Opinion, k int, weight float64) {
	if len(said.Answer) == 0 {
		return
	}
	c, n := len(said.Answer), len(b.mean)
	b.pendLL[0] += weight * math.Log(max(said.Members[k], minMixProb))
	b.pendLL[1] += weight * math.Log(max(said.Answer[k], minMixProb))
	for i := range n {
		row := said.Experts[i*c : (i+1)*c]
		b.mean[i] = dense.Dot(said.Answer, row)
		b.pendGrad[i] += weight * (row[k] - b.mean[i])
		for j := range i + 1 {
			other, cov := said.Experts[j*c:(j+1)*c], 0.0
			for k, p := range said.Answer {
				cov += p * (row[k] - b.mean[i]) * (other[k] - b.mean[j])
			}
			b.pendFisher[i*n+j] += weight * cov
		}
	}
}

// learnStack takes the steps of a minibatch of n samples. They stand even if the
// model's step is refused: the predictions were made.
func (l *Learner) learnStack(n int) {
	v := &l.view.Pool.Stack
	l.ordered.learn(&v.Ordered, n)
	l.plain.learn(&v.Plain, n)
	l.setStackWeights()
}

func (b *blend) learn(v *model.Blend, n int) {
	size, one := len(v.Exponents), 1/math.Sqrt(float64(n))
	dense.Axpy(one, b.pendFisher, b.fisher)
	copy(b.chol, b.fisher)
	if dense.Cholesky(size, b.chol, size) {
		for i, g := range b.pendGrad {
			b.step[i] = one * g
		}
		dense.SolveTriTrans(1, size, b.chol, size, b.step, size)
		dense.SolveTri(1, size, b.chol, size, b.step, size)
		for i, step := range b.step {
			v.Exponents[i] += min(max(step, -maxStackStep), maxStackStep)
		}
	}
	fade := 1 - float64(n)/stackMemory
	scale(fade, b.fisher)
	for i := range size {
		b.fisher[i*size+i] += (1 - fade) * stackPrior
	}
	weigh(b.logw, b.pendLL, n, stackMemory)
	clear(b.pendGrad)
	clear(b.pendFisher)
	clear(b.pendLL)
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

// encodeBlends writes what was learnt of all experts, and the latest labels.
func (l *Learner) encodeBlends(e *encoder) {
	v := &l.view.Pool.Stack
	l.ordered.encode(e, &v.Ordered)
	l.plain.encode(e, &v.Plain)
	e.bool(v.Recent != nil)
	e.floats(v.Recent)
}

func (b *blend) encode(e *encoder, v *model.Blend) {
	e.floats(v.Exponents)
	e.floats(b.logw)
	e.floats(b.pendLL)
	e.floats(b.pendGrad)
	for i := range b.mean {
		e.floats(b.fisher[i*len(b.mean) : i*len(b.mean)+i+1])
		e.floats(b.pendFisher[i*len(b.mean) : i*len(b.mean)+i+1])
	}
}

func (l *Learner) decodeBlends(d *decoder) {
	v := &l.view.Pool.Stack
	l.ordered.decode(d, &v.Ordered, -1)
	l.plain.decode(d, &v.Plain, -1)
	l.setStackWeights()
	l.decodeRecent(d)
}

// decodeStack reads what was written before there was a regression, and a blend
// without the chain.
func (l *Learner) decodeStack(d *decoder) {
	l.ordered.decode(d, &l.view.Pool.Stack.Ordered, len(l.cfg.Horizons))
	l.setStackWeights()
	l.decodeRecent(d)
}

// decode reads what encode wrote; without is an expert that it lacks, −1: none.
func (b *blend) decode(d *decoder, v *model.Blend, without int) {
	n := len(b.mean)
	for i, x := range [][]float64{v.Exponents, b.logw, b.pendLL, b.pendGrad} {
		for j := range x {
			if j != without || i == 1 || i == 2 {
				x[j] = d.number("exponents")
			}
		}
	}
	for i := range n {
		for _, rows := range [][]float64{b.fisher, b.pendFisher} {
			for j := range i + 1 {
				if i != without && j != without {
					rows[i*n+j] = d.number("curvature")
				}
			}
		}
	}
}

func (l *Learner) decodeRecent(d *decoder) {
	if d.bool() {
		recent := d.floats(len(model.RecentMemories)*len(l.view.Names), "latest labels")
		if l.cfg.Temporal != TemporalOff {
			l.view.Pool.Stack.Recent = recent
		}
	}
}
