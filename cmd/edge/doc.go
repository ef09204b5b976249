// Command edge classifies MQTT sensor streams on small machines with a sparse
// multi-class Gaussian process that it trains online, and publishes the class
// probabilities.
//
// This package is the commands, one file for each or for a few that belong together:
// flags, one call into a package below, printing. main.go has the root command;
// cmd/internal/cli has the flags and the error handling that the commands share with
// edge-lab.
//
//	run             internal/daemon, which wires config, persist, online and stream
//	demo            internal/demo: broker, sensors and daemon in one process
//	check, doctor   internal/doctor
//	config          internal/config, internal/propose
//	request         internal/broker
//	fleet           internal/fleetctl, and internal/broker to ask a daemon
//	top             internal/top
//	replay          internal/replay
//	eval, train     internal/eval, with internal/report for the scores
//	predict         internal/predict
//	windows         internal/eval
//	inspect, verify internal/inspect
//	backup, restore persist
//	reset           persist
//	version         internal/process
//
// ARCHITECTURE.md has the map of all packages.
package main
