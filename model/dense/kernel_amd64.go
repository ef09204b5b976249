package dense

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// vectorised reports whether the assembly can run here. Only tests change it.
var vectorised = cpu.X86.HasAVX2 && cpu.X86.HasFMA

//go:noescape
func eliminateAVX2(n int, f *float64)

//go:noescape
func packColsAVX2(k int, a *float64, lda int, dst *float64)

//go:noescape
func dotAVX2(n int, x, y *float64) float64

//go:noescape
func axpyAVX2(n int, alpha float64, x, y *float64)

//go:noescape
func normalGridAVX2(n int, ratio, prod *float64, z, dz, scale float64)

//go:noescape
func probitAVX2(n int, beta, t, alpha *float64)

//go:noescape
func dotRowsAVX2(m, k, t, step, dk int, alpha float64, a *float64, lda int, x, y *float64, add bool)

//go:noescape
func axpyRowsAVX2(m, k, t, step, dk int, alpha float64, a *float64, lda int, x, y *float64)

func eliminate(n int, f *block) {
	if vectorised {
		eliminateAVX2(n, &f[0])
	} else {
		eliminateGo(n, f)
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

// dotRows computes y = alpha·A·x, plus y if add is true, for A m×k.
func dotRows(m, k int, alpha float64, a []float64, lda int, x, y []float64, add bool) {
	if vectorised && m >= 4 {
		m4 := m &^ 3
		dotRowsAVX2(m4, k&^3, k&3, 0, 0, alpha, unsafe.SliceData(a), lda, unsafe.SliceData(x), unsafe.SliceData(y), add)
		if m4 == m {
			return
		}
		m, a, y = m-m4, a[m4*lda:], y[m4:]
	}
	dotRowsGo(m, k, 0, alpha, a, lda, x, y, add)
}

// dotTriangle computes y = A·x for A m×m lower triangular.
func dotTriangle(m int, a []float64, lda int, x, y []float64) {
	if vectorised && m >= 4 {
		m4 := m &^ 3
		dotRowsAVX2(m4, 0, 1, 1, 4, 1, unsafe.SliceData(a), lda, unsafe.SliceData(x), unsafe.SliceData(y), false)
		if m4 < m {
			dotRowsGo(m-m4, m4+1, 1, 1, a[m4*lda:], lda, x, y[m4:], false)
		}
		return
	}
	dotRowsGo(m, 1, 1, 1, a, lda, x, y, false)
}

// axpyRows adds alpha·Aᵀ·x to y for A m×k.
func axpyRows(m, k int, alpha float64, a []float64, lda int, x, y []float64) {
	if vectorised && m >= 4 {
		m4 := m &^ 3
		axpyRowsAVX2(m4, k&^3, k&3, 0, 0, alpha, unsafe.SliceData(a), lda, unsafe.SliceData(x), unsafe.SliceData(y))
		if m4 == m {
			return
		}
		m, a, x = m-m4, a[m4*lda:], x[m4:]
	}
	axpyRowsGo(m, k, 0, alpha, a, lda, x, y)
}

// axpyTriangle adds Aᵀ·x to y for A m×m lower triangular.
func axpyTriangle(m int, a []float64, lda int, x, y []float64) {
	if vectorised && m >= 4 {
		m4 := m &^ 3
		axpyRowsAVX2(m4, 0, 1, 1, 4, 1, unsafe.SliceData(a), lda, unsafe.SliceData(x), unsafe.SliceData(y))
		if m4 < m {
			axpyRowsGo(m-m4, m4+1, 1, 1, a[m4*lda:], lda, x[m4:], y)
		}
		return
	}
	axpyRowsGo(m, 1, 1, 1, a, lda, x, y)
}

// The tables of the elementary functions, every entry in four lanes.
var (
	//lint:ignore U1000 the assembly reads it
	expLanes = lanes(expTable)
	//lint:ignore U1000 the assembly reads it
	millsLanes = lanes(millsTable)
)

func lanes(t [17]float64) (v [17][4]float64) {
	for i, x := range t {
		v[i] = [4]float64{x, x, x, x}
	}
	return v
}

func normalGrid(ratio, prod []float64, z, dz, scale float64) {
	if !vectorised {
		normalGridGo(ratio, prod, z, dz, scale)
		return
	}
	n := len(ratio) &^ 3
	if n > 0 {
		normalGridAVX2(n, &ratio[0], &prod[0], z, dz, scale)
	}
	if n < len(ratio) {
		var v, w [4]float64
		copy(w[:], prod[n:])
		normalGridAVX2(4, &v[0], &w[0], z+float64(n)*dz, dz, scale)
		copy(ratio[n:], v[:])
		copy(prod[n:], w[:])
	}
}

func probit(beta, t, alpha []float64) {
	if !vectorised {
		probitGo(beta, t, alpha)
		return
	}
	n := len(alpha) &^ 3
	if n > 0 {
		probitAVX2(n, &beta[0], &t[0], &alpha[0])
	}
	if n < len(alpha) {
		var a, b, c [4]float64
		copy(a[:], alpha[n:])
		probitAVX2(4, &b[0], &c[0], &a[0])
		copy(beta[n:], b[:])
		copy(t[n:], c[:])
	}
}
