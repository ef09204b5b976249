package mixture

import (
	"math"

	"edge/model"
	"edge/model/dense"
	"edge/online/wire"
)

// blend learns the exponents of a model.Blend: Newton's steps on the log
// probability of the labels, one a minibatch, with a curvature that fades.
//
//	g = n^−½ Σ_i (e_iy − E[e_i])          e_i the experts' logarithms for sample i, E under the blend's answer
//	F ← F + n^−½ Σ_i Cov[e_i]             exponents ← exponents + F⁻¹g
//	F ← (1 − n/memory)·F + n/memory·prior·I
//
// The factor is n^−½ because the errors of the n samples of a minibatch are alike, as in weigh.
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

// newBlend begins with the geometric mean of the horizons and, if the chain is
// among the n experts, with the whole chain. The other exponents are 0.
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

// startStack begins with two blends: of all experts, and of those that do not use
// the order of the labels.
func (m *Mixture) startStack() {
	hs, v := m.cfg.Horizons, &m.view.Pool.Stack
	m.ordered, v.Ordered = newBlend(hs+2+len(model.RecentMemories), hs)
	m.plain, v.Plain = newBlend(hs+1, hs)
	m.setStack()
}

// distrustStack lets the members alone answer until the stack has earned its weight.
func (m *Mixture) distrustStack() {
	m.ordered.logw[0], m.ordered.logw[1] = 0, earned
	m.plain.logw[0], m.plain.logw[1] = 0, earned
	m.setStack()
}

// setStack stores the weight of each blend in the view.
func (m *Mixture) setStack() {
	v := &m.view.Pool.Stack
	v.Ordered.Weight, v.Plain.Weight = m.ordered.weight(), m.plain.weight()
	if m.cfg.FewLabels {
		v.Plain.Weight = 0
	}
}

// weight is the weight of the blend's answer.
func (b *blend) weight() float64 { return 1 / (1 + math.Exp(b.logw[0]-b.logw[1])) }

// observe adds a sample of class k with that weight; out holds the answers of its
// prediction.
func (b *blend) observe(out model.BlendOutput, k int, weight float64) {
	if len(out.Answer) == 0 {
		return
	}
	c, n := len(out.Answer), len(b.mean)
	b.pendLL[0] += weight * math.Log(max(out.Members[k], minProb))
	b.pendLL[1] += weight * math.Log(max(out.Answer[k], minProb))
	for i := range n {
		row := out.Experts[i*c : (i+1)*c]
		b.mean[i] = dense.Dot(out.Answer, row)
		b.pendGrad[i] += weight * (row[k] - b.mean[i])
		for j := range i + 1 {
			other, cov := out.Experts[j*c:(j+1)*c], 0.0
			for k, p := range out.Answer {
				cov += p * (row[k] - b.mean[i]) * (other[k] - b.mean[j])
			}
			b.pendFisher[i*n+j] += weight * cov
		}
	}
}

// learn takes the step of a minibatch of n samples.
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

// growRecent makes room for the classes that were added to the view since it had old.
func (m *Mixture) growRecent(old int) {
	c, s := len(m.view.Names), &m.view.Pool.Stack
	if !m.cfg.Chain || (c == old && s.Recent != nil) {
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
func (m *Mixture) noteRecent(k int) {
	recent, c := m.view.Pool.Stack.Recent, len(m.view.Names)
	if recent == nil {
		return
	}
	for j, memory := range model.RecentMemories {
		row := recent[j*c : (j+1)*c]
		scale(1-1/memory, row)
		row[k]++
	}
}

// dropFromRecent removes class k of c from the latest labels.
func (m *Mixture) dropFromRecent(k, c int) {
	s := &m.view.Pool.Stack
	if s.Recent == nil {
		return
	}
	s.Recent = appendWithout(nil, s.Recent, k, c)
}

// EncodeBlends appends both blends and the latest labels.
func (m *Mixture) EncodeBlends(e *wire.Encoder) {
	v := &m.view.Pool.Stack
	m.ordered.encode(e, &v.Ordered)
	m.plain.encode(e, &v.Plain)
	e.Bool(v.Recent != nil)
	e.Floats(v.Recent)
}

func (b *blend) encode(e *wire.Encoder, v *model.Blend) {
	e.Floats(v.Exponents)
	e.Floats(b.logw)
	e.Floats(b.pendLL)
	e.Floats(b.pendGrad)
	for i := range b.mean {
		e.Floats(b.fisher[i*len(b.mean) : i*len(b.mean)+i+1])
		e.Floats(b.pendFisher[i*len(b.mean) : i*len(b.mean)+i+1])
	}
}

// DecodeBlends reads the values that EncodeBlends wrote.
func (m *Mixture) DecodeBlends(d *wire.Decoder) {
	v := &m.view.Pool.Stack
	m.ordered.decode(d, &v.Ordered, -1)
	m.plain.decode(d, &v.Plain, -1)
	m.setStack()
	m.decodeRecent(d)
}

// DecodeStack reads the section of earlier programs, which had one blend, with the
// chain and without the regression.
func (m *Mixture) DecodeStack(d *wire.Decoder) {
	m.ordered.decode(d, &m.view.Pool.Stack.Ordered, m.cfg.Horizons)
	m.setStack()
	m.decodeRecent(d)
}

// decode reads the values that encode wrote; without is an expert that they lack,
// −1 if they are complete.
func (b *blend) decode(d *wire.Decoder, v *model.Blend, without int) {
	n := len(b.mean)
	for i, x := range [][]float64{v.Exponents, b.logw, b.pendLL, b.pendGrad} {
		for j := range x {
			if j != without || i == 1 || i == 2 {
				x[j] = d.Number("exponents")
			}
		}
	}
	for i := range n {
		for _, rows := range [][]float64{b.fisher, b.pendFisher} {
			for j := range i + 1 {
				if i != without && j != without {
					rows[i*n+j] = d.Number("curvature")
				}
			}
		}
	}
}

func (m *Mixture) decodeRecent(d *wire.Decoder) {
	if d.Bool() {
		recent := d.Floats(len(model.RecentMemories)*len(m.view.Names), "latest labels")
		if m.cfg.Chain {
			m.view.Pool.Stack.Recent = recent
		}
	}
}
