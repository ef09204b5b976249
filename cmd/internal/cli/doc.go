// Package cli is the command line that edge and edge-lab have in common: execution
// with exit codes, suggestions for misspelt words, and the flags that several
// commands share.
package cli
