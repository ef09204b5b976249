// Package dense holds the few dense kernels that the posterior and its update
// spend their time in. Every matrix is row-major in a []float64 with a leading
// dimension; every function works in place or into caller-owned memory, does
// not allocate and does not start a goroutine.
package dense
