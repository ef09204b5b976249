//go:build !openblas

package dense

// gonum has no exponential of vectors: the functions are plain Go here.
func init() { vectorised = false }
