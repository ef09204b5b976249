// Package dense replaces the products, factors and substitutions of
// edge/model/dense by those of a BLAS: gonum's, or OpenBLAS with -tags openblas, which
// needs a C compiler. It exists to be measured against.
//
// docs/results/steps.sh builds the benchmarks of package online with these files in
// the place of dense.go and triangle.go (go test -overlay). They are a module of their
// own, so that edge does not need the C library; no program contains them.
package dense
