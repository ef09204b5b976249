package studentt

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/model"
	"edge/model/dense"
)

// Bound is an approximate posterior with free Gaussians q(e_k), whose objective L-BFGS
// maximises together with the kernel. A value and its gradient cost O(C(N M² + M³)) and the
// quadratures: 65 nodes of the link for each row and node of s, about 300 where q is a
// Student-t.
type Bound struct {
	*lab.Gaussians
	Held // what Fit leaves as it is

	family family
	link   Link
	labels []int
}

// Held are the parameters that an optimiser leaves, or ties.
type Held struct {
	Kernel    bool // lengthscales, amplitude and noise
	Points    bool // the inducing points
	Isotropic bool // one lengthscale for all features, where they start equal
}

// newBound returns q = N(0, I). The logistic link has one latent, with the first kernel.
func newBound(d *lab.Data, p model.Params, link Link, f family) (*Bound, error) {
	rows, p, err := latents(d, p, link)
	if err != nil {
		return nil, err
	}
	q, err := lab.NewGaussians(rows, p)
	if err != nil {
		return nil, err
	}
	return &Bound{Gaussians: q, family: f, link: link, labels: d.Y}, nil
}

// latents are the rows and kernels of the latents of a link.
func latents(d *lab.Data, p model.Params, link Link) (*lab.Data, model.Params, error) {
	if link == Pairs {
		return d, p, nil
	}
	if d.C != 2 {
		return nil, p, fmt.Errorf("studentt: %d classes: the logistic link separates two", d.C)
	}
	return &lab.Data{D: d.D, C: 1, X: d.X, Y: make([]int, d.N())}, p.Group(0), nil
}

// NewGaussian returns the variational Gaussian process.
func NewGaussian(d *lab.Data, p model.Params, link Link) (*Bound, error) {
	return NewNonCentred(d, p, link, NewScale(math.Inf(1), 1))
}

// NewTied returns the tied posterior with q(s) at the prior, or free.
func NewTied(d *lab.Data, p model.Params, link Link, nu float64, free bool) (*Bound, error) {
	return newBound(d, p, link, &tied{nu: nu, a: nu / 2, b: nu / 2, free: free})
}

// NewNonCentred returns the non-centred posterior on nodes of the scale.
func NewNonCentred(d *lab.Data, p model.Params, link Link, s *Scale) (*Bound, error) {
	return newBound(d, p, link, &nonCentred{Scale: s})
}

// NewRelaxed returns the posterior of a published objective.
func NewRelaxed(d *lab.Data, p model.Params, nu float64, o Objective) (*Bound, error) {
	return newBound(d, p, Logistic, &relaxed{nu: nu, objective: o})
}

// learnt are the marginals of the rows under q, whose residual is in the spread and whose
// noise is not.
func learnt(s *lab.Sparse, link Link, labels []int) *marginals {
	m := newMarginals(s, link, s.Mean, s.Var)
	m.y = labels
	for i, q := range s.Q.RawMatrix().Data {
		m.spread[i] += max(q-m.noise[i%m.c], 0)
	}
	return m
}

func newMarginals(s *lab.Sparse, link Link, mean, spread *mat.Dense) *marginals {
	m := &marginals{
		link: link, c: s.C,
		mean:   append([]float64(nil), mean.RawMatrix().Data...),
		spread: append([]float64(nil), spread.RawMatrix().Data...),
	}
	for k := range s.C {
		g := lab.Kernel(s.Params, k)
		m.noise = append(m.noise, math.Exp(*g.LogNoise()))
	}
	return m
}

// newRows are the marginals of rows without labels.
func newRows(s *lab.Sparse, link Link, x []float64) *marginals {
	mean, variance := s.Latent(x)
	m := newMarginals(s, link, mean, variance)
	for i := range m.spread {
		m.spread[i] = max(m.spread[i]-m.noise[i%m.c], 0)
	}
	return m
}

