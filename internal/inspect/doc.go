// Package inspect reads state files for people. It serves `edge inspect` and
// `edge verify`.
//
//   - File reads a state file without its daemon and returns a Report: for each
//     model its scores, classes, relevance, sizes, checkpoints and journal. With a
//     configuration the records after the newest checkpoint are learnt first.
//   - NewVerification describes the outcome of persist's check of a file.
//
// Both have a Print method, and fields that are the JSON of the commands. The
// configuration of a model comes as data from package statefile.
package inspect
