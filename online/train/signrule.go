package train

// signRule is an optimiser for exact gradients: every parameter has a rate of
// its own, 2 % more while the gradient keeps its sign, half when that changes.
//
// Source: supplement of Villacampa-Calvo & Hernández-Lobato (2017).
type signRule struct {
	rate, sign []float64 // relative rates; signs of the last gradient
}

const (
	signGrow   = 1.02
	signShrink = 0.5
	signStep   = 0.5 // bounds one parameter's step
)

func newSignRule(n int) *signRule {
	r := &signRule{rate: make([]float64, n), sign: make([]float64, n)}
	for i := range r.rate {
		r.rate[i] = 1
	}
	return r
}

func (r *signRule) Ascend(theta, grad []float64, lr float64) {
	for i, g := range grad {
		sign := 0.0
		switch {
		case g > 0:
			sign = 1
		case g < 0:
			sign = -1
		}
		switch {
		case sign == 0 || r.sign[i] == 0:
		case sign == r.sign[i]:
			r.rate[i] *= signGrow
		default:
			r.rate[i] *= signShrink
		}
		r.sign[i] = sign
		theta[i] += min(max(lr*r.rate[i]*g, -signStep), signStep)
	}
}
