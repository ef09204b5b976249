//go:build amd64 || arm64

package dense

import "unsafe"

// The functions that both processors have in assembly: AVX2 on amd64, NEON on arm64.

//go:noescape
func tile12SIMD(m, k int, alpha float64, a *float64, rsa, csa int, b *float64, ldb int, c *float64, ldc int, add bool, shape int)

//go:noescape
func tile8SIMD(m, k int, alpha float64, a *float64, rsa, csa int, b *float64, ldb int, c *float64, ldc int, add bool)

//go:noescape
func tile4SIMD(m, k int, alpha float64, a *float64, rsa, csa int, b *float64, ldb int, c *float64, ldc int, add bool)

//go:noescape
func solve12SIMD(m int, n, d, a *float64, lda int)

//go:noescape
func solveBack12SIMD(m int, n, d, a *float64, lda int)

//go:noescape
func packRowsSIMD(k int, s *float64, ss int, a *float64, lda int, dst *float64)

//go:noescape
func expSqDistSIMD(n int, row *float64, amp, half float64, zz *float64)

func tile(nv, m, k int, alpha float64, a []float64, rsa, csa int, b []float64, ldb int, c []float64, ldc int, add bool, shape int) {
	if !vectorised {
		tileGo(nv, m, k, alpha, a, rsa, csa, b, ldb, c, ldc, add, shape)
		return
	}
	pa, pb, pc := unsafe.SliceData(a), unsafe.SliceData(b), unsafe.SliceData(c)
	switch nv {
	case 3:
		tile12SIMD(m, k, alpha, pa, rsa, csa, pb, ldb, pc, ldc, add, shape)
	case 2:
		tile8SIMD(m, k, alpha, pa, rsa, csa, pb, ldb, pc, ldc, add)
	default:
		tile4SIMD(m, k, alpha, pa, rsa, csa, pb, ldb, pc, ldc, add)
	}
}

func solve(m, nc int, n *block, d *[width]float64, a []float64, lda int) {
	if vectorised && nc == width {
		solve12SIMD(m, &n[0], &d[0], unsafe.SliceData(a), lda)
	} else {
		solveGo(m, nc, n, d, a, lda)
	}
}

func solveBack(m, nc int, n *block, d *[width]float64, a []float64, lda int) {
	if vectorised && nc == width {
		solveBack12SIMD(m, &n[0], &d[0], unsafe.SliceData(a), lda)
	} else {
		solveBackGo(m, nc, n, d, a, lda)
	}
}

func packRows12(k int, s []float64, ss int, a []float64, lda int, dst []float64) {
	if vectorised {
		packRowsSIMD(k, unsafe.SliceData(s), ss, unsafe.SliceData(a), lda, unsafe.SliceData(dst))
	} else {
		packRowsGo(k, width, s, ss, a, lda, dst)
	}
}

// The vector functions below run on four elements; the remainder is copied to four
// elements of its own.

func expSqDist(row []float64, amp, half float64, zz []float64) {
	if !vectorised {
		expSqDistGo(row, amp, half, zz)
		return
	}
	n := len(row) &^ 3
	if n > 0 {
		expSqDistSIMD(n, &row[0], amp, half, &zz[0])
	}
	if n < len(row) {
		var v, w [4]float64
		copy(v[:], row[n:])
		copy(w[:], zz[n:])
		expSqDistSIMD(4, &v[0], amp, half, &w[0])
		copy(row[n:], v[:])
	}
}
