//go:build blas && openblas

package dense

import (
	"gonum.org/v1/gonum/blas/blas64"

	"edge/model/dense/openblas"
)

// The exponential and the normal distribution are this package's own.
func init() {
	openblas.Use()
	lib, factor = blas64.Implementation(), openblas.Cholesky
}
