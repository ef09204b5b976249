package mixture

import (
	"slices"

	"edge/model"
	"edge/online/wire"
)

// EncodeBlends appends whether a forest is among the experts, and both blends.
func (m *Mixture) EncodeBlends(e *wire.Encoder) {
	e.Bool(m.cfg.Forest)
	for b := range m.blends() {
		e.Floats(b.lead[:2])
		e.Floats(b.logw)
		e.Floats(b.pendLL)
		for _, x := range b.own() {
			x.encode(e)
		}
	}
}

func (x *exponents) encode(e *wire.Encoder) {
	n := len(x.at)
	e.Floats(x.at)
	e.Float(x.pendLL)
	e.Floats(x.pendGrad)
	for i := range n {
		e.Floats(x.curve[i*n : i*n+i+1])
		e.Floats(x.pendCurve[i*n : i*n+i+1])
	}
}

// DecodeBlends reads the values that EncodeBlends wrote after the first one. forest is that
// first one: whether a forest is among the stored experts. If there is none any more, the horizons
// inherit its exponent. One that the stored experts lack has to show its worth first: the
// exponents were learnt without it, and its own begins with 0.
func (m *Mixture) DecodeBlends(d *wire.Decoder, forest bool) {
	if !forest {
		m.RestartForest()
	}
	for b, v := range m.blends() {
		stored := m.stored(b, forest)
		d.Numbers(b.lead[:2], "exponents")
		d.Numbers(b.logw, "exponents")
		d.Numbers(b.pendLL, "exponents")
		for _, x := range b.own() {
			x.decode(d, stored, m.banked())
			x.pendLL = d.Number("exponents")
			x.decodeSums(d, stored)
		}
		b.publishRead(d, v)
	}
	m.setStack()
}

// stored are the places of the stored experts of a blend, −1 for a forest that is not
// among them any more.
func (m *Mixture) stored(b *blend, forest bool) []int {
	switch {
	case !forest:
		return m.experts(b, m.forestExpert())
	case !m.cfg.Forest:
		return slices.Insert(m.experts(b), m.forestExpert(), -1)
	}
	return m.experts(b)
}

// experts are the indices of a blend's experts; lacking are left out, but for the place
// of a forest that is not among them.
func (m *Mixture) experts(b *blend, lacking ...int) (all []int) {
	for i := range b.slow.at {
		if i == m.forestExpert() && !m.cfg.Forest || !slices.Contains(lacking, i) {
			all = append(all, i)
		}
	}
	return all
}

// decode reads the exponents of the stored experts, which are given by their places, −1
// for one that is dropped: the horizons inherit its exponent.
func (x *exponents) decode(d *wire.Decoder, stored []int, horizons int) {
	inherit(x.at[:horizons], fill(d, x.at, stored))
}

// decodeSums reads the gradient and the curvatures of the stored experts.
func (x *exponents) decodeSums(d *wire.Decoder, stored []int) {
	n := len(x.at)
	fill(d, x.pendGrad, stored)
	for i, row := range stored {
		for _, rows := range [][]float64{x.curve, x.pendCurve} {
			for _, column := range stored[:i+1] {
				if v := d.Number("curvature"); row >= 0 && column >= 0 {
					rows[row*n+column] = v
				}
			}
		}
	}
}

// fill reads a number for each stored expert into its place in dst. It returns the one
// of the expert that is dropped.
func fill(d *wire.Decoder, dst []float64, stored []int) (dropped float64) {
	for _, at := range stored {
		if v := d.Number("exponents"); at >= 0 {
			dst[at] = v
		} else {
			dropped = v
		}
	}
	return dropped
}

// DecodeFormer reads the section "experts" of earlier programs, with a forest, or
// "blends", without: each blend had one learner.
func (m *Mixture) DecodeFormer(d *wire.Decoder, forest bool) {
	if !forest {
		m.RestartForest()
	}
	for b, v := range m.blends() {
		m.decodeFormer(d, b, m.stored(b, forest))
		b.publishRead(d, v)
	}
	m.setStack()
	m.decodeRecent(d)
}

// DecodeStack reads the section "stack" of programs before those, which had one blend,
// with the chain and without regression and forest.
func (m *Mixture) DecodeStack(d *wire.Decoder) {
	m.RestartForest()
	m.ordered.slow.restart(m.banked(), 0) // the regression, which these exponents were learnt without
	m.decodeFormer(d, &m.ordered, m.experts(&m.ordered, m.banked(), m.forestExpert()))
	m.ordered.publishRead(d, &m.view.Pool.Stack.Ordered)
	m.setStack()
	m.decodeRecent(d)
}

// decodeFormer reads a blend of one learner. Both go on from it.
func (m *Mixture) decodeFormer(d *wire.Decoder, b *blend, stored []int) {
	x := &b.slow
	x.decode(d, stored, m.banked())
	d.Numbers(b.logw, "exponents")
	d.Numbers(b.pendLL, "exponents")
	x.decodeSums(d, stored)
	b.fast.follow(x)
}

// publishRead stores exponents in the view that were read. It refuses those of which the
// sum or the difference is too large for a number.
func (b *blend) publishRead(d *wire.Decoder, v *model.Blend) {
	b.publish(v)
	for _, x := range v.Exponents {
		if x-x != 0 {
			d.Fail("the exponents %v and %v are too large", b.slow.at, b.fast.at)
			return
		}
	}
}

// follow takes over the exponents and the curvatures of another learner.
func (x *exponents) follow(of *exponents) {
	copy(x.at, of.at)
	copy(x.curve, of.curve)
	copy(x.pendGrad, of.pendGrad)
	copy(x.pendCurve, of.pendCurve)
}

func (m *Mixture) decodeRecent(d *wire.Decoder) {
	if d.Bool() {
		recent := d.Floats(len(model.RecentMemories)*len(m.view.Names), "latest labels")
		if m.cfg.Chain {
			m.view.Pool.Order.Recent = recent
		}
	}
}
