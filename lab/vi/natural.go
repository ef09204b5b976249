package vi

import (
	"errors"

	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/model"
)

// Sites are those of the natural gradient, numbers in f as in EP, N×C. Precisions may be
// negative: E is not concave.
type Sites struct {
	S1, S2 *mat.Dense
}

// NaturalStep moves q along the natural gradient, which is EP's machinery with other sites:
//
//	s1 = −2T,  s2 = G − 2T mean,  s ← (1−step) s + step s_new
//	S_k = (I + Σ s1 w wᵀ)⁻¹,  m_k = S_k Σ s2 w
//
// It halves the step while a precision of q is not positive definite, and returns the
// relative change of the sites that a whole step would be. At an optimum of the bound there
// is none.
func (v *VI) NaturalStep(s *Sites, step float64) (change float64, err error) {
	const halvings = 30
	v.expect()
	next := Sites{lab.NewTable(v.Data), lab.NewTable(v.Data)}
	next.S1.Scale(-2, v.t)
	next.S2.MulElem(next.S1, v.Mean)
	next.S2.Add(next.S2, v.g)
	for range halvings {
		moved := Sites{mat.DenseCopyOf(s.S1), mat.DenseCopyOf(s.S2)}
		change = lab.Blend(moved.S1, next.S1, step) + lab.Blend(moved.S2, next.S2, step)
		if err = v.setSites(&moved); err == nil {
			*s = moved
			return change, nil
		}
		if !errors.Is(err, model.ErrFactor) {
			return 0, err
		}
		step /= 2
	}
	return 0, err
}

// setSites computes q from sites.
func (v *VI) setSites(s *Sites) error {
	if err := v.Solve(s.S1, s.S2); err != nil {
		return err
	}
	for k, r := range v.R {
		var c mat.Cholesky
		if !c.Factorize(mat.NewSymDense(v.Params.M, v.V[k].RawMatrix().Data)) {
			return model.ErrFactor
		}
		var l mat.TriDense
		c.LTo(&l)
		r.Copy(&l)
	}
	return nil
}

// RunNatural takes natural steps until the change is below tolerance, at most that many.
func (v *VI) RunNatural(s *Sites, steps int, step, tolerance float64) error {
	return lab.Converge(steps, tolerance, func() (float64, error) { return v.NaturalStep(s, step) })
}

// NewSites are those of the prior.
func NewSites(d *lab.Data) *Sites { return &Sites{lab.NewTable(d), lab.NewTable(d)} }
