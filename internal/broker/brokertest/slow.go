//go:build slow

package brokertest

// Slow reports that the long tests run and the others have full length.
const Slow = true
