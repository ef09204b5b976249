package dense

import "fmt"

// need panics unless x can hold a rows×cols matrix with leading dimension ld.
func need(name string, x []float64, rows, cols, ld int) {
	if rows > 0 && cols > 0 && (ld < cols || len(x) < (rows-1)*ld+cols) {
		panic(fmt.Sprintf("dense: %s has %d elements and a leading dimension of %d, too few for %d×%d", name, len(x), ld, rows, cols))
	}
}

// scale multiplies a matrix by beta; zero overwrites its content.
func scale(beta float64, m, n int, c []float64, ldc int) {
	for i := range m {
		row := c[i*ldc:][:n]
		if beta == 0 {
			clear(row)
			continue
		}
		for j := range row {
			row[j] *= beta
		}
	}
}

// Gemm computes C = alpha·op(A)·op(B) + beta·C.
//
//	op(A) m×k, op(B) k×n, C m×n; op(X) = Xᵀ where trans is true
func Gemm(transA, transB bool, m, n, k int, alpha float64, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int) {
	if m == 0 || n == 0 {
		return
	}
	need("C", c, m, n, ldc)
	if alpha == 0 || k == 0 {
		if beta != 1 {
			scale(beta, m, n, c, ldc)
		}
		return
	}
	rsa, csa := strides("A", transA, m, k, a, lda)
	strides("B", transB, k, n, b, ldb)
	if beta != 0 && beta != 1 {
		scale(beta, m, n, c, ldc)
	}
	add := beta != 0
	var buf pack
	for p := 0; p < k; p += depth {
		kc := min(depth, k-p)
		for i := 0; i < m; i += height {
			mc := min(height, m-i)
			for j := 0; j < n; j += width {
				nc := min(width, n-j)
				from, ld := columns(transB, m, nc, k, p, j, b, ldb, &buf)
				panel(mc, nc, kc, alpha, a[i*rsa+p*csa:], rsa, csa, from, ld, c[i*ldc+j:], ldc, add || p > 0, full)
			}
		}
	}
}

// WeightedGram adds Aᵀ·diag(s)·A to the lower triangle of C; the strict upper
// triangle is not written.
//
//	a  n×m
//	s  n weights, one every ss elements
//	c  m×m
func WeightedGram(n, m int, s []float64, ss int, a []float64, lda int, c []float64, ldc int) {
	if n == 0 || m == 0 {
		return
	}
	need("s", s, n, 1, max(ss, 1))
	need("A", a, n, m, lda)
	need("C", c, m, m, ldc)
	var buf pack
	for p := 0; p < n; p += depth {
		kc := min(depth, n-p)
		for j := 0; j < m; j += width {
			nc := min(width, m-j)
			packRows(kc, nc, s[p*ss:], ss, a[p*lda+j:], lda, buf[:])
			diagonal(nc, kc, 1, a[p*lda+j:], 1, lda, buf[:], width, c[j*ldc+j:], ldc)
			if below := m - j - nc; below > 0 {
				panel(below, nc, kc, 1, a[p*lda+j+nc:], 1, lda, buf[:], width, c[(j+nc)*ldc+j:], ldc, true, full)
			}
		}
	}
}

// SymmetricProduct computes the lower triangle of C = op(A)·op(B) where that is
// known to be symmetric; the strict upper triangle is undefined.
//
//	op(A) m×k, op(B) k×m, c m×m; op(X) = Xᵀ where trans is true
func SymmetricProduct(transA, transB bool, m, k int, a []float64, lda int, b []float64, ldb int, c []float64, ldc int) {
	rsa, csa := strides("A", transA, m, k, a, lda)
	strides("B", transB, k, m, b, ldb)
	need("C", c, m, m, ldc)
	if k == 0 {
		scale(0, m, m, c, ldc)
		return
	}
	var buf pack
	for p := 0; p < k; p += depth {
		kc := min(depth, k-p)
		for i := 0; i < m; i += height {
			end := min(i+height, m)
			for j := 0; j < end; j += width {
				nc, first := min(width, m-j), max(i, j)
				from, ld := columns(transB, m, nc, k, p, j, b, ldb, &buf)
				panel(end-first, nc, kc, 1, a[first*rsa+p*csa:], rsa, csa, from, ld, c[first*ldc+j:], ldc, p > 0, full)
			}
		}
	}
}

