package fleet

import (
	"fmt"
	"slices"

	"edge/model"
	"edge/model/dense"
)

// maxRounding is the trace of a precision whose rounding to 32 bits is known to be small
// beside the ½ of factors: 2²²·2⁻²⁴ is a quarter.
const maxRounding = 1 << 22

// projector writes sites of other bases in one basis.
type projector struct {
	m     int // M of the basis
	basis *model.Basis
	own   Basis
	units Units

	same     bool      // the contribution has the basis itself
	t        []float64 // M×M_i  Tᵀ, T = L_i⁻¹ c(Z_i, Z) L⁻ᵀ
	r, c, ct []float64 // M_i×M_i, M×M_i, M_i×M  scratch: R, TᵀR and its transpose
	b        []float64 // M_i
	check    []float64 // M×M
	sender   *model.Basis
	z, zs    []float64 // M_i×D  scratch for from
	w, q     []float64 // M_i×M, 2×M_i
	sites    []sum     // of the classes of one contribution
}

// newProjector returns a projector on a basis. The error is model.ErrFactor.
func newProjector(own *Basis, u Units) (*projector, error) {
	m := own.Params.M
	p := &projector{m: m, basis: model.NewBasis(m, own.Params.D), own: *own, units: u, check: make([]float64, m*m)}
	if _, err := p.basis.Set(&own.Params); err != nil {
		return nil, fmt.Errorf("fleet: basis of the sums: %w", err)
	}
	return p, nil
}

// from prepares for sites that are written in basis b. The error is model.ErrFactor.
//
// The projection keeps the sites as a function of f, see package sep; its residual
// covariance does not pay.
func (p *projector) from(b *Basis) error {
	m, mi, d := p.m, b.Params.M, b.Params.D
	p.r, p.c, p.ct, p.b = sized(p.r, mi*mi), sized(p.c, m*mi), sized(p.ct, mi*m), sized(p.b, mi)
	if p.same = b.equal(&p.own, p.units); p.same {
		return nil
	}
	if p.sender == nil || p.sender.M != mi {
		p.sender = model.NewBasis(mi, d)
	}
	sender := p.sender
	if _, err := sender.Set(&b.Params); err != nil {
		return err
	}
	p.z, p.zs, p.w, p.q, p.t = sized(p.z, mi*d), sized(p.zs, mi*d), sized(p.w, mi*m), sized(p.q, 2*mi), sized(p.t, m*mi)
	w, kx := p.w, p.c
	b.convert(p.z, &p.own.Scale, p.units)
	p.basis.FeaturesTo(kx, w, p.q[:mi], mi, p.z, p.zs, p.q[mi:]) // row i: L⁻¹c(Z, z_i)
	transpose(p.t, w, mi, m)
	dense.SolveTriTrans(m, mi, sender.L, mi, p.t, mi)
	return nil
}

// project stores the sites of horizon h and class k in a, an M×M lower triangle, and b.
// It reports false if the result is not finite or does not factor.
func (p *projector) project(c *Contribution, h, k int, a, b []float64) bool {
	m, mi := p.m, c.Params.M
	c.Factor(h, k, p.r, p.b)
	if p.same {
		for i := range m {
			for j := range m {
				p.ct[j*m+i] = 0
				if j <= i {
					p.ct[j*m+i] = p.r[i*m+j]
				}
			}
		}
	} else {
		dense.MulTri(m, mi, p.t, mi, p.r, mi, p.c, mi)
		transpose(p.ct, p.c, m, mi)
	}
	p.linear(b)
	dense.SymmetricProduct(true, false, m, mi, p.ct, m, p.ct, m, a, m)
	for i := range m {
		if clear(a[i*m+i+1 : (i+1)*m]); b[i]-b[i] != 0 {
			return false
		}
	}
	return p.sound(a)
}

// linear stores the linear part of sites in b, M; p.b has that in the basis of the contribution.
func (p *projector) linear(b []float64) {
	if p.same {
		copy(b, p.b)
	} else {
		dense.Gemv(false, p.m, len(p.b), 1, p.t, len(p.b), p.b, 0, b)
	}
}

// sound reports whether a, an M×M lower triangle of a product CᵀC, is what factors wants.
// Up to a trace of maxRounding it is: the numbers of such a product are below its trace,
// so that their rounding to 32 bits changes no eigenvalue by more than 2⁻²⁴ of it.
func (p *projector) sound(a []float64) bool {
	var trace float64
	for i := range p.m {
		trace += a[i*p.m+i]
	}
	if trace <= maxRounding {
		return true
	}
	copy(p.check, a)
	return factors(p.check, p.m)
}

// sized returns s with length n.
func sized(s []float64, n int) []float64 { return slices.Grow(s[:0], n)[:n] }

// transpose stores aᵀ in dst; a is n×m.
func transpose(dst, a []float64, n, m int) {
	for i := range n {
		for j := range m {
			dst[j*n+i] = a[i*m+j]
		}
	}
}
