package dense

import (
	"fmt"
	"math"
)

// need panics unless x can hold a rows×cols matrix with leading dimension ld.
func need(name string, x []float64, rows, cols, ld int) {
	if rows > 0 && cols > 0 && (ld < cols || len(x) < (rows-1)*ld+cols) {
		panic(fmt.Sprintf("dense: %s has %d elements and a leading dimension of %d, too few for %d×%d", name, len(x), ld, rows, cols))
	}
}

// scale multiplies a matrix by beta; zero overwrites whatever was there.
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
	rsa, csa := lda, 1
	if transA {
		need("A", a, k, m, lda)
		rsa, csa = 1, lda
	} else {
		need("A", a, m, k, lda)
	}
	if transB {
		need("B", b, n, k, ldb)
	} else {
		need("B", b, k, n, ldb)
	}
	if beta != 0 && beta != 1 {
		scale(beta, m, n, c, ldc)
	}
	add := beta != 0
	var buf pack
	for j := 0; j < n; j += width {
		nc := min(width, n-j)
		if !transB && nc%4 == 0 {
			panel(m, nc, k, alpha, a, rsa, csa, b[j:], ldb, c[j:], ldc, add, full)
			continue
		}
		for p := 0; p < k; p += depth {
			kc := min(depth, k-p)
			if transB {
				packCols(kc, nc, b[j*ldb+p:], ldb, buf[:])
			} else {
				packRows(kc, nc, one[:], 0, b[p*ldb+j:], ldb, buf[:])
			}
			panel(m, nc, kc, alpha, a[p*csa:], rsa, csa, buf[:], width, c[j:], ldc, add || p > 0, full)
		}
	}
}

