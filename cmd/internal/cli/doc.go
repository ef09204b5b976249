// Package cli is shared by the commands of edge and edge-lab: execution with exit
// codes (cli.go), files that commands write (output.go), groups of flags for a broker
// (brokerflags.go), a data file (dataflags.go) and offline training (trainflags.go), and the
// command train (train.go).
package cli
