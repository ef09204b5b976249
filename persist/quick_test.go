//go:build !slow

package persist

// stride is the distance of the steps that tests let fail, or kill the store at. The
// build tag slow tests every step.
const stride = 5
