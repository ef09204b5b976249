package dense

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
)

var (
	lib     = blas64.Implementation()
	scratch []float64
	factor  = func(n int, a []float64, lda int) bool {
		_, ok := lapack64.Potrf(blas64.Symmetric{Uplo: blas.Lower, N: n, Data: a, Stride: lda})
		return ok
	}
)

func op(trans bool) blas.Transpose {
	if trans {
		return blas.Trans
	}
	return blas.NoTrans
}

// Gemm computes C = alpha·op(A)·op(B) + beta·C.
func Gemm(transA, transB bool, m, n, k int, alpha float64, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int) {
	if m > 0 && n > 0 {
		lib.Dgemm(op(transA), op(transB), m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
	}
}

// WeightedGram adds Aᵀ·diag(s)·A to the lower triangle of C: the rows are
// weighted, then multiplied block by block of columns.
func WeightedGram(n, m int, s []float64, ss int, a []float64, lda int, c []float64, ldc int) {
	const block = 48
	if n == 0 || m == 0 {
		return
	}
	if need := n*m + block*block; len(scratch) < need {
		scratch = make([]float64, need)
	}
	weighed, corner := scratch[block*block:], scratch[:block*block]
	for i := range n {
		row := weighed[i*m:][:m]
		for j, v := range a[i*lda:][:m] {
			row[j] = s[i*ss] * v
		}
	}
	for j := 0; j < m; j += block {
		nc := min(block, m-j)
		lib.Dgemm(blas.Trans, blas.NoTrans, nc, nc, n, 1, a[j:], lda, weighed[j:], m, 0, corner, block)
		for i := range nc {
			row := c[(j+i)*ldc+j:]
			for k, v := range corner[i*block:][:i+1] {
				row[k] += v
			}
		}
		if below := m - j - nc; below > 0 {
			lib.Dgemm(blas.Trans, blas.NoTrans, below, nc, n, 1, a[j+nc:], lda, weighed[j:], m, 1, c[(j+nc)*ldc+j:], ldc)
		}
	}
}

// SymmetricProduct computes the lower triangle of C = op(A)·op(B).
func SymmetricProduct(transA, transB bool, m, k int, a []float64, lda int, b []float64, ldb int, c []float64, ldc int) {
	Gemm(transA, transB, m, m, k, 1, a, lda, b, ldb, 0, c, ldc)
}

// MulTriTrans computes C = A·Uᵀ for a lower triangular U.
func MulTriTrans(n, m int, a []float64, lda int, u []float64, ldu int, c []float64, ldc int) {
	triangular(n, m, blas.Trans, a, lda, u, ldu, c, ldc)
}

// MulTri computes C = A·U for a lower triangular U.
func MulTri(n, m int, a []float64, lda int, u []float64, ldu int, c []float64, ldc int) {
	triangular(n, m, blas.NoTrans, a, lda, u, ldu, c, ldc)
}

func triangular(n, m int, t blas.Transpose, a []float64, lda int, u []float64, ldu int, c []float64, ldc int) {
	for i := range n {
		copy(c[i*ldc:][:m], a[i*lda:][:m])
	}
	switch {
	case n == 1 && t == blas.Trans:
		lib.Dtrmv(blas.Lower, blas.NoTrans, blas.NonUnit, m, u, ldu, c, 1)
	case n == 1:
		lib.Dtrmv(blas.Lower, blas.Trans, blas.NonUnit, m, u, ldu, c, 1)
	case n > 0 && m > 0:
		lib.Dtrmm(blas.Right, blas.Lower, t, blas.NonUnit, n, m, 1, u, ldu, c, ldc)
	}
}

// SolveTriTrans replaces A by A·L⁻ᵀ for a lower triangular L.
func SolveTriTrans(n, m int, l []float64, ldl int, a []float64, lda int) {
	switch {
	case n == 1:
		lib.Dtrsv(blas.Lower, blas.NoTrans, blas.NonUnit, m, l, ldl, a, 1)
	case n > 0 && m > 0:
		lib.Dtrsm(blas.Right, blas.Lower, blas.Trans, blas.NonUnit, n, m, 1, l, ldl, a, lda)
	}
}

// SolveTri replaces A by A·L⁻¹ for a lower triangular L.
func SolveTri(n, m int, l []float64, ldl int, a []float64, lda int) {
	switch {
	case n == 1:
		lib.Dtrsv(blas.Lower, blas.Trans, blas.NonUnit, m, l, ldl, a, 1)
	case n > 0 && m > 0:
		lib.Dtrsm(blas.Right, blas.Lower, blas.NoTrans, blas.NonUnit, n, m, 1, l, ldl, a, lda)
	}
}

// Cholesky replaces the lower triangle of A by its Cholesky factor.
func Cholesky(n int, a []float64, lda int) bool { return n == 0 || factor(n, a, lda) }

// InvertTri replaces the lower triangular L by its inverse.
func InvertTri(n int, l []float64, ldl int) {
	if n > 0 {
		lapack64.Trtri(blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: n, Data: l, Stride: ldl})
	}
}

// Dot returns Σ xᵢyᵢ over len(x) elements.
func Dot(x, y []float64) float64 { return lib.Ddot(len(x), x, 1, y, 1) }

// Axpy adds alpha·x to y over len(x) elements.
func Axpy(alpha float64, x, y []float64) { lib.Daxpy(len(x), alpha, x, 1, y, 1) }

// Gemv computes y = alpha·op(A)·x + beta·y for A m×n.
func Gemv(trans bool, m, n int, alpha float64, a []float64, lda int, x []float64, beta float64, y []float64) {
	if m > 0 && n > 0 {
		lib.Dgemv(op(trans), m, n, alpha, a, lda, x, 1, beta, y, 1)
	}
}
