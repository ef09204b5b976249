package fleet

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"edge/model"
	"edge/online/wire"
)

// Basis is the basis in which sites are written: the parameters of the kernel, with the
// inducing inputs, and the scaling of their units.
type Basis struct {
	Params model.Params
	Scale  model.Scale
}

// clone returns a deep copy.
func (b *Basis) clone() Basis {
	c := *b
	c.Params = b.Params.Clone()
	c.Scale.Mu, c.Scale.Sd, c.Scale.Ranks = slices.Clone(b.Scale.Mu), slices.Clone(b.Scale.Sd), slices.Clone(b.Scale.Ranks)
	return c
}

// equal reports whether two bases are the same to the last bit, where features of the
// same units are. The label noise is no part of a basis.
func (b *Basis) equal(o *Basis, u Units) bool {
	p, q := &b.Params, &o.Params
	return p.M == q.M && p.D == q.D && slices.Equal(p.Theta[:len(p.Theta)-1], q.Theta[:len(q.Theta)-1]) && u.same(&b.Scale, &o.Scale)
}

// Features identifies the features of a model: their names in order, and how streams
// make them of signals.
func Features(names []string, signals string) uint64 {
	h := fnv.New64a()
	for _, name := range append(slices.Clone(names), signals) {
		var size [8]byte
		binary.LittleEndian.PutUint64(size[:], uint64(len(name)))
		h.Write(size[:])
		h.Write([]byte(name))
	}
	return h.Sum64()
}

// maxMoment bounds means, standard deviations and quantiles of features, of one device or of
// several: their squares, and inducing inputs in their units, are finite.
const maxMoment = 10 * model.MaxFeature

// check returns an error if the parameters are outside the range that learning keeps, or the
// scaling is outside that of features.
func (b *Basis) check() error {
	p := b.Params.Clone()
	p.Clamp(maxEps)
	for i, v := range p.Theta[:len(p.Theta)-1] {
		if v-v != 0 || v != b.Params.Theta[i] {
			return fmt.Errorf("fleet: parameter %d is %g, out of range: %w", i, b.Params.Theta[i], ErrContribution)
		}
		if i < p.M*p.D && math.Abs(v) > maxInput {
			return fmt.Errorf("fleet: inducing input %g, out of range: %w", v, ErrContribution)
		}
	}
	if eps := b.Params.Eps(); !(eps >= 0 && eps <= maxEps) {
		return fmt.Errorf("fleet: label noise %g, out of range: %w", eps, ErrContribution)
	}
	for j, sd := range b.Scale.Sd {
		if mu := b.Scale.Mu[j]; !(sd > 0 && sd <= maxMoment && math.Abs(mu) <= maxMoment) {
			return fmt.Errorf("fleet: scaling of feature %d: mean %g, standard deviation %g: %w", j, mu, sd, ErrContribution)
		}
	}
	for i, v := range b.Scale.Ranks {
		if !(math.Abs(v) <= maxMoment) || i%model.RankPoints > 0 && v < b.Scale.Ranks[i-1] {
			return fmt.Errorf("fleet: the ranks of a feature do not rise, or are out of range: %w", ErrContribution)
		}
	}
	return nil
}

// rounded returns a copy of b whose parameters and ranks are rounded to 32 bits. Ranks beyond their
// range are at its end.
func (b *Basis) rounded() Basis {
	c := b.clone()
	for i, v := range c.Params.Theta {
		c.Params.Theta[i] = float64(float32(v))
	}
	*c.Params.LogitEps() = model.Logit(float64(float32(b.Params.Eps())))
	for i, v := range c.Scale.Ranks {
		c.Scale.Ranks[i] = float64(float32(min(max(v, -math.MaxFloat32), math.MaxFloat32)))
	}
	return c
}

// encode appends a basis in full precision.
func (b *Basis) encode(e *wire.Encoder) {
	e.Floats(b.Params.Theta)
	e.Floats(b.Scale.Mu)
	e.Floats(b.Scale.Sd)
	e.Float(b.Scale.Clip)
	e.Bool(b.Scale.Ranks != nil)
	e.Floats(b.Scale.Ranks)
}

// decode reads the values that encode wrote, of m inducing points in d dimensions.
func (b *Basis) decode(d *wire.Decoder, m, features int) {
	b.Params = model.Params{M: m, D: features, Theta: d.Floats(m*features+features+3, "parameters")}
	b.Scale.Mu, b.Scale.Sd = d.Floats(features, "scale"), d.Floats(features, "scale")
	b.Scale.Clip = d.Number("clip")
	if d.Bool() {
		b.Scale.Ranks = d.Floats(features*model.RankPoints, "ranks")
	}
	if d.Err() == nil {
		if err := b.check(); err != nil {
			d.Abort(err)
		}
	}
}

// encodeShort appends a basis with 32 bits for each parameter and rank.
func (b *Basis) encodeShort(e *wire.Encoder) {
	e.Bool(b.Scale.Ranks != nil)
	e.Floats(b.Scale.Mu)
	e.Floats(b.Scale.Sd)
	for _, v := range b.Scale.Ranks {
		e.Float32(v)
	}
	for _, v := range b.Params.Theta[:len(b.Params.Theta)-1] {
		e.Float32(v)
	}
	e.Float32(b.Params.Eps())
}

// decodeShort reads the values that encodeShort wrote, of m inducing points.
func (b *Basis) decodeShort(d *wire.Decoder, m, features int) {
	ranked := d.Bool()
	b.Scale.Mu, b.Scale.Sd = d.Floats(features, "scale"), d.Floats(features, "scale")
	floats := func(n int, what string) []float64 {
		if d.Err() != nil || d.Len()/4 < n {
			d.Fail("truncated %s", what)
			return nil
		}
		x := make([]float64, n)
		for i := range x {
			x[i] = d.Float32(what)
		}
		return x
	}
	if ranked {
		b.Scale.Ranks = floats(features*model.RankPoints, "ranks")
	}
	b.Params = model.Params{M: m, D: features, Theta: floats(m*features+features+3, "parameters")}
	if d.Err() == nil {
		*b.Params.LogitEps() = model.Logit(*b.Params.LogitEps()) // ε is sent itself: its logit may be infinite
	}
}
