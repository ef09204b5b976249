package dense

import "unsafe"

// vectorised reports whether NEON is used, which every arm64 has. Only tests change it.
var vectorised = true

//go:noescape
func packColsNEON(k int, a *float64, lda int, dst *float64)

//go:noescape
func dotNEON(n int, x, y *float64) float64

//go:noescape
func axpyNEON(n int, alpha float64, x, y *float64)

//go:noescape
func dotRowsNEON(m, k, dk int, alpha float64, a *float64, lda int, x, y *float64)

//go:noescape
func axpyRowsNEON(m, k, dk int, alpha float64, a *float64, lda int, x, y *float64)

//go:noescape
func normalGridNEON(n int, ratio, prod *float64, s *gridNEON)

func eliminate(n int, f *block) { eliminateGo(n, f) }

func packCols12(k int, a []float64, lda int, dst []float64) {
	k2 := 0
	if vectorised && k >= 2 {
		k2 = k &^ 1
		packColsNEON(k2, unsafe.SliceData(a), lda, unsafe.SliceData(dst))
	}
	if k2 < k {
		packColsGo(k-k2, width, a[k2:], lda, dst[k2*width:])
	}
}

func dot(x, y []float64) float64 {
	n := len(x) &^ 7
	if !vectorised || n == 0 {
		return dotGo(x, y)
	}
	return dotNEON(n, unsafe.SliceData(x), unsafe.SliceData(y)) + dotGo(x[n:], y[n:])
}

func axpy(alpha float64, x, y []float64) {
	n := len(x) &^ 7
	if vectorised && n > 0 {
		axpyNEON(n, alpha, unsafe.SliceData(x), unsafe.SliceData(y))
		x, y = x[n:], y[n:]
	}
	axpyGo(alpha, x, y)
}

// dotRows computes y = alpha·A·x, plus y if add is true, for A m×k.
func dotRows(m, k int, alpha float64, a []float64, lda int, x, y []float64, add bool) {
	m4, k4 := m&^3, k&^3
	if !vectorised || m4 == 0 || k4 == 0 {
		dotRowsGo(m, k, 0, alpha, a, lda, x, y, add)
		return
	}
	if !add {
		clear(y[:m4])
	}
	dotRowsNEON(m4, k4, 0, alpha, unsafe.SliceData(a), lda, unsafe.SliceData(x), unsafe.SliceData(y))
	for i := range m4 {
		for p := k4; p < k; p++ {
			y[i] += alpha * a[i*lda+p] * x[p]
		}
	}
	if m4 < m {
		dotRowsGo(m-m4, k, 0, alpha, a[m4*lda:], lda, x, y[m4:], add)
	}
}

// dotTriangle computes y = A·x for A m×m lower triangular.
func dotTriangle(m int, a []float64, lda int, x, y []float64) {
	m4 := m &^ 3
	if vectorised && m4 > 0 {
		clear(y[:m4])
		dotRowsNEON(m4, 0, 4, 1, unsafe.SliceData(a), lda, unsafe.SliceData(x), unsafe.SliceData(y))
		for i := 0; i < m4; i += 4 {
			dotCorner(a[i*lda+i:], lda, x[i:], y[i:])
		}
	} else {
		m4 = 0
	}
	if m4 < m {
		dotRowsGo(m-m4, m4+1, 1, 1, a[m4*lda:], lda, x, y[m4:], false)
	}
}

// dotCorner adds A·x to y for A 4×4 lower triangular.
func dotCorner(a []float64, lda int, x, y []float64) {
	x, y = x[:4], y[:4]
	r0, r1, r2, r3 := a[:1], a[lda:][:2], a[2*lda:][:3], a[3*lda:][:4]
	x0, x1, x2, x3 := x[0], x[1], x[2], x[3]
	y[0] += r0[0] * x0
	y[1] = y[1] + r1[0]*x0 + r1[1]*x1
	y[2] = y[2] + r2[0]*x0 + r2[1]*x1 + r2[2]*x2
	y[3] = y[3] + r3[0]*x0 + r3[1]*x1 + r3[2]*x2 + r3[3]*x3
}

