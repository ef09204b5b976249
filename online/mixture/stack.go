package mixture

import (
	"iter"
	"math"
	"slices"

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
	prior  float64   // precision of the exponents' start
	fisher []float64 // F×F  lower triangle
	logw   []float64 // of the members' answer and of the blend's, the larger 0

	pendGrad, pendFisher []float64 // F, F×F  sums of the minibatch that is filling
	pendLL               []float64 // of both answers

	mean, step, chol []float64 // scratch
}

const (
	stackMemory  = 5000 // labels that the exponents and the weight of their answer remember
	stackPrior   = 30   // precision of the exponents' start
	forestPrior  = 10   // the same with a forest, of which the worth differs more between streams
	forestShare  = 0.4  // the forest's first exponent
	maxStackStep = 0.2  // of an exponent in one minibatch
)

// newBlend begins with the geometric mean of the horizons, and of the forest where
// there is one, and, if the chain is among the experts, with the whole chain. The
// other exponents are 0. A forest whose exponent began at 0 would give a third less on
// streams of a few thousand labels.
func (m *Mixture) newBlend(chain bool) (blend, model.Blend) {
	floats := func(n int) []float64 { return make([]float64, n) }
	horizons := m.banked()
	n, share, prior := horizons+1, 1., float64(stackPrior)
	if m.cfg.Forest {
		n, share, prior = n+1, 1-forestShare, forestPrior
	}
	if chain {
		n += 1 + len(model.RecentMemories)
	}
	b := blend{
		prior: prior, fisher: floats(n * n), logw: floats(2), pendGrad: floats(n), pendFisher: floats(n * n), pendLL: floats(2),
		mean: floats(n), step: floats(n), chol: floats(n * n),
	}
	v := model.Blend{Exponents: floats(n)}
	for i := range n {
		b.fisher[i*n+i] = prior
		switch {
		case i < horizons:
			v.Exponents[i] = share / float64(horizons)
		case i == m.forestExpert() && m.cfg.Forest:
			v.Exponents[i] = forestShare
		case i == m.forestExpert() || i == m.forestExpert()+1 && m.cfg.Forest:
			v.Exponents[i] = 1
		}
	}
	return b, v
}

// forestExpert is the index of the forest among the experts, if it is one.
func (m *Mixture) forestExpert() int { return m.banked() + 1 }

// restartFeatures starts the exponents of the experts that use the features again.
func (m *Mixture) restartFeatures() {
	features := m.forestExpert()
	if m.cfg.Forest {
		features++
	}
	for b, v := range m.blends() {
		n := len(b.mean)
		_, start := m.newBlend(n > features)
		copy(v.Exponents[:features], start.Exponents)
		for j := range features {
			for i := range n {
				for _, at := range [2]int{j*n + i, i*n + j} {
					b.fisher[at], b.pendFisher[at] = 0, 0
				}
			}
			b.fisher[j*n+j], b.pendGrad[j] = b.prior, 0
		}
	}
}

// RestartForest prepares the blends for a forest that begins empty: the horizons
// inherit its exponent, and it begins with 0.
func (m *Mixture) RestartForest() {
	if !m.cfg.Forest {
		return
	}
	f := m.forestExpert()
	for b, v := range m.blends() {
		n := len(b.mean)
		inherit(v.Exponents[:m.banked()], v.Exponents[f])
		v.Exponents[f], b.pendGrad[f] = 0, 0
		for i := range n {
			for _, at := range [2]int{f*n + i, i*n + f} {
				b.fisher[at], b.pendFisher[at] = 0, 0
			}
		}
		b.fisher[f*n+f] = b.prior
	}
}

// AddForest begins the blends anew, with a forest among the experts.
func (m *Mixture) AddForest() {
	m.cfg.Forest = true
	m.startStack()
}

// inherit spreads an exponent over others.
func inherit(exponents []float64, exponent float64) {
	for h := range exponents {
		exponents[h] += exponent / float64(len(exponents))
	}
}

// blends are both blends with their places in the view.
func (m *Mixture) blends() iter.Seq2[*blend, *model.Blend] {
	return func(yield func(*blend, *model.Blend) bool) {
		s := &m.view.Pool.Stack
		_ = yield(&m.ordered, &s.Ordered) && yield(&m.plain, &s.Plain)
	}
}

