package studentt

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"edge/lab"
)

// Objective is one of the published objectives for a Student-t posterior, which replace the
// logarithm of the bound by log_t x = (x^(1−t) − 1)/(1 − t), t = 1 + 2/(ν+M).
type Objective int

// The published objectives. Those that are "printed" are word for word; the others have
// the errors in constants corrected. None of them is a lower bound of the evidence.
const (
	VTP1         Objective = iota // Jensen's inequality for q^(1/t)
	VTP2                          // t-divergence, times the integral of q^t
	VTP2Printed                   // VTP2 without the normaliser of q in its factor, and with the constant 1 + 1/ν
	SVTP2                         // t-divergence alone
	SVTP2Printed                  // SVTP2 with the constant 1 + 1/ν
)

// relaxed is a Student-t posterior with ν degrees of freedom, location and dispersion of q.
// With n = M,
//
//	Ψ_p = exp((1−t)(l − ½ log|K|)),  Ψ_q = Ψ_p |R|^(2/(ν+n))
//	l = log Γ((ν+n)/2) − log Γ(ν/2) − (n/2) log πν
//	D = (ν+n)/2 [ Ψ_p (1 + |R|²/ν + |m|²/ν) − Ψ_q (1 + n/ν) ]
//
// E log_t p is minus infinity under a Student-t, for which the published rule of 20
// Gauss–Hermite nodes gives a finite number. The objective is that number.
//
// Source: G. Roetzer, "Efficient and Scalable Inference for Generalized Student-t Process
// Models", Trinity College Dublin 2020, equations 5.24, 5.38, 6.16 and 6.22.
type relaxed struct {
	nu        float64
	objective Objective
}

func (f *relaxed) evaluate(m *marginals, n lab.Norms, logK float64) *slopes {
	size := float64(n.Size)
	t := 1 + 2/(f.nu+size)
	dof, scale := f.nu, 1.0
	if f.objective == VTP2 || f.objective == VTP2Printed {
		dof, scale = f.nu+2, f.nu/(f.nu+2)
	}
	s := &slopes{expected: m.expect(hermiteRules(dof), t, 1, scale)}
	if f.objective == VTP1 {
		f.jensen(s, n, logK, t)
		return s
	}
	f.divergence(s, n, logK)
	switch f.objective {
	case VTP2:
		f.multiply(s, n, logK, f.powerIntegral(size)+t*f.normaliser(size), 0.5*(1-t))
	case VTP2Printed:
		f.multiply(s, n, logK, f.powerIntegral(size), 0.5)
	}
	return s
}

// normaliser is l, of the Student-t with dispersion I.
func (f *relaxed) normaliser(n float64) float64 {
	return lgamma((f.nu+n)/2) - lgamma(f.nu/2) - n/2*math.Log(math.Pi*f.nu)
}

// jensen is equation 5.24 behind E log_t p.
func (f *relaxed) jensen(s *slopes, n lab.Norms, logK, t float64) {
	nu, size := f.nu, float64(n.Size)
	half := (nu + size) / 2
	rho := 2/(t*(t-1)) - size
	logD := (lgamma(half)-lgamma(nu/2))/t + lgamma(rho/2) - lgamma((rho+size)/2) + size*(t-1)/(2*t)*math.Log(nu*math.Pi)
	power := (t - 1) / (2 * t)
	volume := half * math.Exp(logD+power*(logK+2*n.LogDet))
	psi := half * math.Exp((1-t)*(f.normaliser(size)-0.5*logK))
	pull := psi * (1 + n.Trace/(nu-2) + n.Mean/nu)
	s.value = s.sum + volume - pull
	s.logK = power*volume - pull/(nu+size)
	s.norms = lab.Norms{Mean: -psi / nu, Trace: -psi / (nu - 2), LogDet: 2 * power * volume}
}

// divergence is E log_t p − D.
func (f *relaxed) divergence(s *slopes, n lab.Norms, logK float64) {
	nu, size := f.nu, float64(n.Size)
	t, half := 1+2/(nu+size), (nu+size)/2
	constant := 1 + size/nu
	if f.objective == VTP2Printed || f.objective == SVTP2Printed {
		constant = 1 + 1/nu
	}
	psi := half * math.Exp((1-t)*(f.normaliser(size)-0.5*logK))
	own := psi * math.Exp(2*n.LogDet/(nu+size)) * constant
	d := psi*(1+n.Trace/nu+n.Mean/nu) - own
	s.value, s.logK = s.sum-d, -d/(nu+size)
	s.norms = lab.Norms{Mean: -psi / nu, Trace: -psi / nu, LogDet: 2 * own / (nu + size)}
}

// powerIntegral is the log of ∫ q^t without its powers of |V| and of the normaliser of q.
func (f *relaxed) powerIntegral(n float64) float64 {
	return lgamma((f.nu+2)/2) + n/2*math.Log(f.nu*math.Pi) - lgamma((f.nu+2+n)/2)
}

// multiply turns F into exp(log + power log|V|) F, |V| = |K| |R|².
func (f *relaxed) multiply(s *slopes, n lab.Norms, logK, log, power float64) {
	// The powers of |V|: ½ of the integral, and −½ t of the normaliser where that is there.
	factor := math.Exp(log + power*(logK+2*n.LogDet))
	e := newExpected(&marginals{mean: s.mean, spread: s.spread, c: len(s.noise)})
	e.add(factor, s.expected)
	s.norms = lab.Norms{
		Mean: factor * s.norms.Mean, Trace: factor * s.norms.Trace,
		LogDet: factor * (s.norms.LogDet + 2*power*s.value),
	}
	s.logK = factor * (s.logK + power*s.value)
	s.value, s.expected = factor*s.value, e
}

func (f *relaxed) own() []float64 { return nil }
func (f *relaxed) set([]float64)  {}

// predict is that of the tied family with the same latents.
func (f *relaxed) predict(m *marginals) *mat.Dense {
	t := tied{nu: f.nu, a: f.nu / 2, b: f.nu / 2}
	return t.predict(m)
}

func lgamma(x float64) float64 {
	v, _ := math.Lgamma(x)
	return v
}
