package dense

import "math"

// The exponential: x = k·log 2 + r with |r| ≤ ½·log 2, a polynomial of degree
// 11 in r, times 2^k in two factors, so that results below the normal range
// are rounded once. Arguments are first clamped to where the result is 0 or
// infinite anyway.
//
// The polynomial 1 + c₁r + … + c₁₁r¹¹ was fitted in 50 digits to e^r on 120
// Chebyshev nodes, by linear least squares for the relative error, reweighted
// until the largest error, 4e-18, stopped falling (Lawson).
//
// The assembly reads this table too: keep the order.
var expTable = [...]float64{
	expLo, expHi, math.Log2E, ln2Hi, ln2Lo,
	// from r¹¹ down
	2.4991314554900222285e-8, 2.7631055197994098024e-7, 2.7557627192685724912e-6,
	2.4801490577831493716e-5, 1.9841269436071753976e-4, 1.388888894640915672e-3,
	8.3333333335501435465e-3, 4.1666666666517610815e-2, 0.16666666666666216105,
	0.5000000000000012521, 1.0000000000000000237, 1,
}

const (
	expLo = -746
	expHi = 710
	ln2Hi = 0x1.62e42feep-01 // 32 bits: k·ln2Hi is exact
	ln2Lo = math.Ln2 - ln2Hi
)

// Exp stores e^xᵢ in dst; dst may be x.
//
// Relative error below 4e-16 in the normal range; below it the result is
// rounded to the nearest subnormal number, or to zero left of −745.2. Right of
// 709.79 it is +Inf. NaN stays NaN.
func Exp(dst, x []float64) {
	expTo(dst[:len(x)], x)
}

// ExpSqDist turns a row of inner products into a row of the squared
// exponential kernel,
//
//	row_j ← amp·exp(−½·max(xx + zz_j − 2·row_j, 0))
//
// with xx = |x|² and zz_j = |z_j|². The distance is exact to a few ulp of
// xx + zz_j.
func ExpSqDist(row []float64, amp, xx float64, zz []float64) {
	expSqDist(row, amp, -0.5*xx, zz[:len(row)])
}

func expGo(dst, x []float64) {
	for i, v := range x {
		dst[i] = exp1(v)
	}
}

func expSqDistGo(row []float64, amp, half float64, zz []float64) {
	for j, v := range row {
		row[j] = amp * exp1(min(v+half-0.5*zz[j], 0))
	}
}

// exp1 is e^x. The polynomial is cut into its even and odd part, two chains
// that a processor can work on at once.
func exp1(x float64) float64 {
	t := &expTable
	if !(x > expLo) { // NaN too
		if x <= expLo {
			return 0
		}
		return x
	}
	if x > expHi {
		return math.Inf(1)
	}
	k := int(x*math.Log2E+1100.5) - 1100 // nearest
	fk := float64(k)
	r := x - fk*ln2Hi - fk*ln2Lo
	s := r * r
	odd := (((((t[5]*s+t[7])*s+t[9])*s+t[11])*s+t[13])*s + t[15]) * r
	even := ((((t[6]*s+t[8])*s+t[10])*s+t[12])*s+t[14])*s + t[16]
	k1 := k >> 1
	return (even + odd) * math.Float64frombits(uint64(k1+1023)<<52) * math.Float64frombits(uint64(k-k1+1023)<<52)
}
