// Package statefile reads the learners that a state file holds, without changing
// it: Open opens a file that exists, and Recall restores one model from its
// checkpoint and, under a configuration, from the journal behind it.
package statefile
