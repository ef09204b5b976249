// Package tied is stochastic expectation propagation with many passes over known data: all
// factors of a class share one site exp(−½ e·(A_k/n_k) e + e·b_k/n_k) in its whitened values.
//
// The factors are pairs of classes or the robust likelihood. n_k is the number of factors
// that share the site. The paper counts all N(C−1) pairs for every class (Total), although
// class k takes part in N + N_k(C−2) of them (Touched). There are N robust factors (Robust),
// and N sites as in package online/sep, one for each observation and class, of the product of
// its pairs (Merged).
//
// Memory C M², however many rows; a sweep costs C(N M² + 3 M³).
//
// Source: Villacampa-Calvo & Hernández-Lobato (ICML 2017), Section 2.3.1.
package tied

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/model"
)

// Kind is the factor of an observation and the count of them.
type Kind string

// The kinds of tied sites.
const (
	Total   Kind = "total"   // pairs, n_k = N(C−1)
	Touched Kind = "touched" // pairs, n_k = N + N_k(C−2)
	Merged  Kind = "merged"  // one site for each observation and class from all pairs, n_k = N
	Robust  Kind = "robust"  // robust factors, n_k = N
)

// SEP is the approximation at some parameters.
type SEP struct {
	*lab.Sparse              // the cavity during a sweep, the posterior after Settle
	A           []*mat.Dense // C of M×M, lower triangles
	B           []*mat.VecDense
	Count       []float64 // n_k

	factors factors
	room    func(*lab.Data) factors // makes room for the factors of some rows
	eps     float64
}

// factors are log Z of all observations, the derivatives G, T and the totals of their sites,
// N×C, under the cavities.
type factors interface {
	update(s *SEP) (logZ float64, g, t, s1, s2 *mat.Dense)
}

// New returns a SEP without sites.
func New(data *lab.Data, p model.Params, kind Kind, eps float64, nodes int) (*SEP, error) {
	sparse, err := lab.NewSparse(data, p, lab.Jitter)
	if err != nil {
		return nil, err
	}
	s := &SEP{Sparse: sparse, Count: counts(data, kind)}
	for range data.C {
		s.A, s.B = append(s.A, mat.NewDense(p.M, p.M, nil)), append(s.B, mat.NewVecDense(p.M, nil))
	}
	s.room = func(d *lab.Data) factors {
		switch none := lab.NewTable(d); kind {
		case Robust:
			return &classes{lab.NewClassFactors(d, lab.NewJoint(nodes), eps), none}
		case Merged:
			return &classes{lab.NewClassFactors(d, new(lab.Product), 0), none}
		default:
			return &pairs{lab.NewPairFactors(d), lab.NewPairSites(d)}
		}
	}
	if kind == Robust {
		s.eps = eps
	}
	s.factors = s.room(data)
	return s, nil
}

// counts are n_k of those rows.
func counts(data *lab.Data, kind Kind) []float64 {
	n := float64(data.N())
	if kind == Total {
		n *= float64(data.C - 1)
	}
	out := slices.Repeat([]float64{n}, data.C)
	if kind == Touched {
		for _, y := range data.Y {
			out[y] += float64(data.C - 2)
		}
	}
	return out
}

type pairs struct {
	*lab.PairFactors
	none lab.PairSites
}

func (p *pairs) update(s *SEP) (logZ float64, g, t, s1, s2 *mat.Dense) {
	p.Update(s.Y, s.Mean, s.Var, s.Q, &p.none)
	g, t = mat.DenseCopyOf(p.G), mat.DenseCopyOf(p.T)
	g.Scale(-1, g)
	for i, y := range s.Y {
		g.Set(i, y, mat.Sum(p.G.RowView(i)))
		t.Set(i, y, mat.Sum(p.T.RowView(i)))
	}
	s1, s2 = p.Next.Totals(s.Y)
	return mat.Sum(p.LogZ), g, t, s1, s2
}

type classes struct {
	*lab.ClassFactors
	none *mat.Dense
}

func (c *classes) update(s *SEP) (logZ float64, g, t, s1, s2 *mat.Dense) {
	c.Update(s.Y, s.Mean, s.Var, s.Q, c.none, c.none)
	for _, v := range c.LogZ {
		logZ += v
	}
	return logZ, c.G, c.T, c.S1, c.S2
}

// share sets the posterior of f(k)·A_k, f(k)·b_k, and returns its Σ logN_k.
func (s *SEP) share(k int, f float64) (logN float64, err error) {
	var a mat.Dense
	var b mat.VecDense
	a.Scale(f, s.A[k])
	b.ScaleVec(f, s.B[k])
	err = s.SetNatural(k, &a, &b)
	return s.LogN[k], err
}

