package model

import (
	"math"
	"slices"

	"edge/model/dense"
)

// Params are the parameters of the model, unconstrained, in one vector, so that
// an optimiser can move along all of them alike.
//
//	Theta = [ Z (M×D), log ℓ (D), log s, log v0, logit ε ]
//
// Z and ℓ are in units of the standardised features. ε is the probability that
// a label is wrong.
//
// Where every class has a kernel of its own, Theta holds G such groups one
// behind the other; the methods that return parts of it return those of the
// first, and all have the same ε.
type Params struct {
	M, D  int
	Theta []float64 // G·(M·D + D + 3)
}

// NewParams returns zero parameters for M inducing points in D dimensions.
func NewParams(m, d int) Params {
	return Params{M: m, D: d, Theta: make([]float64, m*d+d+3)}
}

// Clone returns a copy with memory of its own.
func (p *Params) Clone() Params {
	return Params{M: p.M, D: p.D, Theta: slices.Clone(p.Theta)}
}

// Groups is G, the number of kernels.
func (p *Params) Groups() int { return len(p.Theta) / p.groupSize() }

// Group returns the parameters of kernel g, which share p's memory.
func (p *Params) Group(g int) Params {
	n := p.groupSize()
	return Params{M: p.M, D: p.D, Theta: p.Theta[g*n : (g+1)*n : (g+1)*n]}
}

func (p *Params) groupSize() int { return p.M*p.D + p.D + 3 }

// Z are the inducing inputs, M×D.
func (p *Params) Z() []float64 { return p.Theta[:p.M*p.D] }

// LogEll are the log lengthscales, D.
func (p *Params) LogEll() []float64 { return p.Theta[p.M*p.D : p.M*p.D+p.D] }

func (p *Params) scalar(i int) *float64 { return &p.Theta[p.M*p.D+p.D+i] }

// LogAmp is log s, the log variance of a latent function.
func (p *Params) LogAmp() *float64 { return p.scalar(0) }

// LogNoise is log v0, the log variance of the noise on a latent function.
// Only s/v0 carries information: ∂F/∂log s = −∂F/∂log v0.
func (p *Params) LogNoise() *float64 { return p.scalar(1) }

// LogitEps is log(ε/(1−ε)).
func (p *Params) LogitEps() *float64 { return p.scalar(2) }

// Logit returns log(p/(1−p)).
func Logit(p float64) float64 { return math.Log(p / (1 - p)) }

// Eps is the probability that a label is wrong.
func (p *Params) Eps() float64 { return 1 / (1 + math.Exp(-*p.LogitEps())) }

// Clamp keeps the parameters where the kernel is well conditioned, and ε at or below maxEps;
// ε is the first group's in all of them. 0 stays: it turns the robust likelihood off.
//
//	log ℓ in [−4.6, 7], log s in [−7, 7], log v0 in [−11, 5], logit ε in [−7, logit maxEps]
func (p *Params) Clamp(maxEps float64) {
	clamp := func(v *float64, lo, hi float64) { *v = min(max(*v, lo), hi) }
	for i := range p.Groups() {
		g := p.Group(i)
		ell := g.LogEll()
		for j := range ell {
			clamp(&ell[j], -4.6, 7)
		}
		clamp(g.LogAmp(), -7, 7)
		clamp(g.LogNoise(), -11, 5)
		if *g.LogitEps() = *p.LogitEps(); !math.IsInf(*p.LogitEps(), -1) {
			clamp(g.LogitEps(), -7, Logit(maxEps))
		}
	}
}

// scaleRows stores X/ℓ in dst and |x/ℓ|² in norms.
func scaleRows(dst, norms, x, invEll []float64, n int) {
	d := len(invEll)
	for i := range n {
		row, out := x[i*d:(i+1)*d], dst[i*d:(i+1)*d]
		var s float64
		for j, v := range row {
			v *= invEll[j]
			out[j] = v
			s += v * v
		}
		norms[i] = s
	}
}

// covariance stores c(a_i, b_j) = s·exp(−½|a_i−b_j|²) in dst, for inputs that
// are already divided by the lengthscales.
//
//	a n×D with norms aa, b m×D with norms bb, dst n×m
//
// The squared distance is |a|²+|b|²−2a·b: its absolute error is a few ulp of
// |a|²+|b|², and so is the argument of the exponential.
func covariance(dst []float64, n, m, d int, amp float64, a, aa, b, bb []float64) {
	dense.Gemm(false, true, n, m, d, 1, a, d, b, d, 0, dst, m)
	for i := range n {
		dense.ExpSqDist(dst[i*m:(i+1)*m], amp, aa[i], bb[:m])
	}
}