// WeightedGram adds Aᵀ·diag(s)·A to the lower triangle of C; the strict upper
// triangle is left alone.
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
	for j := 0; j < m; j += width {
		nc := min(width, m-j)
		for p := 0; p < n; p += depth {
			kc := min(depth, n-p)
			packRows(kc, nc, s[p*ss:], ss, a[p*lda+j:], lda, buf[:])
			diagonal(nc, kc, 1, a[p*lda+j:], 1, lda, buf[:], width, c[j*ldc+j:], ldc)
			if below := m - j - nc; below > 0 {
				panel(below, nc, kc, 1, a[p*lda+j+nc:], 1, lda, buf[:], width, c[(j+nc)*ldc+j:], ldc, true, full)
			}
		}
	}
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
	if n <= few {
		for i := range n {
			dotTriangle(m, u, ldu, a[i*lda:][:m], c[i*ldc:][:m])
		}
		return
	}
	var buf pack
	for j := 0; j < m; j += width {
		nc := min(width, m-j)
		end := j + nc
		for p := 0; p < end; p += depth {
			kc := min(depth, end-p)
			shape := full
			packCols(kc, nc, u[j*ldu+p:], ldu, buf[:])
			if p+kc == end {
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
	if n <= few {
		for i := range n {
			clear(c[i*ldc:][:m])
			axpyTriangle(m, u, ldu, a[i*lda:][:m], c[i*ldc:][:m])
		}
		return
	}
	var buf pack
	for j := 0; j < m; j += width {
		nc := min(width, m-j)
		for p := j; p < m; p += depth {
			kc := min(depth, m-p)
			shape := full
			packRows(kc, nc, one[:], 0, u[p*ldu+j:], ldu, buf[:])
			if p == j {
				shape = lower
				clearUpper(nc, buf[:])
			}
			panel(n, nc, kc, 1, a[p:], lda, 1, buf[:], width, c[j:], ldc, p > j, shape)
		}
	}
}

// SolveTriTrans replaces A by A·L⁻ᵀ for a lower triangular L: row i becomes L⁻¹·aᵢ.
//
//	a n×m, l m×m lower (its strict upper triangle is not read)
func SolveTriTrans(n, m int, l []float64, ldl int, a []float64, lda int) {
	if n == 0 || m == 0 {
		return
	}
	need("L", l, m, m, ldl)
	need("A", a, n, m, lda)
	if n <= few {
		for j := 0; j < m; j += width {
			nc := min(width, m-j)
			for i := range n {
				x := a[i*lda:]
				dotRows(nc, j, -1, l[j*ldl:], ldl, x[:j], x[j:][:nc], true)
			}
			solveRows(n, nc, l[j*ldl+j:], ldl, a[j:], lda)
		}
		return
	}
	var buf pack
	for j := 0; j < m; j += width {
		nc := min(width, m-j)
		for p := 0; p < j; p += depth {
			kc := min(depth, j-p)
			packCols(kc, nc, l[j*ldl+p:], ldl, buf[:])
			panel(n, nc, kc, -1, a[p:], lda, 1, buf[:], width, a[j:], lda, true, full)
		}
		solveRows(n, nc, l[j*ldl+j:], ldl, a[j:], lda)
	}
}

// solveRows replaces each row of A, n×nc with nc ≤ 12, by L⁻¹·aᵢ.
func solveRows(n, nc int, l []float64, ldl int, a []float64, lda int) {
	var f block
	var d [width]float64
	pivots(nc, l, ldl, &f, &d)
	solve(n, nc, &f, &d, a, lda)
}

// SolveTri replaces A by A·L⁻¹ for a lower triangular L: row i becomes L⁻ᵀ·aᵢ.
//
//	a n×m, l m×m lower (its strict upper triangle is not read)
func SolveTri(n, m int, l []float64, ldl int, a []float64, lda int) {
	if n == 0 || m == 0 {
		return
	}
	need("L", l, m, m, ldl)
	need("A", a, n, m, lda)
	last := (m - 1) / width * width
	if n <= few {
		for j := last; j >= 0; j -= width {
			nc := min(width, m-j)
			solveRowsBack(n, nc, l[j*ldl+j:], ldl, a[j:], lda)
			for i := range n {
				x := a[i*lda:]
				axpyRows(nc, j, -1, l[j*ldl:], ldl, x[j:][:nc], x[:j])
			}
		}
		return
	}
	var buf pack
	for j := last; j >= 0; j -= width {
		nc := min(width, m-j)
		for p := j + nc; p < m; p += depth {
			kc := min(depth, m-p)
			packRows(kc, nc, one[:], 0, l[p*ldl+j:], ldl, buf[:])
			panel(n, nc, kc, -1, a[p:], lda, 1, buf[:], width, a[j:], lda, true, full)
		}
		solveRowsBack(n, nc, l[j*ldl+j:], ldl, a[j:], lda)
	}
}

// solveRowsBack replaces each row of A, n×nc with nc ≤ 12, by L⁻ᵀ·aᵢ.
func solveRowsBack(n, nc int, l []float64, ldl int, a []float64, lda int) {
	var f block
	var d [width]float64
	pivotsBack(nc, l, ldl, &f, &d)
	solveBack(n, nc, &f, &d, a, lda)
}

// Cholesky replaces the lower triangle of A by its Cholesky factor, A = L·Lᵀ.
// It reports false, with A spoilt, if A is not positive definite or not
// finite. The strict upper triangle is neither read nor written.
func Cholesky(n int, a []float64, lda int) bool {
	if n == 0 {
		return true
	}
	need("A", a, n, n, lda)
	var buf pack
	var f block
	var d [width]float64
	for j := 0; j < n; j += width {
		nc := min(width, n-j)
		below := n - j - nc
		for p := 0; p < j; p += depth {
			kc := min(depth, j-p)
			packCols(kc, nc, a[j*lda+p:], lda, buf[:])
			diagonal(nc, kc, -1, a[j*lda+p:], lda, 1, buf[:], width, a[j*lda+j:], lda)
			if below > 0 {
				panel(below, nc, kc, -1, a[(j+nc)*lda+p:], lda, 1, buf[:], width, a[(j+nc)*lda+j:], lda, true, full)
			}
		}
		if !factor(nc, a[j*lda+j:], lda, &f, &d) {
			return false
		}
		if below > 0 {
			solve(below, nc, &f, &d, a[(j+nc)*lda+j:], lda)
		}
	}
	return true
}

// factor is Cholesky for n ≤ 12. It prepares the forward substitution with the
// factor too, in f and d, as pivots does.
//
// It works on the transpose, whose rows are contiguous, and takes the square
// roots last: A = L'·D·L'ᵀ first.
func factor(n int, a []float64, lda int, f *block, d *[width]float64) bool {
	for i := range n {
		for k, v := range a[i*lda:][:i+1] {
			f[k*width+i] = v
		}
	}
	eliminate(n, f)
	for k := range n {
		p := f[k*width+k]
		if !(p > 0 && p <= math.MaxFloat64) {
			return false
		}
		s := math.Sqrt(p)
		d[k] = 1 / s
		a[k*lda+k] = s
	}
	for k := range n {
		row, dk := f[k*width:][:n], d[k]
		for j := k + 1; j < n; j++ {
			v := row[j] * dk
			a[j*lda+k] = v
			row[j] = v * d[j]
		}
		clear(row[:k+1])
	}
	return true
}

// InvertTri replaces the lower triangular L by its inverse, which is lower
// triangular. The diagonal must not be zero. The strict upper triangle is
// neither read nor written.
func InvertTri(n int, l []float64, ldl int) {
	if n == 0 {
		return
	}
	need("L", l, n, n, ldl)
	var d, f, t block
	for i := 0; i < n; i += width {
		// With the rows above inverted to X, the block row (B D) becomes
		// (-D⁻¹·B·X  D⁻¹).
		nc := min(width, n-i)
		row := l[i*ldl:]
		invert(nc, row[i:], ldl, &f, &d)
		for j := 0; j < i; j += width {
			// B·X panel by panel, in place: a panel depends only on those
			// columns of B that no earlier panel has overwritten.
			packRows(width, width, one[:], 0, l[j*ldl+j:], ldl, t[:])
			clearUpper(width, t[:])
			panel(nc, width, width, 1, row[j:], ldl, 1, t[:], width, row[j:], ldl, false, lower)
			if rest := j + width; rest < i {
				panel(nc, width, i-rest, 1, row[rest:], ldl, 1, l[rest*ldl+j:], ldl, row[j:], ldl, true, full)
			}
			packRows(nc, width, one[:], 0, row[j:], ldl, t[:])
			panel(nc, width, nc, -1, d[:], width, 1, t[:], width, row[j:], ldl, false, full)
		}
	}
}

// invert is InvertTri for n ≤ 12; it leaves the inverse in d too, with zeros
// above the diagonal. f is scratch that was zero before its first use.
func invert(n int, l []float64, ldl int, f, d *block) {
	var p [width]float64
	pivotsBack(n, l, ldl, f, &p)
	clear(d[:])
	for i := range n {
		d[i*width+i] = 1
	}
	solveBack(n, width, f, &p, d[:], width)
	for i := range n {
		copy(l[i*ldl:][:i+1], d[i*width:][:i+1])
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
