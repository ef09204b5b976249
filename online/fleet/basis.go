package fleet

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"edge/model"
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
	c.Params.Theta = slices.Clone(b.Params.Theta)
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

// check returns an error if the parameters are outside the range that learning keeps,
// or if a value is not finite.
func (b *Basis) check() error {
	p := b.Params
	p.Theta = slices.Clone(p.Theta)
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
		if mu := b.Scale.Mu[j]; !(sd > 0) || sd-sd != 0 || mu-mu != 0 {
			return fmt.Errorf("fleet: scaling of feature %d: mean %g, standard deviation %g: %w", j, mu, sd, ErrContribution)
		}
	}
	for i, v := range b.Scale.Ranks {
		if v-v != 0 || i%model.RankPoints > 0 && v < b.Scale.Ranks[i-1] {
			return fmt.Errorf("fleet: the ranks of a feature do not rise, or are not finite: %w", ErrContribution)
		}
	}
	return nil
}
