//go:build !slow

package brokertest

// Slow reports that the long tests run too, and the others at full length. It
// needs the build tag slow.
const Slow = false
