package dense

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// vectorised says that the assembly can run here. Only tests change it.
var vectorised = cpu.X86.HasAVX2 && cpu.X86.HasFMA

//go:noescape
func tile12AVX2(m, k int, alpha float64, a *float64, rsa, csa int, b *float64, ldb int, c *float64, ldc int, add bool, shape int)

//go:noescape
func tile8AVX2(m, k int, alpha float64, a *float64, rsa, csa int, b *float64, ldb int, c *float64, ldc int, add bool)

//go:noescape
func tile4AVX2(m, k int, alpha float64, a *float64, rsa, csa int, b *float64, ldb int, c *float64, ldc int, add bool)

//go:noescape
func solve12AVX2(m int, n, d, a *float64, lda int)

//go:noescape
func packRowsAVX2(k int, s *float64, ss int, a *float64, lda int, dst *float64)

//go:noescape
func packColsAVX2(k int, a *float64, lda int, dst *float64)

//go:noescape
func dotAVX2(n int, x, y *float64) float64

//go:noescape
func axpyAVX2(n int, alpha float64, x, y *float64)

func tile(nv, m, k int, alpha float64, a []float64, rsa, csa int, b []float64, ldb int, c []float64, ldc int, add bool, shape int) {
	if !vectorised {
		tileGo(nv, m, k, alpha, a, rsa, csa, b, ldb, c, ldc, add)
		return
	}
	pa, pb, pc := unsafe.SliceData(a), unsafe.SliceData(b), unsafe.SliceData(c)
	switch nv {
	case 3:
		tile12AVX2(m, k, alpha, pa, rsa, csa, pb, ldb, pc, ldc, add, shape)
	case 2:
		tile8AVX2(m, k, alpha, pa, rsa, csa, pb, ldb, pc, ldc, add)
	default:
		tile4AVX2(m, k, alpha, pa, rsa, csa, pb, ldb, pc, ldc, add)
	}
}

func solve12(m int, n *block, d *[width]float64, a []float64, lda int) {
	if vectorised {
		solve12AVX2(m, &n[0], &d[0], unsafe.SliceData(a), lda)
	} else {
		solve12Go(m, n, d, a, lda)
	}
}

func packRows12(k int, s []float64, ss int, a []float64, lda int, dst []float64) {
	if vectorised {
		packRowsAVX2(k, unsafe.SliceData(s), ss, unsafe.SliceData(a), lda, unsafe.SliceData(dst))
	} else {
		packRowsGo(k, width, s, ss, a, lda, dst)
	}
}

func packCols12(k int, a []float64, lda int, dst []float64) {
	k4 := 0
	if vectorised && k >= 4 {
		k4 = k &^ 3
		packColsAVX2(k4, unsafe.SliceData(a), lda, unsafe.SliceData(dst))
	}
	if k4 < k {
		packColsGo(k-k4, width, a[k4:], lda, dst[k4*width:])
	}
}

func dot(x, y []float64) float64 {
	if vectorised {
		return dotAVX2(len(x), unsafe.SliceData(x), unsafe.SliceData(y))
	}
	return dotGo(x, y)
}

func axpy(alpha float64, x, y []float64) {
	if vectorised {
		axpyAVX2(len(x), alpha, unsafe.SliceData(x), unsafe.SliceData(y))
	} else {
		axpyGo(alpha, x, y)
	}
}
