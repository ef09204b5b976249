package dense

import "math"

// The exponential: x = k·log 2 + r with |r| ≤ ½·log 2, e^r by its Taylor series
// to degree 13 (truncation 4e-18), times 2^k in two factors, so that results
// below the normal range are rounded once. Arguments are first clamped to
// where the result is 0 or infinite anyway.
//
// The assembly reads this table too: keep the order.
var expTable = [...]float64{
	expLo, expHi, math.Log2E, ln2Hi, ln2Lo,
	1. / 6227020800, 1. / 479001600, 1. / 39916800, 1. / 3628800, 1. / 362880, 1. / 40320,
	1. / 5040, 1. / 720, 1. / 120, 1. / 24, 1. / 6, 1. / 2, 1, 1,
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
	odd := ((((((t[5]*s+t[7])*s+t[9])*s+t[11])*s+t[13])*s+t[15])*s + t[17]) * r
	even := (((((t[6]*s+t[8])*s+t[10])*s+t[12])*s+t[14])*s+t[16])*s + t[18]
	k1 := k >> 1
	return (even + odd) * math.Float64frombits(uint64(k1+1023)<<52) * math.Float64frombits(uint64(k-k1+1023)<<52)
}