// startStack begins with two blends: of all experts, and of those that do not use
// the order of the labels.
func (m *Mixture) startStack() {
	v := &m.view.Pool.Stack
	m.ordered, v.Ordered = m.newBlend(true)
	m.plain, v.Plain = m.newBlend(false)
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
		b.fisher[i*size+i] += (1 - fade) * b.prior
	}
	weigh(b.logw, b.pendLL, n, stackMemory)
	clear(b.pendGrad)
	clear(b.pendFisher)
	clear(b.pendLL)
}

// EncodeBlends appends both blends, and a place for the latest labels of earlier
// programs, which are in a section now, unless a forest is among the experts.
func (m *Mixture) EncodeBlends(e *wire.Encoder) {
	if !m.cfg.Forest {
		m.encodeBlends(e)
	}
}

// EncodeExperts appends the same as EncodeBlends, if a forest is among the
// experts.
func (m *Mixture) EncodeExperts(e *wire.Encoder) {
	if m.cfg.Forest {
		m.encodeBlends(e)
	}
}

func (m *Mixture) encodeBlends(e *wire.Encoder) {
	for b, blend := range m.blends() {
		b.encode(e, blend)
	}
	e.Bool(false)
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

// DecodeBlends reads the values that EncodeBlends wrote. A forest, which these blends
// lack, has to show its worth first: their exponents were learnt without it, and its own
// begins with 0.
func (m *Mixture) DecodeBlends(d *wire.Decoder) {
	m.RestartForest()
	for b, v := range m.blends() {
		m.decodeBlend(d, b, v, m.experts(b, m.forestExpert()))
	}
	m.setStack()
	m.decodeRecent(d)
}

// DecodeExperts reads the values that EncodeExperts wrote. The horizons inherit the
// exponent of a forest that is not among the experts any more.
func (m *Mixture) DecodeExperts(d *wire.Decoder) {
	for b, v := range m.blends() {
		stored := m.experts(b)
		if !m.cfg.Forest {
			stored = slices.Insert(stored, m.forestExpert(), -1)
		}
		m.decodeBlend(d, b, v, stored)
	}
	m.setStack()
	m.decodeRecent(d)
}

// DecodeStack reads the section of earlier programs, which had one blend, with the
// chain and without regression and forest.
func (m *Mixture) DecodeStack(d *wire.Decoder) {
	m.RestartForest()
	m.decodeBlend(d, &m.ordered, &m.view.Pool.Stack.Ordered, m.experts(&m.ordered, m.banked(), m.forestExpert()))
	m.setStack()
	m.decodeRecent(d)
}

// experts are the indices of a blend's experts; lacking are left out, but for the place
// of a forest that is not among them.
func (m *Mixture) experts(b *blend, lacking ...int) (all []int) {
	for i := range b.mean {
		if i == m.forestExpert() && !m.cfg.Forest || !slices.Contains(lacking, i) {
			all = append(all, i)
		}
	}
	return all
}

// decodeBlend reads the values that encode wrote for the stored experts, given by their
// indices, −1 for one that is dropped.
func (m *Mixture) decodeBlend(d *wire.Decoder, b *blend, v *model.Blend, stored []int) {
	n := len(b.mean)
	vector := func(dst []float64) (dropped float64) {
		for _, at := range stored {
			if x := d.Number("exponents"); at >= 0 {
				dst[at] = x
			} else {
				dropped = x
			}
		}
		return dropped
	}
	inherit(v.Exponents[:m.banked()], vector(v.Exponents))
	for _, x := range [][]float64{b.logw, b.pendLL} {
		for i := range x {
			x[i] = d.Number("exponents")
		}
	}
	vector(b.pendGrad)
	for i, row := range stored {
		for _, rows := range [][]float64{b.fisher, b.pendFisher} {
			for _, column := range stored[:i+1] {
				if x := d.Number("curvature"); row >= 0 && column >= 0 {
					rows[row*n+column] = x
				}
			}
		}
	}
}

func (m *Mixture) decodeRecent(d *wire.Decoder) {
	if d.Bool() {
		recent := d.Floats(len(model.RecentMemories)*len(m.view.Names), "latest labels")
		if m.cfg.Chain {
			m.view.Pool.Order.Recent = recent
		}
	}
}
