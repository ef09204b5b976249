//go:build !slow

package brokertest

// Slow reports that the long tests run and the others have full length. It needs
// the build tag slow.
const Slow = false
