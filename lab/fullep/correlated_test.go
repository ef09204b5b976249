package fullep

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/lab/labtest"
	"edge/model"
	"edge/model/dense"
)

// Correlated is EP that keeps each factor whole: that of a pair depends on the difference
// f~_iy − f~_ik alone, so that its exact site is one-dimensional, and couples the classes. It
// is the most accurate approximation here, O((N(C−1))³) a sweep. With R = N(C−1) pairs and
// their prior covariance S,
//
//	L Lᵀ = I + τ^½ S τ^½,  Σ = S − S τ^½ (L Lᵀ)⁻¹ τ^½ S,  μ = Σ ν
type Correlated struct {
	Tau, Nu []float64 // R, precision and linear term, by observation, then by class

	data     *lab.Data
	params   model.Params
	prior    *mat.SymDense // R×R, S
	factor   *mat.TriDense // R×R, L
	cov      *mat.Dense    // R×R, Σ
	mean     []float64     // R, μ
	logZ     []float64     // R, of the factors
	cavities [][2]float64  // R, mean and variance
}

// NewCorrelated returns an EP whose sites are all 1.
func NewCorrelated(d *lab.Data, p model.Params) (*Correlated, error) {
	s := labtest.PairCovariance(d, p)
	n := s.SymmetricDim()
	c := &Correlated{
		Tau: make([]float64, n), Nu: make([]float64, n), data: d, params: p, prior: s, cov: mat.NewDense(n, n, nil),
		mean: make([]float64, n), logZ: make([]float64, n), cavities: make([][2]float64, n),
	}
	return c, c.refresh()
}

// refresh computes the posterior of the differences from the sites.
func (c *Correlated) refresh() error {
	n := len(c.Tau)
	b := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i {
			b.SetSym(i, j, math.Sqrt(c.Tau[i]*c.Tau[j])*c.prior.At(i, j))
		}
		b.SetSym(i, i, 1+c.Tau[i]*c.prior.At(i, i))
	}
	var chol mat.Cholesky
	if !chol.Factorize(b) {
		return model.ErrFactor
	}
	c.factor = mat.NewTriDense(n, mat.Lower, nil)
	chol.LTo(c.factor)
	v := mat.NewDense(n, n, nil) // L⁻¹ τ^½ S
	v.Apply(func(i, j int, _ float64) float64 { return math.Sqrt(c.Tau[i]) * c.prior.At(i, j) }, v)
	if err := c.factor.SolveTo(v, false, v); err != nil {
		return err
	}
	c.cov.Mul(v.T(), v)
	c.cov.Sub(c.prior, c.cov)
	mat.NewVecDense(n, c.mean).MulVec(c.cov, mat.NewVecDense(n, c.Nu))
	return nil
}

// Sweep updates all sites in parallel, and the posterior. It returns the largest change of
// a precision, relative to the largest one.
func (c *Correlated) Sweep(rho float64) (change float64, err error) {
	tau, nu := c.match()
	var diff, top float64
	for i, t := range tau {
		diff, top = max(diff, math.Abs(t-c.Tau[i])), max(top, t)
		c.Tau[i] = (1-rho)*c.Tau[i] + rho*t
		c.Nu[i] = (1-rho)*c.Nu[i] + rho*nu[i]
	}
	return diff / (1 + top), c.refresh()
}

// match computes the factors Φ(a/√v), whose sites have all of the cavity's precision where
// the label is wrong beyond doubt.
func (c *Correlated) match() (tau, nu []float64) {
	n := len(c.Tau)
	alpha, beta, t := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range n {
		a, v, _ := lab.Cavity(c.Tau[i], c.Nu[i], c.mean[i], c.cov.At(i, i))
		c.cavities[i], alpha[i] = [2]float64{a, v}, a/math.Sqrt(v)
	}
	dense.LogPhi(c.logZ, alpha)
	dense.Probit(beta, t, alpha)
	tau, nu = make([]float64, n), make([]float64, n)
	const floor = 1e-12
	for i := range n {
		a, v := c.cavities[i][0], c.cavities[i][1]
		tau[i], nu[i] = lab.Site(beta[i]/math.Sqrt(v), t[i]/v, a, v, floor)
	}
	return tau, nu
}

// Run sweeps until the change is below tolerance, at most that many times.
func (c *Correlated) Run(sweeps int, rho, tolerance float64) error {
	for range sweeps {
		change, err := c.Sweep(rho)
		if err != nil || change < tolerance {
			return err
		}
	}
	return nil
}

