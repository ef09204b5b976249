package binary

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/model"
)

// Laplace is the Gaussian at the mode of ψ(e) = −½|e|² + Σ l(w_i·e), with l the log of the
// likelihood smoothed by the residual variance of the row.
type Laplace struct {
	*process
	mode *mat.VecDense // M
	l    []slopes      // N, at the mode
	psi  float64
}

// NewLaplace returns a Laplace approximation at the mean of the prior; Run finds the mode.
func NewLaplace(d *lab.Data, p model.Params, jitter float64, link Link) (*Laplace, error) {
	b, err := newProcess(d, p, jitter, link)
	if err != nil {
		return nil, err
	}
	return &Laplace{process: b, mode: mat.NewVecDense(p.M, nil), l: make([]slopes, d.N())}, nil
}

// value is ψ at e; it sets the slopes there.
func (a *Laplace) value(e *mat.VecDense) float64 {
	var f mat.VecDense
	f.MulVec(a.W(0), e)
	sum := -0.5 * mat.Dot(e, e)
	for i, y := range a.sign {
		a.l[i] = a.link.smoothed(a.rule, y, f.AtVec(i), a.residual(i))
		sum += a.l[i][0]
	}
	return sum
}

// Run takes Newton steps, W = −l₂ and e_new = (I + Σ W w wᵀ)⁻¹ Σ (W f + l₁) w, halved while
// ψ falls, until its relative change is below tolerance². The posterior is then that of the
// sites W, W f + l₁.
func (a *Laplace) Run(steps int, tolerance float64) error {
	psi := a.value(a.mode)
	for range steps {
		if err := a.newton(); err != nil {
			return err
		}
		next := mat.VecDenseCopyOf(a.M.RowView(0))
		next.SubVec(next, a.mode)
		const shortest = 1e-6
		for size := 1.0; ; size /= 2 {
			at := mat.NewVecDense(a.Params.M, nil)
			at.AddScaledVec(a.mode, size, next)
			a.psi = a.value(at)
			if a.psi >= psi-1e-12 || size < shortest {
				a.mode = at
				break
			}
		}
		done := math.Abs(a.psi-psi) <= tolerance*tolerance*(1+math.Abs(a.psi))
		if psi = a.psi; done {
			break
		}
	}
	return a.newton()
}

// newton solves for the sites of the present slopes.
func (a *Laplace) newton() error {
	s1, s2 := lab.NewTable(a.Data), lab.NewTable(a.Data)
	var f mat.VecDense
	f.MulVec(a.W(0), a.mode)
	for i, l := range a.l {
		s1.Set(i, 0, -l[2])
		s2.Set(i, 0, l[1]-l[2]*f.AtVec(i))
	}
	return a.Solve(s1, s2)
}

// LogZ is ψ − ½ log|I + Σ W w wᵀ| at the mode.
func (a *Laplace) LogZ() float64 {
	return a.psi + a.LogN[0] - 0.5*mat.Dot(a.B.RowView(0), a.M.RowView(0))
}

// Gradient is the derivative of LogZ with the mode moving. With v = w·V w, the derivatives
// l₁ to l₄ and c = ½ Σ v l₃ w, the derivative of −½ log|P| in e:
//
//	∂/∂w_i = l₁ e + l₂ V w + ½ v l₃ e + l₁ V c + l₂ (w·V c) e
//	∂/∂q_i = ∂l/∂q + ½ v ∂l₂/∂q + (w·V c) ∂l₁/∂q
func (a *Laplace) Gradient() []float64 {
	n, m := a.N(), a.Params.M
	third := mat.NewVecDense(n, nil)
	for i, l := range a.l {
		third.SetVec(i, 0.5*a.Var.At(i, 0)*l[3])
	}
	var c, vc, along mat.VecDense
	c.MulVec(a.W(0).T(), third)
	vc.MulVec(a.V[0], &c)
	along.MulVec(a.W(0), &vc)
	dw, dq := mat.NewDense(n, m, nil), lab.NewTable(a.Data)
	for i := range a.l {
		l, v, s := &a.l[i], a.Var.At(i, 0), along.AtVec(i)
		row := mat.NewVecDense(m, dw.RawRowView(i))
		row.AddScaledVec(row, l[1]+0.5*v*l[3]+l[2]*s, a.mode)
		row.AddScaledVec(row, l[2], a.VW[0].RowView(i))
		row.AddScaledVec(row, l[1], &vc)
		dq.Set(i, 0, l.variance()+0.5*v*l.secondInVariance()+s*l.firstInVariance())
	}
	return a.gradient(lab.Features{W: []*mat.Dense{dw}, Q: dq})
}
