package model

import (
	"math"

	"edge/model/dense"
)

// Regression is soft-max regression on the standardised features, with Gaussian weights of
// means W and a covariance V that all classes share,
//
//	P(y=k | x) ∝ exp(w_k·x / √(1 + π/8·xᵀVx)),   x_D = 1
//
// It represents trends through the whole space, which a stationary kernel forgets
// at a few lengthscales from its inducing points. A missing feature counts as its
// mean, 0.
//
// Source: MacKay (1992), "The evidence framework applied to classification networks",
// for the divisor, which moderates the answer while the weights are unknown.
type Regression struct {
	D int       // features
	W []float64 // C×(D+1), the last of each class for the constant 1; empty: no regression
	V []float64 // lower triangle of D+1 rows, or for more than MaxCorrelated features the diagonal alone; empty: 0
}

// NewRegression returns weights of 0 with variances of 1, for D features and a number of classes.
func NewRegression(d, classes int) Regression {
	r := Regression{D: d, W: make([]float64, classes*(d+1))}
	for i := range d + 1 {
		if !r.Diagonal() {
			r.V = append(r.V, make([]float64, i)...)
		}
		r.V = append(r.V, 1)
	}
	return r
}

// MaxCorrelated is the number of features up to which a regression knows how its weights
// depend on each other.
const MaxCorrelated = 160

// KnownTo stores D standardised features in dst, with the mean, 0, for one that is missing.
func KnownTo(dst, x []float64) {
	for j, v := range x {
		if v-v != 0 {
			v = 0
		}
		dst[j] = v
	}
}

// LogsTo stores log P(y=k | x) in dst, C.
//
//	x  D, see KnownTo
func (r *Regression) LogsTo(dst, x []float64) {
	n := r.D + 1
	divisor := math.Sqrt(1 + math.Pi/8*r.variance(x))
	for k := range dst {
		w := r.W[k*n : (k+1)*n]
		dst[k] = (dense.Dot(w[:r.D], x) + w[r.D]) / divisor
	}
	logSoftmax(dst)
}

// variance returns xᵀVx with x_D = 1; 0 without V. Rounding does not make it negative.
func (r *Regression) variance(x []float64) (sum float64) {
	if len(r.V) == 0 {
		return 0
	}
	if r.Diagonal() {
		for i, v := range x {
			sum += float64(v*v) * r.V[i]
		}
		return sum + r.V[r.D]
	}
	rest := r.V
	for i, v := range x {
		sum += v * (2*dense.Dot(rest[:i], x) + float64(rest[i]*v))
		rest = rest[i+1:]
	}
	return max(sum+2*dense.Dot(rest[:r.D], x)+rest[r.D], 0)
}

// VarianceAt returns the variance of weight j of any class.
func (r *Regression) VarianceAt(j int) *float64 {
	if r.Diagonal() {
		return &r.V[j]
	}
	return &r.V[j*(j+3)/2]
}

// Diagonal reports whether the weights are taken for independent.
func (r *Regression) Diagonal() bool { return r.D > MaxCorrelated }
