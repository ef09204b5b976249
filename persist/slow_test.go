//go:build slow

package persist

// stride is the distance of the steps that tests let fail, or kill the store at:
// every step, with the build tag slow.
const stride = 1
