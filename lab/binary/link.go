package binary

import (
	"math"

	"edge/model/dense"
)

// Link is the likelihood of a label y = ±1 given the latent f.
type Link string

// The links: Φ(y f), and 1/(1 + e^−yf).
const (
	Probit   Link = "probit"
	Logistic Link = "logistic"
)

// slopes are log p and its first four derivatives in f.
type slopes [5]float64

// variance is the derivative of log ∫ p(y|f+√v z) N(z) dz in v, ½(l₂ + l₁²), by the heat
// equation; firstInVariance and secondInVariance are those of l₁ and l₂.
func (s *slopes) variance() float64        { return 0.5 * (s[2] + s[1]*s[1]) }
func (s *slopes) firstInVariance() float64 { return 0.5*s[3] + s[1]*s[2] }
func (s *slopes) secondInVariance() float64 {
	return 0.5*s[4] + s[2]*s[2] + s[1]*s[3]
}

// rule averages over normal latents by trapezoids. For a link whose nearest pole is π away,
// as the logistic one's, the error is e^−2π²/Δ at a distance Δ of the nodes in f: 4e-12 for
// 0.75. Gauss–Hermite of 64 nodes has 1e-6 for a variance of 7.
type rule struct {
	grids           []grid    // of 96, 192, 384 … steps, made when they are needed
	f, log, beta, t []float64 // scratch, one for each node
}

// grid is nodes and weights of N(0, 1).
type grid struct{ x, w []float64 }

const (
	halfway  = 9.0 // standard deviations to either side
	coarsest = 96  // steps
	finest   = 1536
	widest   = 0.75 // distance of the nodes in f, for standard deviations up to 64
)

// nodes are the latents and weights of N(mean, sd²).
func (r *rule) nodes(mean, sd float64) (f, w []float64) {
	level, steps := 0, coarsest
	for ; steps < finest && 2*halfway*sd > widest*float64(steps); steps *= 2 {
		level++
	}
	for n := coarsest << len(r.grids); len(r.grids) <= level; n *= 2 {
		g, h := grid{make([]float64, n+1), make([]float64, n+1)}, 2*halfway/float64(n)
		for i := range g.x {
			g.x[i] = -halfway + h*float64(i)
			g.w[i] = h * math.Exp(-0.5*g.x[i]*g.x[i]) / math.Sqrt(2*math.Pi)
		}
		r.grids = append(r.grids, g)
	}
	g := r.grids[level]
	if n := len(g.x); len(r.f) < n {
		r.f, r.log, r.beta, r.t = make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	}
	f = r.f[:len(g.x)]
	for i, x := range g.x {
		f[i] = mean + sd*x
	}
	return f, g.w
}

// smoothed returns log ∫ p(y|f+√v z) N(z) dz and its derivatives in f.
func (l Link) smoothed(r *rule, y, f, v float64) slopes {
	if l == Probit {
		return probit(y, f, 1+v)
	}
	at, w := r.nodes(f, math.Sqrt(v))
	return logistic(y, f, v, at, w)
}

// expected returns the means of log p(y|f), of its derivative, and of minus its second
// derivative, over f ~ N(mean, v).
func (l Link) expected(r *rule, y, mean, v float64) (e, g, h float64) {
	f, w := r.nodes(mean, math.Sqrt(v))
	n := len(f)
	if l == Probit {
		for i := range f {
			f[i] *= y
		}
		dense.LogPhi(r.log[:n], f)
		dense.Probit(r.beta[:n], r.t[:n], f)
	} else {
		for i, x := range f {
			r.log[i] = min(y*x, 0) - math.Log1p(math.Exp(-math.Abs(x)))
			r.beta[i] = 1 / (1 + math.Exp(y*x))
			r.t[i] = r.beta[i] * (1 - r.beta[i])
		}
	}
	for i := range f {
		e += w[i] * r.log[i]
		g += w[i] * y * r.beta[i]
		h += w[i] * r.t[i]
	}
	return e, g, h
}

// probit is log Φ(y f/√b). With α = y f/√b, β = φ/Φ and t = β(β+α), the derivatives in α
// are β, −t, c = t(2β+α) − β and 2t(1−t) − c(2β+α).
func probit(y, f, b float64) slopes {
	root := math.Sqrt(b)
	alpha := []float64{y * f / root}
	var logPhi, beta, t [1]float64
	dense.LogPhi(logPhi[:], alpha)
	dense.Probit(beta[:], t[:], alpha)
	twice := 2*beta[0] + alpha[0]
	c := t[0]*twice - beta[0]
	return slopes{
		logPhi[0], y * beta[0] / root, -t[0] / b, y * c / (b * root),
		(2*t[0]*(1-t[0]) - c*twice) / (b * b),
	}
}

// logistic is log Σ w σ(y f) over nodes of N(mean, v), with the derivatives of the log from those of the
// sum: σ' = σ(1−σ), σ” = σ'(1−2σ), σ”' = σ'(1−6σ'), σ”” = σ”(1−12σ').
func logistic(y, mean, v float64, f, w []float64) slopes {
	var p [5]float64
	for i, x := range f {
		s := 1 / (1 + math.Exp(-y*x))
		rest := 1 / (1 + math.Exp(y*x))
		d := s * rest
		for j, v := range [5]float64{s, d, d * (rest - s), d * (1 - 6*d), d * (rest - s) * (1 - 12*d)} {
			p[j] += w[i] * v
		}
	}
	if p[0] == 0 { // σ(y f) = e^yf here
		return slopes{y*mean + 0.5*v, y}
	}
	r1, r2, r3, r4 := p[1]/p[0], p[2]/p[0], p[3]/p[0], p[4]/p[0]
	return slopes{
		math.Log(p[0]), y * r1, r2 - r1*r1, y * (r3 - 3*r1*r2 + 2*r1*r1*r1),
		r4 - 4*r1*r3 - 3*r2*r2 + 12*r1*r1*r2 - 6*r1*r1*r1*r1,
	}
}
