package studentt

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"edge/model"
)

// Laplace is the published Laplace approximation of a process with Student-t prior at one
// kernel.
type Laplace struct {
	F                  []float64 // N, the mode of Σ log_t p + log_t of the prior
	Printed, Corrected float64   // log evidence, with the volume as printed and corrected
}

// LaplaceRelaxed finds the mode of
//
//	φ_t(f) = Σ log_t p(y_i|f_i) + (Ψ_p (1 + fᵀK⁻¹f/ν) − 1)/(1 − t)
//
// by damped Newton steps with W = p^(1−t) ((t−1) g² − (log p)”), g = (log p)', and the prior
// precision (ν+N) Ψ_p (νK)⁻¹. With C = 1 + (1−t) φ_t, τ = (ν+N) C, and A = (W + precision)⁻¹,
//
//	log q(y) = log C/(1−t) + (N/2) log πτ + log Γ(ν/2) − log Γ((ν+N)/2) + ½ log|A|
//
// is the corrected log evidence; as printed all terms but the first have the factor 1/(1−t)
// as well, which turns the sign of log|A|. Neither can choose a kernel: the printed one has
// its maximum at a vanishing amplitude, the corrected one at uncorrelated latents. So there
// is no method of this name. y is 0 or 1, k is N×N and positive definite. O(N³) a step.
//
// Source: Roetzer (2020), equations 4.38 and 4.68.
func LaplaceRelaxed(k *mat.SymDense, y []int, nu float64) (*Laplace, error) {
	n := len(y)
	size := float64(n)
	var c mat.Cholesky
	if !c.Factorize(k) {
		return nil, model.ErrFactor
	}
	logK, t := c.LogDet(), 1+2/(nu+size)
	f := &relaxed{nu: nu}
	psi := math.Exp((1 - t) * (f.normaliser(size) - 0.5*logK))
	kernel := mat.NewSymDense(n, nil) // the inverse of the prior precision
	kernel.ScaleSym(nu/((nu+size)*psi), k)
	mode, err := newtonMode(kernel, y, t)
	if err != nil {
		return nil, err
	}
	level := 1 + (1-t)*(mode.value+(psi-1)/(1-t))
	if level <= 0 {
		return &Laplace{F: mode.f, Printed: math.Inf(-1), Corrected: math.Inf(-1)}, nil
	}
	logA := logK + size*math.Log(nu/((nu+size)*psi)) - mode.logDetB
	volume := size/2*math.Log(math.Pi*(nu+size)*level) + lgamma(nu/2) - lgamma((nu+size)/2) + 0.5*logA
	return &Laplace{F: mode.f, Printed: (math.Log(level) + volume) / (1 - t), Corrected: math.Log(level)/(1-t) + volume}, nil
}

// mode is the maximum of Σ log_t p − ½ fᵀK⁻¹f, and log|I + W^½ K W^½| there.
type mode struct {
	f              []float64
	value, logDetB float64
}

// Convergence of Newton's steps.
const (
	newtonSteps = 100
	newtonClose = 1e-10
	newtonLeast = 1e-4 // the smallest fraction of a step
)

// newtonMode works with a = K⁻¹f, so that nothing is divided by K.
func newtonMode(k *mat.SymDense, y []int, t float64) (*mode, error) {
	n := len(y)
	a, f := mat.NewVecDense(n, nil), mat.NewVecDense(n, nil)
	g, w := make([]float64, n), make([]float64, n)
	value := relaxedFactors(f, y, t, g, w)
	for range newtonSteps {
		b, root, right := newtonSystem(k, f, g, w)
		var c mat.Cholesky
		if !c.Factorize(b) {
			return nil, model.ErrFactor
		}
		var kr, next mat.VecDense
		kr.MulVec(k, right)
		kr.MulElemVec(&kr, root)
		if err := c.SolveVecTo(&next, &kr); err != nil {
			return nil, err
		}
		next.MulElemVec(&next, root)
		next.SubVec(right, &next)
		next.SubVec(&next, a) // the whole step
		before, fraction, from := value, 1.0, mat.VecDenseCopyOf(a)
		for ; ; fraction /= 2 {
			a.AddScaledVec(from, fraction, &next)
			f.MulVec(k, a)
			value = relaxedFactors(f, y, t, g, w) - 0.5*mat.Dot(a, f)
			if value >= before-1e-12 || fraction < newtonLeast {
				break
			}
		}
		if math.Abs(value-before) < newtonClose {
			break
		}
	}
	b, _, _ := newtonSystem(k, f, g, w)
	var c mat.Cholesky
	if !c.Factorize(b) {
		return nil, model.ErrFactor
	}
	return &mode{f.RawVector().Data, value, c.LogDet()}, nil
}

// newtonSystem is I + W^½ K W^½, W^½, and W f + g.
func newtonSystem(k *mat.SymDense, f *mat.VecDense, g, w []float64) (b *mat.SymDense, root, right *mat.VecDense) {
	n := len(g)
	b, root, right = mat.NewSymDense(n, nil), mat.NewVecDense(n, nil), mat.NewVecDense(n, nil)
	for i := range n {
		root.SetVec(i, math.Sqrt(w[i]))
		right.SetVec(i, w[i]*f.AtVec(i)+g[i])
		for j := range i + 1 {
			b.SetSym(i, j, math.Sqrt(w[i]*w[j])*k.At(i, j))
		}
		b.SetSym(i, i, 1+b.At(i, i))
	}
	return b, root, right
}

// relaxedFactors returns Σ log_t p of the logistic link and stores its slopes and the
// negative second derivatives.
func relaxedFactors(f *mat.VecDense, y []int, t float64, g, w []float64) (sum float64) {
	var logP, slope, d [1]float64
	for i, label := range y {
		sign := 2*float64(label) - 1
		d[0] = sign * f.AtVec(i)
		Logistic.factors(logP[:], slope[:], d[:], 0, nil)
		p := math.Exp((1 - t) * logP[0])
		sum += (p - 1) / (1 - t)
		g[i] = sign * p * slope[0]
		w[i] = p * ((t-1)*slope[0]*slope[0] + slope[0]*(1-slope[0]))
	}
	return sum
}