// axpyCorner adds Aᵀ·x to y for A 4×4 lower triangular.
func axpyCorner(a []float64, lda int, x, y []float64) {
	x, y = x[:4], y[:4]
	r0, r1, r2, r3 := a[:1], a[lda:][:2], a[2*lda:][:3], a[3*lda:][:4]
	x0, x1, x2, x3 := x[0], x[1], x[2], x[3]
	y[0] = y[0] + r0[0]*x0 + r1[0]*x1 + r2[0]*x2 + r3[0]*x3
	y[1] = y[1] + r1[1]*x1 + r2[1]*x2 + r3[1]*x3
	y[2] = y[2] + r2[2]*x2 + r3[2]*x3
	y[3] += r3[3] * x3
}

// axpyRows adds alpha·Aᵀ·x to y for A m×k.
func axpyRows(m, k int, alpha float64, a []float64, lda int, x, y []float64) {
	m4, k4 := m&^3, k&^3
	if !vectorised || m4 == 0 || k4 == 0 {
		axpyRowsGo(m, k, 0, alpha, a, lda, x, y)
		return
	}
	axpyRowsNEON(m4, k4, 0, alpha, unsafe.SliceData(a), lda, unsafe.SliceData(x), unsafe.SliceData(y))
	for i := range m4 {
		xi := alpha * x[i]
		for p := k4; p < k; p++ {
			y[p] += a[i*lda+p] * xi
		}
	}
	if m4 < m {
		axpyRowsGo(m-m4, k, 0, alpha, a[m4*lda:], lda, x[m4:], y)
	}
}

// axpyTriangle adds Aᵀ·x to y for A m×m lower triangular.
func axpyTriangle(m int, a []float64, lda int, x, y []float64) {
	m4 := m &^ 3
	if vectorised && m4 > 0 {
		axpyRowsNEON(m4, 0, 4, 1, unsafe.SliceData(a), lda, unsafe.SliceData(x), unsafe.SliceData(y))
		for i := 0; i < m4; i += 4 {
			axpyCorner(a[i*lda+i:], lda, x[i:], y[i:])
		}
	} else {
		m4 = 0
	}
	if m4 < m {
		axpyRowsGo(m-m4, m4+1, 1, 1, a[m4*lda:], lda, x[m4:], y)
	}
}

// gridNEON is the state of normalGridNEON, four nodes at a time.
type gridNEON struct {
	z, dz, scale float64
	growth       float64    // factor of next at each step: e^(−16·dz²)
	phi, next    [4]float64 // φ(z), φ(z+4dz)/φ(z)
}

// normalGrid computes φ by recurrence, as normalGridGo does, with steps of four
// nodes. Grids that come from far left, or take large steps, are left to that.
func normalGrid(ratio, prod []float64, z, dz, scale float64) {
	n := len(ratio) &^ 3
	if !vectorised || !(dz > 0 && dz <= 4 && z >= -37) {
		n = 0
	}
	if n > 0 {
		growth := exp1(-dz * dz)
		g4 := growth * growth * growth * growth
		s := gridNEON{dz: dz, scale: scale, growth: g4 * g4 * g4 * g4}
		for first := 0; first < n; first += 16 {
			s.z = z + float64(first)*dz
			phi, g, next := invSqrt2Pi*exp1(-0.5*s.z*s.z), exp1(-(s.z+0.5*dz)*dz), 1.0
			for i := range s.phi {
				s.phi[i] = phi
				phi *= g
				next *= g
				g *= growth
			}
			for i := range s.next {
				s.next[i] = next
				next *= g4
			}
			normalGridNEON(min(16, n-first), &ratio[first], &prod[first], &s)
		}
	}
	if n < len(ratio) {
		normalGridGo(ratio[n:], prod[n:], z+float64(n)*dz, dz, scale)
	}
}

func probit(beta, t, alpha []float64) { probitGo(beta, t, alpha) }
