// Edge-lab is the laboratory of edge: the experiments, comparisons and figures
// that its documents show and a device does not need.
//
//	eval   every experiment on data files: drift, noise and missing features made
//	       at will, splits, questions, soft-max regression beside, figures
//	train  offline training with principal components or shifted images, figures
//	paper  the batch experiments of the paper behind the model
//	plot   figures of the reports that edge prints as JSON
//	cost   the figure of the cost of a step and a prediction, from benchmarks
//
// Read main.go, then one file for each command.
package main
