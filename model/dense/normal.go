package dense

import "math"

// The standard normal distribution rests on one function, the inverse Mills
// ratio of the left tail,
//
//	φ(−x)/Φ(−x) = x + D(x)/P(x) = Q(x)/P(x),   x ≥ 0,   Q = x·P + D,
//
// with monic polynomials of degree 8 and 9. Their coefficients are positive, so
// that nothing cancels, and D/P is accurate to 4.5e-14 relative on the whole
// half-line: β, β − x and β·(β − x) all are. To the right of zero
// Φ(x) = 1 − φ(x)·P/Q.
//
// The coefficients were fitted in 60 digits to φ/Φ − x on 200 Chebyshev nodes
// of (x−4)/(x+4), by linear least squares for the relative error, reweighted
// until the largest error stopped falling (Lawson).
//
// The assembly also reads this table: keep the order.
var millsTable = [...]float64{
	// D, from x⁷ down
	22.998525967208254005, 265.49252476481403435, 1960.3274332441760995,
	10026.211315829250308, 36281.063885880446711, 91054.605117779898189,
	146589.23186047858082, 119113.97287392607624,
	// P, from x⁸ down
	22.998525967269455059, 267.49252473900331066, 2006.3244888960465885,
	10551.196098160952121, 40063.738992119633252, 109555.75341914865595,
	208361.60618707420763, 251712.1748561938189, 149287.22615469998804,
}

const (
	millsHi    = 1e15 // further out Q² would overflow
	invSqrt2Pi = 0.398942280401432677939946059934
	logSqrt2Pi = 0.918938533204672741780329736406
)

// mills returns |z|, or 1e15 if that is less, and D, P and Q of it.
func mills(z float64) (x, d, p, q float64) {
	t := &millsTable
	x = math.Abs(z)
	if x > millsHi {
		x = millsHi
	}
	s := x * x
	d = (((t[0]*s+t[2])*s+t[4])*s+t[6])*x + ((((s+t[1])*s+t[3])*s+t[5])*s + t[7])
	p = ((((s+t[9])*s+t[11])*s+t[13])*s+t[15])*x + ((((t[8]*s+t[10])*s+t[12])*s+t[14])*s + t[16])
	return x, d, p, x*p + d
}

// NormalGrid evaluates an equidistant grid z_i = z + i·dz:
//
//	prod_i ← prod_i·Φ(z_i),   ratio_i ← scale·φ(z_i)/Φ(z_i)
//
// Relative error of both below 1e-13 + 3e-16·z² while Φ is a normal number
// (z > −37.5); φ/Φ is accurate further left as well, down to z = −1e15.
func NormalGrid(ratio, prod []float64, z, dz, scale float64) {
	normalGrid(ratio, prod[:len(ratio)], z, dz, scale)
}

// normalGridGo computes φ along the grid by recurrence,
//
//	φ(z+dz) = φ(z)·g(z),   g(z+dz) = g(z)·q,   g(z) = e^(−(z+dz/2)·dz),   q = e^(−dz²)
//
// started again every 16 nodes, so that the error stays below 2e-14, and at every
// node where it would start from zero.
func normalGridGo(ratio, prod []float64, z0, dz, scale float64) {
	t := &millsTable
	d7, d6, d5, d4, d3, d2, d1, d0 := t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7]
	p8, p7, p6, p5, p4, p3, p2, p1, p0 := t[8], t[9], t[10], t[11], t[12], t[13], t[14], t[15], t[16]
	growth := exp1(-dz * dz)
	prod = prod[:len(ratio)]
	for first := 0; first < len(ratio); {
		z := z0 + float64(first)*dz
		last := min(first+16, len(ratio))
		if math.Abs(z) > 37 && z*dz < 0 {
			last = first + 1
		}
		phi, g := invSqrt2Pi*exp1(-0.5*z*z), exp1(-(z+0.5*dz)*dz)
		for i := first; i < last; i++ {
			z := z0 + float64(i)*dz
			x := math.Abs(z)
			if x > millsHi {
				x = millsHi
			}
			s := x * x
			p := ((((s+p7)*s+p5)*s+p3)*s+p1)*x + ((((p8*s+p6)*s+p4)*s+p2)*s + p0)
			q := x*p + (((d7*s+d5)*s+d3)*s+d1)*x + ((((s+d6)*s+d4)*s+d2)*s + d0)
			if z > 0 {
				n := q - phi*p
				r := 1 / (q * n)
				prod[i] *= n * n * r
				ratio[i] = scale * phi * q * q * r
			} else {
				r := 1 / (q * p)
				prod[i] *= phi * p * p * r
				ratio[i] = scale * q * q * r
			}
			phi *= g
			g *= growth
		}
		first = last
	}
}

// Probit stores the derivatives of log Φ(α):
//
//	beta = φ(α)/Φ(α)         first derivative
//	t    = beta·(beta + α)   minus the second, 0 ≤ t ≤ 1
//
// Relative error below 1e-13 + 3e-16·α² to the right of zero, below 1e-13 to
// the left, both for |α| ≤ 1e15.
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
			r := 1 / p
			b := q * r
			beta[i], t[i] = b, b*d*r
		}
	}
}

// LogPhi stores log Φ(z_i), the log of the standard normal distribution
// function, in dst; dst may be z.
//
// Relative error below 1e-13 + 3e-16·z² for z < 37, where log Φ leaves the
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
