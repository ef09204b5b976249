package binary

import (
	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/model"
)

// EP has a site for each row in w·e.
type EP struct {
	*process
	S1, S2 *mat.Dense // N×1

	logZ                   []float64
	g, t                   *mat.Dense // N×1, derivatives in mean and variance of the cavity
	cavMean, cavVar, share []float64
	next1, next2           *mat.Dense
}

// NewEP returns an EP whose sites are all 1.
func NewEP(d *lab.Data, p model.Params, jitter float64, link Link) (*EP, error) {
	b, err := newProcess(d, p, jitter, link)
	if err != nil {
		return nil, err
	}
	n := d.N()
	table := func() *mat.Dense { return lab.NewTable(b.Data) }
	return &EP{
		process: b, S1: table(), S2: table(), g: table(), t: table(), next1: table(), next2: table(),
		logZ: make([]float64, n), cavMean: make([]float64, n), cavVar: make([]float64, n), share: make([]float64, n),
	}, nil
}

// SetParams moves the parameters and computes the posterior from the stored sites.
func (e *EP) SetParams(p model.Params) error {
	if err := e.Sparse.SetParams(p); err != nil {
		return err
	}
	return e.Solve(e.S1, e.S2)
}

// match computes the factors under their cavities.
func (e *EP) match() {
	const floor = 1e-12 // 1 − h v is above it: h is below 1/v for a log-concave factor
	for i, y := range e.sign {
		a, v, share := lab.Cavity(e.S1.At(i, 0), e.S2.At(i, 0), e.Mean.At(i, 0), e.Var.At(i, 0))
		e.cavMean[i], e.cavVar[i], e.share[i] = a, v, share
		l := e.link.smoothed(e.rule, y, a, e.residual(i)+v)
		e.logZ[i] = l[0]
		e.g.Set(i, 0, l[1])
		e.t.Set(i, 0, l.variance())
		s1, s2 := lab.Site(l[1], max(-l[2], 0), a, v, floor)
		e.next1.Set(i, 0, s1)
		e.next2.Set(i, 0, s2)
	}
}

// Run takes parallel sweeps with damping 0.8, which converges in some thirty.
func (e *EP) Run(sweeps int, tolerance float64) error {
	const damping = 0.8
	return lab.Converge(sweeps, tolerance, func() (float64, error) {
		e.match()
		change := max(lab.Blend(e.S1, e.next1, damping), lab.Blend(e.S2, e.next2, damping))
		return change, e.Solve(e.S1, e.S2)
	})
}

// LogZ is the log evidence, logN + Σ [ log Z − D ].
func (e *EP) LogZ() float64 {
	e.match()
	sum := e.Evidence()
	for i, z := range e.logZ {
		d, _, _ := lab.Normaliser(e.S1.At(i, 0), e.S2.At(i, 0), e.cavMean[i], e.cavVar[i])
		sum += z - d
	}
	return sum
}

// Gradient is the derivative of Σ log Z with the whitened cavities held fixed, which is the
// total one at a fixed point.
func (e *EP) Gradient() []float64 {
	e.match()
	c := lab.NewTable(e.Data)
	for i := range e.sign {
		c.Set(i, 0, (e.g.At(i, 0)*(e.S1.At(i, 0)*e.Mean.At(i, 0)-e.S2.At(i, 0))+2*e.t.At(i, 0))/e.share[i])
	}
	return e.gradient(lab.Features{W: e.AlongPosterior(e.g, c), Q: e.t})
}
