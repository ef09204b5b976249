//go:build slow

package persist

// stride: with the build tag slow every step of a store's life fails, and is
// the last one.
const stride = 1