// LogZ is the log evidence, −½ log|I + τ^½ S τ^½| + ½ ν·μ + Σ [ log Φ(α) − D ].
func (c *Correlated) LogZ() float64 {
	c.match()
	sum := 0.5 * dense.Dot(c.Nu, c.mean)
	for i, z := range c.logZ {
		d, _, _ := lab.Normaliser(c.Tau[i], c.Nu[i], c.cavities[i][0], c.cavities[i][1])
		sum += z - d - math.Log(c.factor.At(i, i))
	}
	return sum
}

// draws is the number of samples of a prediction, whose error is at most 0.5/√draws.
const draws = 20000

// Latent returns mean, C, and covariance, C×C, of the noisy latents at each row of x. The
// classes are correlated.
func (c *Correlated) Latent(x []float64) (mean []*mat.VecDense, cov []*mat.SymDense, err error) {
	n := len(c.Tau)
	// With b = ν − τ^½ (L Lᵀ)⁻¹ τ^½ S ν the mean is k*Bᵀ b.
	root := make([]float64, n)
	u := mat.NewDense(n, 1, nil)
	u.Mul(c.prior, mat.NewDense(n, 1, c.Nu))
	for i, t := range c.Tau {
		root[i] = math.Sqrt(t)
		u.Set(i, 0, root[i]*u.At(i, 0))
	}
	if err := c.factor.SolveTo(u, false, u); err != nil {
		return nil, nil, err
	}
	if err := c.factor.SolveTo(u, true, u); err != nil {
		return nil, nil, err
	}
	b := mat.NewVecDense(n, nil)
	for i := range n {
		b.SetVec(i, c.Nu[i]-root[i]*u.At(i, 0))
	}
	prior := priorVariance(c.data, c.params)
	for _, k := range classCovariance(c.data, c.params, x) {
		m, v := mat.NewVecDense(c.data.C, nil), mat.NewDense(n, c.data.C, nil)
		m.MulVec(k, b)
		v.Apply(func(i, j int, _ float64) float64 { return root[i] * k.At(j, i) }, v)
		if err := c.factor.SolveTo(v, false, v); err != nil {
			return nil, nil, err
		}
		s := mat.NewSymDense(c.data.C, nil)
		s.SymOuterK(-1, v.T())
		for j, p := range prior {
			s.SetSym(j, j, s.At(j, j)+p)
		}
		mean, cov = append(mean, m), append(cov, s)
	}
	return mean, cov, nil
}

// Predict returns class probabilities, n×C, from 20,000 draws of the joint latents, the
// same standard normals for every row.
func (c *Correlated) Predict(x []float64) (*mat.Dense, error) {
	mean, cov, err := c.Latent(x)
	if err != nil {
		return nil, err
	}
	r, classes := rand.New(rand.NewPCG(1, 2)), c.data.C
	normal := mat.NewDense(draws, classes, nil)
	normal.Apply(func(_, _ int, _ float64) float64 { return r.NormFloat64() }, normal)
	out := mat.NewDense(len(mean), classes, nil)
	for i := range mean {
		var chol mat.Cholesky
		if !chol.Factorize(cov[i]) {
			return nil, model.ErrFactor
		}
		var l mat.TriDense
		chol.LTo(&l)
		var f mat.Dense
		f.Mul(normal, l.T())
		for s := range draws {
			best := 0
			for k := range classes {
				if f.At(s, k)+mean[i].AtVec(k) > f.At(s, best)+mean[i].AtVec(best) {
					best = k
				}
			}
			out.Set(i, best, out.At(i, best)+1.0/draws)
		}
	}
	return out, nil
}

// classCovariance is the prior covariance of the latents of all classes at the rows of x
// with the pairs of d, n of C×N(C−1): k* Bᵀ.
func classCovariance(d *lab.Data, p model.Params, x []float64) []*mat.Dense {
	pairs, n := labtest.Pairs(d), len(x)/d.D
	out := make([]*mat.Dense, n)
	for i := range out {
		out[i] = mat.NewDense(d.C, len(pairs), nil)
	}
	for k := range d.C {
		g := lab.Kernel(p, k)
		c := lab.Covariance(&g, x, d.X)
		for a, r := range pairs {
			for i := range out {
				switch k {
				case d.Y[r.I]:
					out[i].Set(k, a, c.At(i, r.I))
				case r.K:
					out[i].Set(k, a, -c.At(i, r.I))
				}
			}
		}
	}
	return out
}

// priorVariance is s + v0 of each class.
func priorVariance(d *lab.Data, p model.Params) []float64 {
	out := make([]float64, d.C)
	for k := range out {
		g := lab.Kernel(p, k)
		out[k] = math.Exp(*g.LogAmp()) + math.Exp(*g.LogNoise())
	}
	return out
}
