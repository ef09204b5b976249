package studentt

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"
)

// Numbers of nodes of the scale: where they share one q, where each has its own, and in the
// predictions of a tied q.
const (
	sharedNodes = 13
	ownNodes    = 9
	massNodes   = 16
)

// Quantiles of s between which the nodes lie.
const lowest, highest = 0.001, 0.997

// Scale is the distribution of the scale s on nodes.
type Scale struct {
	Log []float64 // log s_g
	Pi  []float64 // log prior weights, normalised
}

// NewScale returns nodes of IG(ν/2, ν/2): log s at equal distances from the 0.1 % to the
// 99.7 % quantile, weighed by its density. An infinite ν has the one node s = 1, the
// Gaussian process.
func NewScale(nu float64, nodes int) *Scale {
	if math.IsInf(nu, 1) {
		return &Scale{[]float64{0}, []float64{0}}
	}
	g := distuv.Gamma{Alpha: nu / 2, Beta: nu / 2} // of 1/s
	s := &Scale{Log: make([]float64, nodes)}
	floats.Span(s.Log, -math.Log(g.Quantile(1-lowest)), -math.Log(g.Quantile(1-highest)))
	s.Pi = logWeights(nu, s.Log)
	return s
}

// logDensity is the log density of log s under IG(ν/2, ν/2),
//
//	h log h − log Γ(h) − h (log s + 1/s),  h = ν/2
func logDensity(nu, logS float64) float64 {
	h := nu / 2
	lgamma, _ := math.Lgamma(h)
	return h*math.Log(h) - lgamma - h*(logS+math.Exp(-logS))
}

// logWeights are the log densities of nodes at equal distances, less the log of their sum.
func logWeights(nu float64, logS []float64) []float64 {
	out := make([]float64, len(logS))
	for g, v := range logS {
		out[g] = logDensity(nu, v)
	}
	floats.AddConst(-floats.LogSumExp(out), out)
	return out
}

// mix returns log Σ π_g exp(v_g) and the shares of the nodes in it.
func (s *Scale) mix(v []float64) (sum float64, share []float64) {
	share = make([]float64, len(v))
	floats.AddTo(share, s.Pi, v)
	sum = floats.LogSumExp(share)
	for g := range share {
		share[g] = math.Exp(share[g] - sum)
	}
	return sum, share
}

// inverseGammaKL is the divergence of IG(a, b) from IG(h, h), h = ν/2, with its derivatives
// in a and b:
//
//	(a−h) ψ(a) − log Γ(a) + log Γ(h) + h log(b/h) + a (h−b)/b
func inverseGammaKL(nu, a, b float64) (kl, da, db float64) {
	h := nu / 2
	la, _ := math.Lgamma(a)
	lh, _ := math.Lgamma(h)
	kl = (a-h)*digamma(a) - la + lh + h*math.Log(b/h) + a*(h-b)/b
	trigamma := mathext.Zeta(2, a)
	return kl, (a-h)*trigamma + (h-b)/b, h/b - a*h/(b*b)
}

// equalMass are the middles, in probability, of equal shares of IG(a, b).
func equalMass(a, b float64) []float64 {
	g := distuv.Gamma{Alpha: a, Beta: b}
	out := make([]float64, massNodes)
	for i := range out {
		out[i] = 1 / g.Quantile((float64(i)+0.5)/massNodes)
	}
	return out
}

// digamma is ψ(x), x > 0, to 1e-14: by ψ(x) = ψ(x+1) − 1/x up to 12, then the asymptotic
// series. That of gonum has errors of 1e-10, too many for derivatives in the degrees of
// freedom.
//
// Source: Abramowitz & Stegun (1964), 6.3.5 and 6.3.18.
func digamma(x float64) float64 {
	var sum float64
	for ; x < 12; x++ {
		sum -= 1 / x
	}
	z := 1 / (x * x)
	series := z * (1.0/12 - z*(1.0/120-z*(1.0/252-z*(1.0/240-z*(1.0/132-z*691.0/32760)))))
	return sum + math.Log(x) - 0.5/x - series
}
