package dense

// Every product is cut into panels of at most 12 columns. A panel of B is
// packed where its rows are not contiguous, carry weights, or stand beside
// elements that must not be read; then the tile kernel runs down the rows of A.
const (
	width = 12  // columns of a panel
	depth = 132 // rows of a packed panel: a multiple of width, so that no diagonal block is cut
	few   = 3   // rows that are not worth packing a panel for
)

type (
	pack  [depth * width]float64
	block [width * width]float64
)

// Shapes of a panel's B that let the tile kernel leave out products with the
// zeros above or below a diagonal block. Only for 12 columns; B holds the zeros.
const (
	full  = iota
	lower // the first 12 rows are lower triangular
	upper // the last 12 rows are upper triangular
)

// panel computes C = alpha·A·B, plus C if add is true, for nc ≤ 12 columns.
//
//	a  m×k, element (i, p) at i·rsa + p·csa
//	b  k×nc, readable up to the next multiple of 4 columns
//	c  m×nc; may be a if every column that is read lies in this panel
func panel(m, nc, k int, alpha float64, a []float64, rsa, csa int, b []float64, ldb int, c []float64, ldc int, add bool, shape int) {
	if m == 0 {
		return
	}
	nv := (nc + 3) / 4
	if nc < width {
		shape = full
	}
	if nc%4 == 0 {
		tile(nv, m, k, alpha, a, rsa, csa, b, ldb, c, ldc, add, shape)
		return
	}
	var t [4 * width]float64
	for i := 0; i < m; i += 4 {
		rows := min(4, m-i)
		tile(nv, rows, k, alpha, a[i*rsa:], rsa, csa, b, ldb, t[:], width, false, shape)
		for r := range rows {
			cr := c[(i+r)*ldc:][:nc]
			tr := t[r*width:][:nc]
			if add {
				for j, v := range tr {
					cr[j] += v
				}
			} else {
				copy(cr, tr)
			}
		}
	}
}

// diagonal adds alpha·A·B to the lower triangle of C, nc×nc with nc ≤ 12.
func diagonal(nc, k int, alpha float64, a []float64, rsa, csa int, b []float64, ldb int, c []float64, ldc int) {
	var t [4 * width]float64
	for i := 0; i < nc; i += 4 {
		rows := min(4, nc-i)
		tile(i/4+1, rows, k, alpha, a[i*rsa:], rsa, csa, b, ldb, t[:], width, false, full)
		for r := range rows {
			cr := c[(i+r)*ldc:][:i+r+1]
			for j, v := range t[r*width:][:i+r+1] {
				cr[j] += v
			}
		}
	}
}

// one is the weight of rows that have none.
var one = [1]float64{1}

// packRows lays k rows of nc ≤ 12 columns, each times its weight, one behind
// the other as rows of 12.
func packRows(k, nc int, s []float64, ss int, a []float64, lda int, dst []float64) {
	if nc == width {
		packRows12(k, s, ss, a, lda, dst)
		return
	}
	clear(dst[:k*width])
	packRowsGo(k, nc, s, ss, a, lda, dst)
}

func packRowsGo(k, nc int, s []float64, ss int, a []float64, lda int, dst []float64) {
	for p := range k {
		w := s[p*ss]
		d := dst[p*width:][:nc]
		for j, v := range a[p*lda:][:nc] {
			d[j] = w * v
		}
	}
}

// packCols lays the transpose of nc ≤ 12 rows of length k as k rows of 12.
func packCols(k, nc int, a []float64, lda int, dst []float64) {
	if nc == width {
		packCols12(k, a, lda, dst)
		return
	}
	clear(dst[:k*width])
	packColsGo(k, nc, a, lda, dst)
}

func packColsGo(k, nc int, a []float64, lda int, dst []float64) {
	for j := range nc {
		d := dst[j : (k-1)*width+j+1]
		for p, v := range a[j*lda:][:k] {
			d[p*width] = v
		}
	}
}

// clearUpper sets what lies above the diagonal of a packed block to zero.
func clearUpper(nc int, dst []float64) {
	for i := range nc {
		clear(dst[i*width+i+1 : i*width+nc])
	}
}

// clearLower sets what lies below the diagonal of a packed block to zero.
func clearLower(nc int, dst []float64) {
	for i := range nc {
		clear(dst[i*width : i*width+i])
	}
}

