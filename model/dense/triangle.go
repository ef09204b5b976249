package dense

import "math"

// SolveTriTrans replaces A by A·L⁻ᵀ for a lower triangular L: row i becomes L⁻¹·aᵢ.
//
//	a n×m, l m×m lower (its strict upper triangle is not read)
func SolveTriTrans(n, m int, l []float64, ldl int, a []float64, lda int) {
	if n == 0 || m == 0 {
		return
	}
	need("L", l, m, m, ldl)
	need("A", a, n, m, lda)
	if n <= Few {
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
	for i := 0; i < n; i += height {
		rows, x := min(height, n-i), a[i*lda:]
		for block := 0; block < m; block += depth {
			for p := 0; p <= block; p += depth {
				for j := block; j < min(block+depth, m); j += width {
					nc := min(width, m-j)
					if kc := min(depth, j-p); kc > 0 {
						packCols(kc, nc, l[j*ldl+p:], ldl, buf[:])
						panel(rows, nc, kc, -1, x[p:], lda, 1, buf[:], width, x[j:], lda, true, full)
					}
					if p == block {
						solveRows(rows, nc, l[j*ldl+j:], ldl, x[j:], lda)
					}
				}
			}
		}
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
	if n <= Few {
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
// It reports false, with A overwritten, if A is not positive definite or not
// finite. The strict upper triangle is neither read nor written.
func Cholesky(n int, a []float64, lda int) bool {
	if n == 0 {
		return true
	}
	need("A", a, n, n, lda)
	var buf pack
	var f block
	var d [width]float64
	for block := 0; block < n; block += depth {
		for p := 0; p <= block; p += depth {
			for j := block; j < min(block+depth, n); j += width {
				nc := min(width, n-j)
				below := n - j - nc
				if kc := min(depth, j-p); kc > 0 {
					packCols(kc, nc, a[j*lda+p:], lda, buf[:])
					diagonal(nc, kc, -1, a[j*lda+p:], lda, 1, buf[:], width, a[j*lda+j:], lda)
					if below > 0 {
						panel(below, nc, kc, -1, a[(j+nc)*lda+p:], lda, 1, buf[:], width, a[(j+nc)*lda+j:], lda, true, full)
					}
				}
				if p < block {
					continue
				}
				if !factor(nc, a[j*lda+j:], lda, &f, &d) {
					return false
				}
				if below > 0 {
					solve(below, nc, &f, &d, a[(j+nc)*lda+j:], lda)
				}
			}
		}
	}
	return true
}

// factor is Cholesky for n ≤ 12. It also prepares the forward substitution with the
// factor, in f and d, as pivots does.
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
	var buf pack
	var d, f, t block
	for first := 0; first < n; first += depth {
		invertBefore(min(depth, n-first), first, l, ldl, &buf)
		for i := first; i < min(first+depth, n); i += width {
			// With the rows above inverted to X, the block row (B D) becomes
			// (-D⁻¹·B·X  D⁻¹).
			nc := min(width, n-i)
			row := l[i*ldl:]
			invert(nc, row[i:], ldl, &f, &d)
			for j := 0; j < i; j += width {
				// B·X panel by panel, in place: a panel depends only on those
				// columns of B that no earlier panel has overwritten.
				rest := first
				if j >= first {
					rest = j + width
					packRows(width, width, one[:], 0, l[j*ldl+j:], ldl, t[:])
					clearUpper(width, t[:])
					panel(nc, width, width, 1, row[j:], ldl, 1, t[:], width, row[j:], ldl, false, lower)
				}
				if rest < i {
					panel(nc, width, i-rest, 1, row[rest:], ldl, 1, l[rest*ldl+j:], ldl, row[j:], ldl, true, full)
				}
				packRows(nc, width, one[:], 0, row[j:], ldl, t[:])
				panel(nc, width, nc, -1, d[:], width, 1, t[:], width, row[j:], ldl, false, full)
			}
		}
	}
}

// invertBefore replaces the first columns of that many rows of L, from row first on,
// by their product with the rows above, which are inverted.
func invertBefore(rows, first int, l []float64, ldl int, buf *pack) {
	row := l[first*ldl:]
	for q := 0; q < first; q += depth {
		for j := 0; j < q+depth; j += width {
			p, shape := max(q, j), full
			kc := q + depth - p
			packRows(kc, width, one[:], 0, l[p*ldl+j:], ldl, buf[:])
			if p == j {
				shape = lower
				clearUpper(width, buf[:])
			}
			panel(rows, width, kc, 1, row[p:], ldl, 1, buf[:], width, row[j:], ldl, p > j, shape)
		}
	}
}

// invert is InvertTri for n ≤ 12; it also stores the inverse in d, with zeros
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
