package dense

import "math"

// The standard normal distribution rests on one function, the inverse Mills
// ratio of the left tail,
//
//	φ(−x)/Φ(−x) = x + D(x)/P(x) = Q(x)/P(x),   x ≥ 0,   Q = x·P + D,
//
// with monic polynomials of degree 9 and 10. Their coefficients are positive,
// so that nothing cancels, and D/P is right to 1.3e-15 relative on the whole
// half-line: β, β − x and β·(β − x) all are. To the right of zero
// Φ(x) = 1 − φ(x)·P/Q.
//
// The coefficients were fitted in 60 digits to φ/Φ − x on 200 Chebyshev nodes
// of (x−4)/(x+4), by linear least squares for the relative error, reweighted
// until the largest error stopped falling (Lawson).
//
// The assembly reads this table too: keep the order.
var millsTable = [...]float64{
	// D, from x⁸ down
	26.798417099679207764, 360.61656543575758603, 3132.2425933913325783,
	19166.47231062247708, 85346.574681415678305, 276684.03385860525466,
	632859.78043445502636, 937103.37508192900195, 700511.65501183721927,
	// P, from x⁹ down
	26.798417099677183645, 362.61656543686209571, 3185.8394273841704148,
	19881.705460813013551, 91450.26829118991699, 312895.31840148320706,
	785883.99578579680991, 1390223.6993222621043, 1574334.3876738669896,
	877961.16058061509478,
}

const (
	millsHi    = 1e27 // further out x¹¹ would overflow
	invSqrt2Pi = 0.398942280401432677939946059934
	logSqrt2Pi = 0.918938533204672741780329736406
)

// mills returns |z|, or 1e27 if that is less, and D, P and Q of it.
func mills(z float64) (x, d, p, q float64) {
	t := &millsTable
	x = math.Abs(z)
	if x > millsHi {
		x = millsHi
	}
	d = ((((((((x+t[0])*x+t[1])*x+t[2])*x+t[3])*x+t[4])*x+t[5])*x+t[6])*x+t[7])*x + t[8]
	p = (((((((((x+t[9])*x+t[10])*x+t[11])*x+t[12])*x+t[13])*x+t[14])*x+t[15])*x+t[16])*x+t[17])*x + t[18]
	return x, d, p, x*p + d
}

// NormalGrid goes along an equidistant grid z_i = z + i·dz:
//
//	prod_i ← prod_i·Φ(z_i),   ratio_i ← scale·φ(z_i)/Φ(z_i)
//
// Relative error of both below 1e-14 + 3e-16·z² while Φ is a normal number
// (z > −37.5); φ/Φ is right further left too, down to z = −1e27.
func NormalGrid(ratio, prod []float64, z, dz, scale float64) {
	normalGrid(ratio, prod[:len(ratio)], z, dz, scale)
}

func normalGridGo(ratio, prod []float64, z0, dz, scale float64) {
	for i := range ratio {
		z := z0 + float64(i)*dz
		_, _, p, q := mills(z)
		phi := invSqrt2Pi * exp1(-0.5*z*z)
		if z > 0 {
			n := q - phi*p
			prod[i] *= n / q
			ratio[i] = scale * (phi * q / n)
		} else {
			prod[i] *= phi * p / q
			ratio[i] = scale * (q / p)
		}
	}
}

// Probit stores the derivatives of log Φ(α):
//
//	beta = φ(α)/Φ(α)         first derivative
//	t    = beta·(beta + α)   minus the second, 0 ≤ t ≤ 1
//
// Relative error below 1e-14 + 3e-16·α² to the right of zero, below 1e-14 to
// the left, both for |α| ≤ 1e27.
func Probit(beta, t, alpha []float64) {
	probit(beta[:len(alpha)], t[:len(alpha)], alpha)
}

func probitGo(beta, t, alpha []float64) {
	for i, a := range alpha {
		x, d, p, q := mills(a)
		if a > 0 {
			phi := invSqrt2Pi * exp1(-0.5*a*a)
			b := phi * q / (q - phi*p)
			beta[i], t[i] = b, b*(b+x)
		} else {
			b := q / p
			beta[i], t[i] = b, b*(d/p)
		}
	}
}

// LogPhi stores log Φ(z_i), the log of the standard normal distribution
// function, in dst; dst may be z.
//
// Relative error below 1e-14 + 3e-16·z² for z < 37, where log Φ leaves the
// normal range.
func LogPhi(dst, z []float64) {
	dst = dst[:len(z)]
	for i, v := range z {
		_, _, p, q := mills(v)
		if v > 0 {
			dst[i] = math.Log1p(-invSqrt2Pi * exp1(-0.5*v*v) * p / q)
		} else {
			dst[i] = -0.5*v*v - logSqrt2Pi - math.Log(q/p)
		}
	}
}