func (b *Bound) evaluate() *slopes {
	logK := 0.0
	if _, relaxes := b.family.(*relaxed); relaxes {
		logK = logDet(b.Basis(0))
	}
	return b.family.evaluate(learnt(b.Sparse, b.link, b.labels), b.Norms(), logK)
}

// Derivatives returns the objective and its derivatives, the last ones those of log a and
// log b where they are free.
func (b *Bound) Derivatives() (value float64, d lab.Derivatives, own []float64) {
	s := b.evaluate()
	n, c := b.N(), b.C
	d = b.Gaussians.Derivatives(mat.NewDense(n, c, s.mean), mat.NewDense(n, c, s.spread), s.norms)
	setNoise(b.Sparse, d.Theta, s.expected)
	if s.logK != 0 {
		p := b.Params.Group(0)
		dense.Axpy(s.logK, logDetGradient(b.Basis(0), &p), d.Theta)
	}
	return s.value, d, s.own
}

// setNoise replaces the derivatives in the log noise, which is in the factor and not in the
// variance of the latents.
func setNoise(s *lab.Sparse, theta []float64, e *expected) {
	grad := model.Params{M: s.Params.M, D: s.D, Theta: theta}
	for g := range grad.Groups() {
		group := grad.Group(g)
		*group.LogNoise() = 0
	}
	for k := range e.noise {
		group := lab.Kernel(grad, k)
		*group.LogNoise() += e.noise[k]
	}
}

// Kernel are the parameters.
func (b *Bound) Kernel() model.Params { return b.Params }

// Vector is q, the parameters and those of the family as the optimiser sees them.
func (b *Bound) Vector() []float64 { return append(b.Gaussians.Vector(), b.family.own()...) }

// SetVector moves them. The function that it returns is the objective and its gradient in
// the same coordinates.
func (b *Bound) SetVector(x []float64) (at func() (float64, []float64), err error) {
	own := len(x) - len(b.family.own())
	flat, err := b.Gaussians.SetVector(x[:own])
	if err != nil {
		return nil, err
	}
	b.family.set(x[own:])
	return func() (float64, []float64) {
		value, d, slope := b.Derivatives()
		b.hold(d.Theta, b.Params)
		for i, v := range b.family.own() {
			if math.Abs(v-x[own+i]) > 1e-12*(1+math.Abs(v)) { // a range holds it
				slope[i] = 0
			}
		}
		return value, append(flat(d), slope...)
	}, nil
}

// hold clears derivatives of held parameters, and ties those of the lengthscales.
func (h *Held) hold(theta []float64, shape model.Params) {
	grad := model.Params{M: shape.M, D: shape.D, Theta: theta}
	for g := range grad.Groups() {
		group := grad.Group(g)
		if h.Points {
			clear(group.Z())
		}
		if h.Isotropic {
			var mean float64
			for _, v := range group.LogEll() {
				mean += v / float64(shape.D)
			}
			for j := range group.LogEll() {
				group.LogEll()[j] = mean
			}
		}
		if h.Kernel {
			clear(group.LogEll())
			*group.LogAmp(), *group.LogNoise() = 0, 0
		}
	}
}

// Fit maximises the objective by L-BFGS, with at most that many evaluations.
func (b *Bound) Fit(ctx context.Context, evaluations int) error {
	best, err := lab.LBFGS(b.Vector(), evaluations, func(x []float64) (float64, []float64, error) {
		if err := ctx.Err(); err != nil {
			return 0, nil, err
		}
		at, err := b.SetVector(x)
		if err != nil {
			return 0, nil, err
		}
		value, grad := at()
		return value, grad, nil
	})
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	_, err = b.SetVector(best)
	return err
}

// Predict returns the probabilities of the classes, n×C.
func (b *Bound) Predict(x []float64) (*mat.Dense, error) {
	b.evaluate() // the weights of the scale
	return b.family.predict(newRows(b.Sparse, b.link, x)), nil
}
