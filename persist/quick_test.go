//go:build !slow

package persist

// stride: without the build tag slow every fifth step of a store's life fails,
// and is the last one.
const stride = 5
