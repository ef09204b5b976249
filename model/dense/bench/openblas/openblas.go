//go:build openblas

// Package openblas lets OpenBLAS, with one thread, serve gonum's blas64.
package openblas

// #cgo LDFLAGS: -lopenblas
// #include <cblas.h>
// void dpotrf_(char *uplo, int *n, double *a, int *lda, int *info);
// void openblas_set_num_threads(int);
import "C"

import (
	"unsafe"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/blas/gonum"
)

// openBLAS computes the operations of a step; the rest is gonum's.
type openBLAS struct{ gonum.Implementation }

// Use lets OpenBLAS, with one thread, serve blas64.
func Use() {
	C.openblas_set_num_threads(1)
	blas64.Use(openBLAS{})
}

// Cholesky replaces the lower triangle of A by its Cholesky factor; it reports
// false if A is not positive definite.
func Cholesky(n int, a []float64, lda int) bool {
	uplo, cn, ld, info := C.char('U'), C.int(n), C.int(lda), C.int(0) // a lower triangle by rows is an upper one by columns
	C.dpotrf_(&uplo, &cn, p(a), &ld, &info)
	return info == 0
}

func p(x []float64) *C.double { return (*C.double)(unsafe.Pointer(unsafe.SliceData(x))) }

func trans(t blas.Transpose) uint32 {
	if t == blas.NoTrans {
		return C.CblasNoTrans
	}
	return C.CblasTrans
}

func (openBLAS) Dgemm(tA, tB blas.Transpose, m, n, k int, alpha float64, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int) {
	C.cblas_dgemm(C.CblasRowMajor, trans(tA), trans(tB), C.int(m), C.int(n), C.int(k), C.double(alpha), p(a), C.int(lda), p(b), C.int(ldb), C.double(beta), p(c), C.int(ldc))
}

func (o openBLAS) Dtrmm(side blas.Side, uplo blas.Uplo, t blas.Transpose, diag blas.Diag, m, n int, alpha float64, a []float64, lda int, b []float64, ldb int) {
	if side != blas.Right || uplo != blas.Lower || diag != blas.NonUnit {
		o.Implementation.Dtrmm(side, uplo, t, diag, m, n, alpha, a, lda, b, ldb)
		return
	}
	C.cblas_dtrmm(C.CblasRowMajor, C.CblasRight, C.CblasLower, trans(t), C.CblasNonUnit, C.int(m), C.int(n), C.double(alpha), p(a), C.int(lda), p(b), C.int(ldb))
}

func (o openBLAS) Dtrsm(side blas.Side, uplo blas.Uplo, t blas.Transpose, diag blas.Diag, m, n int, alpha float64, a []float64, lda int, b []float64, ldb int) {
	if side != blas.Right || uplo != blas.Lower || diag != blas.NonUnit {
		o.Implementation.Dtrsm(side, uplo, t, diag, m, n, alpha, a, lda, b, ldb)
		return
	}
	C.cblas_dtrsm(C.CblasRowMajor, C.CblasRight, C.CblasLower, trans(t), C.CblasNonUnit, C.int(m), C.int(n), C.double(alpha), p(a), C.int(lda), p(b), C.int(ldb))
}

func (o openBLAS) Dtrmv(uplo blas.Uplo, t blas.Transpose, diag blas.Diag, n int, a []float64, lda int, x []float64, incX int) {
	if uplo != blas.Lower || diag != blas.NonUnit {
		o.Implementation.Dtrmv(uplo, t, diag, n, a, lda, x, incX)
		return
	}
	C.cblas_dtrmv(C.CblasRowMajor, C.CblasLower, trans(t), C.CblasNonUnit, C.int(n), p(a), C.int(lda), p(x), C.int(incX))
}

func (openBLAS) Dgemv(t blas.Transpose, m, n int, alpha float64, a []float64, lda int, x []float64, incX int, beta float64, y []float64, incY int) {
	C.cblas_dgemv(C.CblasRowMajor, trans(t), C.int(m), C.int(n), C.double(alpha), p(a), C.int(lda), p(x), C.int(incX), C.double(beta), p(y), C.int(incY))
}
