package dense

import "unsafe"

// Every product is cut into panels of at most 12 columns. A panel of B is
// packed where its rows are not contiguous, have weights, or are next to elements
// that must not be read; then the tile kernel runs down the rows of A.
const (
	width = 12  // columns of a panel
	depth = 144 // rows of a packed panel: a multiple of width, so that no diagonal block is cut

	// Few is the number of rows for which packing a panel is not worth its cost. Up to
	// it products with triangles and substitutions sum in another order; each row of
	// more is the same, to the last bit, in the company of any others.
	Few = 4

	// height is the number of rows of A that meet every panel of B before the next
	// rows do: with depth columns they take 200 kB of the second-level cache.
	height = 192
)

// direct reports whether a panel of B of nc columns is used where it is. A deep one
// exceeds the first-level cache unless it is packed; few rows of A do not use it again.
func direct(m, nc, k int) bool { return nc%4 == 0 && (k <= depth || m <= 2*width) }

// size is the size of an element, in bytes.
const size = unsafe.Sizeof(float64(0))

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

// one is the weight of rows without weights.
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

// clearUpper sets the elements above the diagonal of a packed block to zero.
func clearUpper(nc int, dst []float64) {
	for i := range nc {
		clear(dst[i*width+i+1 : i*width+nc])
	}
}

// clearLower sets the elements below the diagonal of a packed block to zero.
func clearLower(nc int, dst []float64) {
	for i := range nc {
		clear(dst[i*width : i*width+i])
	}
}

// tileGo is the tile kernel where there is no assembly: 2×4 tiles, which the 16
// registers of the smallest processors hold.
func tileGo(nv, m, k int, alpha float64, a []float64, rsa, csa int, b []float64, ldb int, c []float64, ldc int, add bool, shape int) {
	for i := 0; i < m; i += 2 {
		rows, second := pair(i, m, rsa)
		for v := range nv {
			head, kv := 0, k
			switch shape {
			case lower:
				head, kv = 4*v, k-4*v
			case upper:
				kv = k - 8 + 4*v
			}
			var t [8]float64
			tile2x4(kv, &a[i*rsa+head*csa], second, uintptr(csa)*size, &b[4*v+head*ldb], uintptr(ldb)*size, &t)
			for r := range rows {
				x, to := (*[4]float64)(t[4*r:]), (*[4]float64)(c[(i+r)*ldc+4*v:])
				if add {
					to[0] += alpha * x[0]
					to[1] += alpha * x[1]
					to[2] += alpha * x[2]
					to[3] += alpha * x[3]
				} else {
					to[0], to[1], to[2], to[3] = alpha*x[0], alpha*x[1], alpha*x[2], alpha*x[3]
				}
			}
		}
	}
}

// pair is the number of rows from row i of m on, 2 at most, and the distance in bytes
// from the first to the second: a row that does not exist is the first again.
func pair(i, m, stride int) (rows int, second uintptr) {
	if i+2 > m {
		return 1, 0
	}
	return 2, uintptr(stride) * size
}

// tile2x4 stores the product of two rows of A and four columns of B, of depth
// k > 0, in t. The distances between A's rows and columns and B's rows are in
// bytes. Pointers save the cost of a check of bounds at every step; the
// exported functions have checked the shapes. The loop ends in the middle so
// that the sums have one use in it, and the compiler can join
// multiplications and additions on 32-bit ARM, and no pointer leaves its slice.
func tile2x4(k int, a *float64, row, col uintptr, b *float64, next uintptr, t *[8]float64) {
	var t0, t1, t2, t3, t4, t5, t6, t7 float64
	pa, pb := unsafe.Pointer(a), unsafe.Pointer(b)
	for {
		x, y, v := *(*float64)(pa), *(*float64)(unsafe.Add(pa, row)), (*[4]float64)(pb)
		t0 += x * v[0]
		t4 += y * v[0]
		t1 += x * v[1]
		t5 += y * v[1]
		t2 += x * v[2]
		t6 += y * v[2]
		t3 += x * v[3]
		t7 += y * v[3]
		k--
		if k == 0 {
			break
		}
		pa, pb = unsafe.Add(pa, col), unsafe.Add(pb, next)
	}
	t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7] = t0, t1, t2, t3, t4, t5, t6, t7
}

// pivots prepares the forward substitution with the nc×nc lower triangular L:
// row k of n holds the multiples of x_k for the later elements, d the reciprocal
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

// pivotsBack prepares the backward substitution with Lᵀ: row k of n holds the
// multiples of x_k for the earlier elements.
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

// eliminateGo subtracts multiples of every row of the upper triangle of a block
// from the rows below it: A = L·D·Lᵀ becomes D·Lᵀ. The elements below the diagonal
// are overwritten.
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