func tileGo(nv, m, k int, alpha float64, a []float64, rsa, csa int, b []float64, ldb int, c []float64, ldc int, add bool) {
	for i := 0; i < m; i += 2 {
		second := rsa
		if i+1 == m {
			second = 0
		}
		for v := range nv {
			var c00, c01, c02, c03, c10, c11, c12, c13 float64
			ia, ib := i*rsa, 4*v
			for range k {
				bp := (*[4]float64)(b[ib:])
				x0, x1 := a[ia], a[ia+second]
				c00 += x0 * bp[0]
				c01 += x0 * bp[1]
				c02 += x0 * bp[2]
				c03 += x0 * bp[3]
				c10 += x1 * bp[0]
				c11 += x1 * bp[1]
				c12 += x1 * bp[2]
				c13 += x1 * bp[3]
				ia += csa
				ib += ldb
			}
			cp := (*[4]float64)(c[i*ldc+4*v:])
			storeRow(cp, alpha, c00, c01, c02, c03, add)
			if i+1 < m {
				cp = (*[4]float64)(c[(i+1)*ldc+4*v:])
				storeRow(cp, alpha, c10, c11, c12, c13, add)
			}
		}
	}
}

func storeRow(c *[4]float64, alpha, x0, x1, x2, x3 float64, add bool) {
	if add {
		c[0] += alpha * x0
		c[1] += alpha * x1
		c[2] += alpha * x2
		c[3] += alpha * x3
		return
	}
	c[0] = alpha * x0
	c[1] = alpha * x1
	c[2] = alpha * x2
	c[3] = alpha * x3
}

// pivots prepares the forward substitution with the nc×nc lower triangular L:
// row k of n holds what x_k takes from the later elements, d the reciprocal
// pivots, x = a∘d − Σ x_k·n_k.
func pivots(nc int, l []float64, ldl int, n *block, d *[width]float64) {
	for j := range nc {
		row := l[j*ldl:][:j+1]
		r := 1 / row[j]
		d[j] = r
		for k, v := range row[:j] {
			n[k*width+j] = v * r
		}
	}
}

// pivotsBack prepares the backward substitution with Lᵀ: row k of n holds what
// x_k takes from the earlier elements.
func pivotsBack(nc int, l []float64, ldl int, n *block, d *[width]float64) {
	for k := range nc {
		row := l[k*ldl:][:k+1]
		d[k] = 1 / row[k]
		nk := n[k*width:][:k]
		for j, v := range row[:k] {
			nk[j] = v * d[j]
		}
	}
}

// eliminateGo takes multiples of every row of the upper triangle of a block
// from the rows below it: A = L·D·Lᵀ becomes D·Lᵀ. What is below the diagonal
// is spoilt.
func eliminateGo(n int, f *block) {
	for k := range n {
		row := f[k*width:][:n]
		r := 1 / row[k]
		for i := k + 1; i < n; i++ {
			v := row[i] * r
			to := f[i*width+i:][:n-i]
			for j, u := range row[i:] {
				to[j] -= v * u
			}
		}
	}
}

func solveGo(m, nc int, n *block, d *[width]float64, a []float64, lda int) {
	for i := range m {
		x := a[i*lda:][:nc]
		for j := range x {
			x[j] *= d[j]
		}
		for k, xk := range x {
			rest := x[k+1:]
			nk := n[k*width+k+1:][:len(rest)]
			for j, v := range nk {
				rest[j] -= xk * v
			}
		}
	}
}

func solveBackGo(m, nc int, n *block, d *[width]float64, a []float64, lda int) {
	for i := range m {
		x := a[i*lda:][:nc]
		for j := range x {
			x[j] *= d[j]
		}
		for k := nc - 1; k > 0; k-- {
			xk, rest := x[k], x[:k]
			for j, v := range n[k*width:][:k] {
				rest[j] -= xk * v
			}
		}
	}
}

func dotGo(x, y []float64) float64 {
	y = y[:len(x)]
	var s0, s1, s2, s3 float64
	i := 0
	for ; i+4 <= len(x); i += 4 {
		p, q := (*[4]float64)(x[i:]), (*[4]float64)(y[i:])
		s0 += p[0] * q[0]
		s1 += p[1] * q[1]
		s2 += p[2] * q[2]
		s3 += p[3] * q[3]
	}
	for ; i < len(x); i++ {
		s0 += x[i] * y[i]
	}
	return s0 + s1 + (s2 + s3)
}

func axpyGo(alpha float64, x, y []float64) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] += alpha * v
	}
}

// dotRowsGo computes y = alpha·A·x, plus y if add is true; row i of A has
// k + i·step elements.
func dotRowsGo(m, k, step int, alpha float64, a []float64, lda int, x, y []float64, add bool) {
	for i := range m {
		s := alpha * dot(a[i*lda:][:k], x[:k])
		if add {
			s += y[i]
		}
		y[i] = s
		k += step
	}
}

// axpyRowsGo adds alpha·Aᵀ·x to y; row i of A has k + i·step elements.
func axpyRowsGo(m, k, step int, alpha float64, a []float64, lda int, x, y []float64) {
	for i := range m {
		axpy(alpha*x[i], a[i*lda:][:k], y[:k])
		k += step
	}
}
