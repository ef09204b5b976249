//go:build !race

package main

// raceDetector says whether the tests are built with the race detector.
const raceDetector = false
