//go:build !amd64 && !arm64

package dense

// vectorised reports whether assembly is used: this processor has no assembly.
var vectorised = false

func tile(nv, m, k int, alpha float64, a []float64, rsa, csa int, b []float64, ldb int, c []float64, ldc int, add bool, shape int) {
	tileGo(nv, m, k, alpha, a, rsa, csa, b, ldb, c, ldc, add, shape)
}

func solve(m, nc int, n *block, d *[width]float64, a []float64, lda int) {
	solveGo(m, nc, n, d, a, lda)
}

func solveBack(m, nc int, n *block, d *[width]float64, a []float64, lda int) {
	solveBackGo(m, nc, n, d, a, lda)
}

func eliminate(n int, f *block) { eliminateGo(n, f) }

func packRows12(k int, s []float64, ss int, a []float64, lda int, dst []float64) {
	packRowsGo(k, width, s, ss, a, lda, dst)
}

func packCols12(k int, a []float64, lda int, dst []float64) {
	packColsGo(k, width, a, lda, dst)
}

func dot(x, y []float64) float64 { return dotGo(x, y) }

func axpy(alpha float64, x, y []float64) { axpyGo(alpha, x, y) }

func dotRows(m, k int, alpha float64, a []float64, lda int, x, y []float64, add bool) {
	dotRowsGo(m, k, 0, alpha, a, lda, x, y, add)
}

func dotTriangle(m int, a []float64, lda int, x, y []float64) {
	dotRowsGo(m, 1, 1, 1, a, lda, x, y, false)
}

func axpyRows(m, k int, alpha float64, a []float64, lda int, x, y []float64) {
	axpyRowsGo(m, k, 0, alpha, a, lda, x, y)
}

func axpyTriangle(m int, a []float64, lda int, x, y []float64) {
	axpyRowsGo(m, 1, 1, 1, a, lda, x, y)
}

func expSqDist(row []float64, amp, half float64, zz []float64) { expSqDistGo(row, amp, half, zz) }

func normalGrid(ratio, prod []float64, z, dz, scale float64) {
	normalGridGo(ratio, prod, z, dz, scale)
}

func probit(beta, t, alpha []float64) { probitGo(beta, t, alpha) }
