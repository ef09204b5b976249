// Package doctor examines a configuration, the machine and the broker before a
// daemon runs. It serves `edge doctor` and `edge check`.
//
//   - CheckFiles and Describe read files alone: they are `edge check`.
//   - Examine makes a diagnosis (package diagnosis): findings with grades, measured
//     values and advice.
//   - The checks: access rights (examine.go), secrets, certificates and state
//     (files.go), file system and free space (filesystem.go), disk endurance with a
//     scratch store (endurance.go), kernel, power and clock (systemchecks.go), memory
//     (footprint.go) against the limits of machine, control groups and systemd unit
//     (memory.go, unit.go), speed of a model (speed.go) and of a stage
//     (stagespeed.go). Those of the broker are package probe.
//   - host reads the machine from files, so that tests can replace them.
package doctor
