//go:build !race

package harness

// RaceDetector reports whether tests and program are built with the race detector.
const RaceDetector = false
