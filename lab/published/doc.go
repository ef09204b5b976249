// Package published runs the experiments of Villacampa-Calvo & Hernández-Lobato, "Scalable
// Multi-Class Gaussian Process Classification using Expectation Propagation" (ICML 2017), on
// other splits, and where the data are missing on other data.
//
//	figures.go   Figure: a published figure, read from a file
//	tables.go    Tables: tables 2 and 3, error and nll on eight small sets
//	print.go     the tables as text
//	recorder.go  Recorder, Curve: scores over the processor time of a training
//	schedules.go figure 1: log evidence over time in three schedules of EP
//	course.go    figures 4, 5 and 7: scores over time, in batches and in minibatches
//	plane.go     figure 3: decision boundaries and inducing points in two dimensions
//
// An experiment returns numbers; the command draws them.
package published
