// Command edge classifies MQTT sensor streams on small machines with a sparse
// multi-class Gaussian process that it trains online, and publishes the class
// probabilities.
//
// This package is the wiring: main.go has the commands' frame and the exit
// codes, config.go the YAML file, daemon.go what `run` and `demo` have in
// common; every command has its own file. What is computed is in package
// model, how it is learnt in online, how it is kept in persist, and how it
// meets MQTT in stream.
package main
