package dense

import "math"

// The exponential: x = k·log 2 + r with |r| ≤ ½·log 2, a polynomial of degree
// 11 in r, times 2^k in two factors, so that results below the normal range
// are rounded once. Arguments are first clamped to the range outside of which the
// result is 0 or infinite.
//
// The polynomial 1 + c₁r + … + c₁₁r¹¹ was fitted in 50 digits to e^r on 120
// Chebyshev nodes, by linear least squares for the relative error, reweighted
// until the largest error, 4e-18, stopped falling (Lawson).
//
// The assembly also reads this table: keep the order.
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

// ExpSqDist turns a row of inner products into a row of the squared
// exponential kernel,
//
//	row_j ← amp·exp(−½·max(xx + zz_j − 2·row_j, 0))
//
// with xx = |x|² and zz_j = |z_j|². The distance is exact to a few ulp of
// xx + zz_j. The relative error of the exponential is below 4e-16 in the normal range; below it
// the result is rounded to the nearest subnormal number, or to zero left of −745.2. NaN stays NaN.
func ExpSqDist(row []float64, amp, xx float64, zz []float64) {
	expSqDist(row, amp, -0.5*xx, zz[:len(row)])
}

// expGo keeps the coefficients in registers where there are enough of them, and
// cuts the polynomial into its even and odd part, two chains that a processor
// can work on at once.
func expGo(dst, x []float64) {
	t := &expTable
	c11, c10, c9, c8, c7, c6 := t[5], t[6], t[7], t[8], t[9], t[10]
	c5, c4, c3, c2, c1, c0 := t[11], t[12], t[13], t[14], t[15], t[16]
	dst = dst[:len(x)]
	for i, v := range x {
		switch {
		case v > expHi:
			dst[i] = math.Inf(1)
			continue
		case v <= expLo:
			dst[i] = 0
			continue
		case v != v:
			dst[i] = v
			continue
		}
		k := int(v*math.Log2E+1100.5) - 1100 // nearest
		fk := float64(k)
		r := v - fk*ln2Hi - fk*ln2Lo
		s := r * r
		odd := ((((c11*s+c9)*s+c7)*s+c5)*s+c3)*s + c1
		even := ((((c10*s+c8)*s+c6)*s+c4)*s+c2)*s + c0
		k1 := k >> 1
		dst[i] = (even + odd*r) * math.Float64frombits(uint64(k1+1023)<<52) * math.Float64frombits(uint64(k-k1+1023)<<52)
	}
}

func expSqDistGo(row []float64, amp, half float64, zz []float64) {
	for j, v := range row {
		row[j] = min(v+half-0.5*zz[j], 0)
	}
	expGo(row, row)
	for j := range row {
		row[j] *= amp
	}
}

func exp1(x float64) float64 {
	v := [1]float64{x}
	expGo(v[:], v[:])
	return v[0]
}