// strides checks op(A), rows×cols, and returns the distances between its rows and
// columns.
func strides(name string, trans bool, rows, cols int, a []float64, lda int) (row, col int) {
	if trans {
		need(name, a, cols, rows, lda)
		return 1, lda
	}
	need(name, a, rows, cols, lda)
	return lda, 1
}

// columns returns the panel of op(B) from row p and column j on, of nc columns, and
// its leading dimension: packed in buf, or where it is. It is for m rows of A, and k
// is the number of B's rows.
func columns(trans bool, m, nc, k, p, j int, b []float64, ldb int, buf *pack) ([]float64, int) {
	kc := min(depth, k-p)
	switch {
	case trans:
		packCols(kc, nc, b[j*ldb+p:], ldb, buf[:])
	case direct(m, nc, k):
		return b[p*ldb+j:], ldb
	default:
		packRows(kc, nc, one[:], 0, b[p*ldb+j:], ldb, buf[:])
	}
	return buf[:], width
}

// MulTriTrans computes C = A·Uᵀ for a lower triangular U: row i of C is U·aᵢ.
//
//	a n×m, u m×m lower (its strict upper triangle is not read), c n×m, not overlapping a
func MulTriTrans(n, m int, a []float64, lda int, u []float64, ldu int, c []float64, ldc int) {
	if n == 0 || m == 0 {
		return
	}
	need("A", a, n, m, lda)
	need("U", u, m, m, ldu)
	need("C", c, n, m, ldc)
	if n <= Few {
		for i := range n {
			dotTriangle(m, u, ldu, a[i*lda:][:m], c[i*ldc:][:m])
		}
		return
	}
	var buf pack
	for p := 0; p < m; p += depth {
		for j := p; j < m; j += width {
			nc := min(width, m-j)
			kc := min(depth, j+nc-p)
			shape := full
			packCols(kc, nc, u[j*ldu+p:], ldu, buf[:])
			if p+kc == j+nc {
				shape = upper
				clearLower(nc, buf[(kc-nc)*width:])
			}
			panel(n, nc, kc, 1, a[p:], lda, 1, buf[:], width, c[j:], ldc, p > 0, shape)
		}
	}
}

// MulTri computes C = A·U for a lower triangular U: row i of C is Uᵀ·aᵢ.
//
//	a n×m, u m×m lower (its strict upper triangle is not read), c n×m, not overlapping a
func MulTri(n, m int, a []float64, lda int, u []float64, ldu int, c []float64, ldc int) {
	if n == 0 || m == 0 {
		return
	}
	need("A", a, n, m, lda)
	need("U", u, m, m, ldu)
	need("C", c, n, m, ldc)
	if n <= Few {
		for i := range n {
			clear(c[i*ldc:][:m])
			axpyTriangle(m, u, ldu, a[i*lda:][:m], c[i*ldc:][:m])
		}
		return
	}
	var buf pack
	for q := 0; q < m; q += depth {
		end := min(q+depth, m)
		for j := 0; j < end; j += width {
			nc, p := min(width, m-j), max(q, j)
			shape := full
			packRows(end-p, nc, one[:], 0, u[p*ldu+j:], ldu, buf[:])
			if p == j {
				shape = lower
				clearUpper(nc, buf[:])
			}
			panel(n, nc, end-p, 1, a[p:], lda, 1, buf[:], width, c[j:], ldc, p > j, shape)
		}
	}
}

// Dot returns Σ xᵢyᵢ over len(x) elements.
func Dot(x, y []float64) float64 {
	return dot(x, y[:len(x)])
}

// Axpy adds alpha·x to y over len(x) elements.
func Axpy(alpha float64, x, y []float64) {
	axpy(alpha, x, y[:len(x)])
}

// Gemv computes y = alpha·op(A)·x + beta·y for A m×n.
func Gemv(trans bool, m, n int, alpha float64, a []float64, lda int, x []float64, beta float64, y []float64) {
	if m == 0 || n == 0 {
		return
	}
	need("A", a, m, n, lda)
	if trans {
		if beta != 1 {
			scale(beta, 1, n, y[:n], n)
		}
		axpyRows(m, n, alpha, a, lda, x[:m], y[:n])
		return
	}
	if beta != 0 && beta != 1 {
		scale(beta, 1, m, y[:m], m)
	}
	dotRows(m, n, alpha, a, lda, x[:n], y[:m], beta != 0)
}
