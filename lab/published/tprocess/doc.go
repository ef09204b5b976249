// Package tprocess repeats the published experiments with Student-t process classifiers, with
// the sound bounds of lab/studentt beside the published objectives.
//
//	tables.go      60/40 splits of data sets, full processes or with inducing points
//	figures.go     the published figures of the same sets, from a file
//	simulation.go  labels of a smooth function, a few of them flipped
//
// All of them have one lengthscale for all features, and start from amplitude 1.
//
// Source: G. Roetzer, "Efficient and Scalable Inference for Generalized Student-t Process
// Models", Trinity College Dublin 2020, Sections 5.6, 6.4 and 7, tables C.1 to C.8.
package tprocess
