package model

// Regression is soft-max regression on the standardised features,
//
//	P(y=k | x) ∝ exp(Σ_j w_kj·x_j + w_kD)
//
// It represents trends through the whole space, which a stationary kernel forgets
// at a few lengthscales from its inducing points. A missing feature counts as its
// mean, 0.
type Regression struct {
	D int       // features
	W []float64 // C×(D+1), the last of each class for the constant 1; empty: no regression
}

// LogsTo stores log P(y=k | x) in dst, C.
//
//	x  D standardised features
func (r *Regression) LogsTo(dst, x []float64) {
	for k := range dst {
		w := r.W[k*(r.D+1) : (k+1)*(r.D+1)]
		a := w[r.D]
		for j, v := range x {
			if v-v == 0 {
				a += w[j] * v
			}
		}
		dst[k] = a
	}
	logSoftmax(dst)
}
