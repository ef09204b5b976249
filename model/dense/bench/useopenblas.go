//go:build openblas

package dense

import (
	"gonum.org/v1/gonum/blas/blas64"

	"edge/model/dense/bench/openblas"
)

// The exponential and the normal distribution remain those of edge/model/dense.
func init() {
	openblas.Use()
	lib, factor = blas64.Implementation(), openblas.Cholesky
}
