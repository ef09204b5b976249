package model

import "math"

const (
	logSqrt2Pi = 0.918938533204672741780329736406 // log √(2π)
	invSqrt2Pi = 0.398942280401432677939946059934 // 1/√(2π)
)

// Probit returns log Φ(α), the log evidence of one probit factor, and
//
//	beta = φ(α)/Φ(α)          d log Φ / dα
//	t    = beta·(beta+α)      −d² log Φ / dα²,  0 ≤ t ≤ 1
//
// α has no unit: a difference of latent means over its standard deviation.
// Relative error below 1e-10 for −1e4 ≤ α ≤ 40, where 1−Φ underflows in log Φ.
// Left of −25 by the asymptotic series of the Mills ratio: the products cancel
// there.
//
// Source: Rasmussen & Williams (2006), Section 3.9; Abramowitz & Stegun 26.2.12.
func Probit(alpha float64) (logPhi, beta, t float64) {
	if alpha < -25 {
		x := -alpha
		y := 1 / (x * x)
		beta = x + (1-y*(2-y*(10-y*74)))/x
		t = 1 - y*(1-y*(6-y*(50-y*518)))
		return -0.5*x*x - math.Log(beta) - logSqrt2Pi, beta, t
	}
	var cdf float64
	if alpha > 0 {
		tail := 0.5 * math.Erfc(alpha/math.Sqrt2)
		cdf = 1 - tail
		logPhi = math.Log1p(-tail)
	} else {
		cdf = 0.5 * math.Erfc(-alpha/math.Sqrt2)
		logPhi = math.Log(cdf)
	}
	beta = invSqrt2Pi * math.Exp(-0.5*alpha*alpha) / cdf
	return logPhi, beta, min(max(beta*(beta+alpha), 0), 1)
}

// normalTable holds Taylor coefficients of Φ about the points of a uniform
// grid, so that Φ and φ cost a dozen multiplications and no exponential.
//
// The predictive grid evaluates both 32·C times for each horizon and sample;
// its nodes never lie below −5 standard deviations of any class (predict.go).
type normalTable [(normalHi-normalLo)*normalPerUnit + 1][normalDegree + 1]float64

const (
	normalLo      = -6 // below, normal falls back to erfc
	normalHi      = 9  // above, 1−Φ < 1.2e-19: Φ = 1, φ = 0
	normalPerUnit = 16
	normalDegree  = 9
)

var normals = newNormalTable()

// newNormalTable fills the table: coefficient j of Φ(z0+h) is
// φ(z0)·(−1)^(j−1)·He_{j−1}(z0)/j!, with the Hermite polynomials by their
// recurrence He_{j+1} = z·He_j − j·He_{j−1}.
func newNormalTable() *normalTable {
	t := new(normalTable)
	for i := range t {
		z := normalLo + float64(i)/normalPerUnit
		c := &t[i]
		c[0] = 0.5 * math.Erfc(-z/math.Sqrt2)
		phi := invSqrt2Pi * math.Exp(-0.5*z*z)
		he, prev, scale := 1.0, 0.0, 1.0
		for j := 1; j <= normalDegree; j++ {
			scale /= float64(j)
			c[j] = phi * he * scale
			he, prev = z*he-float64(j-1)*prev, he
			scale = -scale
		}
	}
	return t
}

// normal returns φ(z) and Φ(z). Absolute error below 1e-15; relative error
// below 1e-12 for z ≥ −6. Above z = 9 it returns 0 and 1.
func (t *normalTable) normal(z float64) (pdf, cdf float64) {
	if z >= normalHi {
		return 0, 1
	}
	if !(z >= normalLo) { // NaN goes through, too
		return invSqrt2Pi * math.Exp(-0.5*z*z), 0.5 * math.Erfc(-z/math.Sqrt2)
	}
	i := int((z-normalLo)*normalPerUnit + 0.5)
	h := z - (normalLo + float64(i)*(1.0/normalPerUnit))
	c := &t[i]
	cdf = c[0] + h*(c[1]+h*(c[2]+h*(c[3]+h*(c[4]+h*(c[5]+h*(c[6]+h*(c[7]+h*(c[8]+h*c[9]))))))))
	pdf = c[1] + h*(2*c[2]+h*(3*c[3]+h*(4*c[4]+h*(5*c[5]+h*(6*c[6]+h*(7*c[7]+h*(8*c[8]+h*(9*c[9]))))))))
	return pdf, cdf
}
