// Package dense holds the few dense kernels that the posterior and its update
// spend their time in. Every matrix is row-major in a []float64 with a leading
// dimension; every function works in place or into caller-owned memory, does
// not allocate and does not start a goroutine.
package dense

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
	lapackgonum "gonum.org/v1/gonum/lapack/gonum"
)

var (
	impl gonum.Implementation
	lap  lapackgonum.Implementation
)

func op(t bool) blas.Transpose {
	if t {
		return blas.Trans
	}
	return blas.NoTrans
}

// Gemm computes C = alpha·op(A)·op(B) + beta·C.
//
//	op(A) m×k, op(B) k×n, C m×n; op(X) = Xᵀ where trans is true
func Gemm(transA, transB bool, m, n, k int, alpha float64, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int) {
	if m == 0 || n == 0 {
		return
	}
	impl.Dgemm(op(transA), op(transB), m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
}

// WeightedGram adds Aᵀ·diag(s)·A to the lower triangle of C; the strict upper
// triangle is left alone.
//
//	a  n×m
//	s  n weights, one every ss elements
//	c  m×m
func WeightedGram(n, m int, s []float64, ss int, a []float64, lda int, c []float64, ldc int) {
	for i := range n {
		w := s[i*ss]
		if w == 0 {
			continue
		}
		row := a[i*lda : i*lda+m]
		for j, x := range row {
			impl.Daxpy(j+1, w*x, row, 1, c[j*ldc:], 1)
		}
	}
}

// MulTriTrans computes C = A·Uᵀ for a lower triangular U: row i of C is U·aᵢ.
//
//	a n×m, u m×m lower (its strict upper triangle is not read), c n×m, not overlapping a
func MulTriTrans(n, m int, a []float64, lda int, u []float64, ldu int, c []float64, ldc int) {
	for i := range n {
		copy(c[i*ldc:i*ldc+m], a[i*lda:i*lda+m])
	}
	if n > 0 {
		impl.Dtrmm(blas.Right, blas.Lower, blas.Trans, blas.NonUnit, n, m, 1, u, ldu, c, ldc)
	}
}

// MulTri computes C = A·U for a lower triangular U: row i of C is Uᵀ·aᵢ.
//
//	a n×m, u m×m lower (its strict upper triangle is not read), c n×m, not overlapping a
func MulTri(n, m int, a []float64, lda int, u []float64, ldu int, c []float64, ldc int) {
	for i := range n {
		copy(c[i*ldc:i*ldc+m], a[i*lda:i*lda+m])
	}
	if n > 0 {
		impl.Dtrmm(blas.Right, blas.Lower, blas.NoTrans, blas.NonUnit, n, m, 1, u, ldu, c, ldc)
	}
}

// SolveTriTrans replaces A by A·L⁻ᵀ for a lower triangular L: row i becomes L⁻¹·aᵢ.
//
//	a n×m, l m×m lower (its strict upper triangle is not read)
func SolveTriTrans(n, m int, l []float64, ldl int, a []float64, lda int) {
	if n > 0 {
		impl.Dtrsm(blas.Right, blas.Lower, blas.Trans, blas.NonUnit, n, m, 1, l, ldl, a, lda)
	}
}

// SolveTri replaces A by A·L⁻¹ for a lower triangular L: row i becomes L⁻ᵀ·aᵢ.
//
//	a n×m, l m×m lower (its strict upper triangle is not read)
func SolveTri(n, m int, l []float64, ldl int, a []float64, lda int) {
	if n > 0 {
		impl.Dtrsm(blas.Right, blas.Lower, blas.NoTrans, blas.NonUnit, n, m, 1, l, ldl, a, lda)
	}
}

// Cholesky replaces the lower triangle of A by its Cholesky factor, A = L·Lᵀ.
// It reports false, with A spoilt, if A is not positive definite or not
// finite. The strict upper triangle is neither read nor written.
func Cholesky(n int, a []float64, lda int) bool {
	if n == 0 {
		return true
	}
	return lap.Dpotrf(blas.Lower, n, a, lda)
}

// InvertTri replaces the lower triangular L by its inverse, which is lower
// triangular. The diagonal must not be zero. The strict upper triangle is
// neither read nor written.
func InvertTri(n int, l []float64, ldl int) {
	if n > 0 {
		lap.Dtrtri(blas.Lower, blas.NonUnit, n, l, ldl)
	}
}

// Dot returns Σ xᵢyᵢ over len(x) elements.
func Dot(x, y []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	return impl.Ddot(len(x), x, 1, y, 1)
}

// Axpy adds alpha·x to y over len(x) elements.
func Axpy(alpha float64, x, y []float64) {
	if len(x) > 0 {
		impl.Daxpy(len(x), alpha, x, 1, y, 1)
	}
}

// Gemv computes y = alpha·op(A)·x + beta·y for A m×n.
func Gemv(trans bool, m, n int, alpha float64, a []float64, lda int, x []float64, beta float64, y []float64) {
	if m == 0 || n == 0 {
		return
	}
	impl.Dgemv(op(trans), m, n, alpha, a, lda, x, 1, beta, y, 1)
}

// Exp stores e^xᵢ in dst; dst may be x.
func Exp(dst, x []float64) {
	for i, v := range x {
		dst[i] = math.Exp(v)
	}
}
