// Package dense holds the dense kernels in which the posterior and its update spend
// their time. Every matrix is row-major in a []float64 with a leading
// dimension; every function works in place or into caller-owned memory, does
// not allocate and does not start a goroutine. A slice that is too short for
// the shape panics with both; elements outside of the shape are neither read
// nor written. The same inputs give the same bits on every run.
//
//	dense.go, triangle.go  products; factors, inverses, substitution: blocks of
//	                       12 columns, on top of
//	kernel.go              the tile, the packing of panels, the substitution in
//	                       a block, in plain Go
//	kernel_*.s             the same for AVX2 with FMA (chosen when the program
//	                       starts) and NEON
//	exp.go, normal.go      the exponential and the normal distribution
//	vector_*.s             the same, four elements at a time
package dense
