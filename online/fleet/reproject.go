package fleet

import (
	"fmt"

	"edge/model"
	"edge/model/dense"
)

// On calls add with the sums of each horizon and class, written in basis b, whose features have
// these units in common with those of the merge: the lower triangle of E, M×M, and e. They are
// valid until the next call. On its own basis the sums are those of the merge, to the last bit. The
// error is model.ErrFactor if a basis or a sum does not factor, and nothing more is added.
func (m *Merge) On(b *Basis, u Units, add func(h, k int, a, sum []float64)) error {
	size, from := b.Params.M, m.Params.M
	p, err := newProjector(b, u)
	if err != nil {
		return err
	}
	if err := p.from(&m.Basis); err != nil {
		return err
	}
	floats := func(n int) []float64 { return make([]float64, n) }
	a, sum, full, sumFrom := floats(size*size), floats(size), floats(from*from), floats(from)
	for h := range m.Horizons {
		for k, name := range m.Classes {
			clear(full)
			clear(sumFrom)
			m.Sum(h, k, full, sumFrom)
			if p.same {
				copy(a, full)
				copy(sum, sumFrom)
			} else {
				p.symmetric(full, sumFrom, a, sum)
			}
			allowRounding(a, size)
			copy(p.check, a)
			if !factors(p.check, size) {
				return fmt.Errorf("fleet: sum of class %.40q on this basis: %w", name, model.ErrFactor)
			}
			add(h, k, a, sum)
		}
	}
	return nil
}

// symmetric stores TᵀFT in a, of which the lower triangle counts, and Tᵀf in b, for F
// with the lower triangle full, M_i×M_i, and f of M_i numbers.
func (p *projector) symmetric(full, f, a, b []float64) {
	m, mi := p.m, len(f)
	for i := range mi {
		for j := range i {
			full[j*mi+i] = full[i*mi+j]
		}
	}
	dense.Gemm(false, false, m, mi, mi, 1, p.t, mi, full, mi, 0, p.c, mi) // TᵀF
	transpose(p.ct, p.c, m, mi)                                           // FT
	t := make([]float64, mi*m)
	transpose(t, p.t, m, mi)
	dense.SymmetricProduct(true, false, m, mi, t, m, p.ct, m, a, m)
	dense.Gemv(false, m, mi, 1, p.t, mi, f, 0, b)
}
