// Package doctor examines what a daemon with a configuration depends on: rights of
// files, disk, clock, memory, speed and the broker.
//
// Examine makes a Diagnosis, a list of Findings with a grade and advice. Each area
// is a file: disk.go (file system, space, wear of flash), host.go (kernel, clock,
// power), footprint.go (memory), speed.go (a step and a prediction), trial.go and
// delivery.go (the broker, by trying). Describe and Obstacles are edge check.
package doctor