// cavity sets the posterior without one factor's share of the tied sites.
func (s *SEP) cavity() error {
	for k := range s.A {
		if _, err := s.share(k, 1-1/s.Count[k]); err != nil {
			return err
		}
	}
	return nil
}

// Settle sets the posterior of all sites, for predictions.
func (s *SEP) Settle() error {
	for k := range s.A {
		if _, err := s.share(k, 1); err != nil {
			return err
		}
	}
	return nil
}

// Sweep matches all factors to the tied cavity and updates the sites,
// A ← (1−rho) A + rho Σ s1 w wᵀ. It returns the relative change, and the gradient of Σ log Z
// at that cavity, which is the derivative of LogZ with A and b held fixed.
func (s *SEP) Sweep(rho float64) (change float64, grad []float64, err error) {
	return s.blend(1-rho, rho)
}

// blend is Sweep with A ← keep A + rho Σ s1 w wᵀ.
func (s *SEP) blend(keep, rho float64) (change float64, grad []float64, err error) {
	if err := s.cavity(); err != nil {
		return 0, nil, err
	}
	_, g, t, s1, s2 := s.factors.update(s)
	grad = s.gradient(g, t)
	var diffA, topA, diffB, topB float64
	for k := range s.A {
		a, b := s.Natural(k, s1, s2)
		d, top := largest(a.RawMatrix().Data, s.A[k].RawMatrix().Data)
		diffA, topA = max(diffA, d), max(topA, top)
		d, top = largest(b.RawVector().Data, s.B[k].RawVector().Data)
		diffB, topB = max(diffB, d), max(topB, top)
		a.Scale(rho, a)
		s.A[k].Scale(keep, s.A[k])
		s.A[k].Add(s.A[k], a)
		s.B[k].ScaleVec(keep, s.B[k])
		s.B[k].AddScaledVec(s.B[k], rho, b)
	}
	return diffA/(1+topA) + diffB/(1+topB), grad, nil
}

// largest returns max|a − b| and max|a|.
func largest(a, b []float64) (diff, top float64) {
	for i, v := range a {
		diff, top = max(diff, math.Abs(v-b[i])), max(top, math.Abs(v))
	}
	return diff, top
}

// gradient is that of Σ log Z in the parameters with the whitened cavity held fixed.
func (s *SEP) gradient(g, t *mat.Dense) []float64 {
	var twice mat.Dense
	twice.Scale(2, t)
	return s.Gradient(lab.Features{W: s.AlongPosterior(g, &twice), Q: t})
}

// Run sweeps until the relative change is below tolerance, at most that many times, and
// settles.
func (s *SEP) Run(sweeps int, rho, tolerance float64) error {
	err := lab.Converge(sweeps, tolerance, func() (float64, error) {
		change, _, err := s.Sweep(rho)
		return change, err
	})
	if err != nil {
		return err
	}
	return s.Settle()
}

// LogZ is the log evidence of the tied sites, and its gradient with A and b held fixed:
//
//	Σ_k logN_k(1) + Σ_f log Z_f + Σ_k n_k [ logN_k(1 − 1/n_k) − logN_k(1) ]
//
// with logN_k(f) that of f A_k and f b_k. Every label counts a little in its own cavity, so
// that it is above EP's, and is not to be compared with it.
func (s *SEP) LogZ() (logZ float64, grad []float64, err error) {
	for k, n := range s.Count {
		whole, err := s.share(k, 1)
		if err != nil {
			return 0, nil, err
		}
		less, err := s.share(k, 1-1/n)
		if err != nil {
			return 0, nil, err
		}
		logZ += whole + n*(less-whole)
	}
	sum, g, t, _, _ := s.factors.update(s)
	grad = s.gradient(g, t)
	return logZ + sum, grad, s.Settle()
}

// Predict settles, and returns class probabilities, n×C.
func (s *SEP) Predict(x []float64) (*mat.Dense, error) {
	if err := s.Settle(); err != nil {
		return nil, err
	}
	mean, variance := s.Latent(x)
	return lab.Robust(lab.Probabilities(mean, variance), s.eps), nil
}

// Damping and tolerances of the training.
const (
	eps        = 0.001
	damping    = 0.5
	lastSweeps = 10
	lastClose  = 1e-4
)

// Train returns a method that learns by one sweep and one step of the parameters in turn.
func Train(kind Kind) lab.Method {
	return func(ctx context.Context, p *lab.Problem) (lab.Classifier, error) {
		s, err := New(p.Data, p.Start, kind, eps, lab.TrainNodes)
		if err != nil {
			return nil, err
		}
		step := func() ([]float64, error) {
			_, grad, err := s.Sweep(damping)
			return grad, err
		}
		if err := lab.Alternate(ctx, p, s, step, s.SetParams); err != nil {
			return nil, err
		}
		return s, s.Run(lastSweeps, damping, lastClose)
	}
}
