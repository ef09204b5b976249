//go:build slow

package main

// slow reports that the long tests run too, and the others at full length.
const slow = true
