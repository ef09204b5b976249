// Package openblas serves gonum's blas64 by OpenBLAS, to measure against, when it
// is built with -tags openblas; else it is empty. It is the only one that needs a
// C compiler, and no program has it.
package openblas