// solveGo replaces every row of A, m×nc, by the x of pivots; two rows at a time
// where all 12 columns are there: the multiples of earlier groups of four columns
// are a tile, and the rest is written out.
func solveGo(m, nc int, n *block, d *[width]float64, a []float64, lda int) {
	if nc == width {
		for i := 0; i < m; i += 2 {
			rows, second := pair(i, m, lda)
			for g := 0; g < width; g += 4 {
				var t [8]float64
				if g > 0 {
					tile2x4(g, &a[i*lda], second, size, &n[g], width*size, &t)
				}
				for r := range rows {
					x, s, e := (*[4]float64)(a[(i+r)*lda+g:]), (*[4]float64)(t[4*r:]), (*[4]float64)(d[g:])
					n0, n1, n2 := (*[4]float64)(n[g*width+g:]), (*[4]float64)(n[(g+1)*width+g:]), (*[4]float64)(n[(g+2)*width+g:])
					x0 := x[0]*e[0] - s[0]
					x1 := x[1]*e[1] - s[1] - x0*n0[1]
					x2 := x[2]*e[2] - s[2] - x0*n0[2] - x1*n1[2]
					x3 := x[3]*e[3] - s[3] - x0*n0[3] - x1*n1[3] - x2*n2[3]
					x[0], x[1], x[2], x[3] = x0, x1, x2, x3
				}
			}
		}
		return
	}
	if nc == 4 { // of 16, the samples of a step
		n01, n02, n03, n12, n13, n23 := n[1], n[2], n[3], n[width+2], n[width+3], n[2*width+3]
		for i := range m {
			x := (*[4]float64)(a[i*lda:])
			x0, x1, x2, x3 := x[0]*d[0], x[1]*d[1], x[2]*d[2], x[3]*d[3]
			x1 -= x0 * n01
			x2 -= x0 * n02
			x3 -= x0 * n03
			x2 -= x1 * n12
			x3 -= x1 * n13
			x3 -= x2 * n23
			x[0], x[1], x[2], x[3] = x0, x1, x2, x3
		}
		return
	}
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

// solveBackGo is solveGo for the x of pivotsBack.
func solveBackGo(m, nc int, n *block, d *[width]float64, a []float64, lda int) {
	if nc == width {
		for i := 0; i < m; i += 2 {
			rows, second := pair(i, m, lda)
			for g := width - 4; g >= 0; g -= 4 {
				var t [8]float64
				if rest := g + 4; rest < width {
					tile2x4(width-rest, &a[i*lda+rest], second, size, &n[rest*width+g], width*size, &t)
				}
				for r := range rows {
					x, s, e := (*[4]float64)(a[(i+r)*lda+g:]), (*[4]float64)(t[4*r:]), (*[4]float64)(d[g:])
					n1, n2, n3 := (*[4]float64)(n[(g+1)*width+g:]), (*[4]float64)(n[(g+2)*width+g:]), (*[4]float64)(n[(g+3)*width+g:])
					x3 := x[3]*e[3] - s[3]
					x2 := x[2]*e[2] - s[2] - x3*n3[2]
					x1 := x[1]*e[1] - s[1] - x3*n3[1] - x2*n2[1]
					x0 := x[0]*e[0] - s[0] - x3*n3[0] - x2*n2[0] - x1*n1[0]
					x[0], x[1], x[2], x[3] = x0, x1, x2, x3
				}
			}
		}
		return
	}
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

// dotGo sums in four parts; its loop ends in the middle for the reason that
// tile2x4 gives.
func dotGo(x, y []float64) float64 {
	y = y[:len(x)]
	var sum float64
	if len(x) >= 4 {
		var s0, s1, s2, s3 float64
		for {
			p, q := (*[4]float64)(x), (*[4]float64)(y)
			s0 += p[0] * q[0]
			s1 += p[1] * q[1]
			s2 += p[2] * q[2]
			s3 += p[3] * q[3]
			x, y = x[4:], y[4:]
			if len(x) < 4 || len(y) < 4 {
				break
			}
		}
		sum = s0 + s1 + (s2 + s3)
	}
	for i, v := range x {
		sum += v * y[i]
	}
	return sum
}

func axpyGo(alpha float64, x, y []float64) {
	y = y[:len(x)]
	for len(x) >= 4 && len(y) >= 4 {
		p, q := (*[4]float64)(x), (*[4]float64)(y)
		q[0] += alpha * p[0]
		q[1] += alpha * p[1]
		q[2] += alpha * p[2]
		q[3] += alpha * p[3]
		x, y = x[4:], y[4:]
	}
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
