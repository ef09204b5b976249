// Edge-lab is the laboratory of edge: the experiments, comparisons and figures
// that its documents show and a device does not need.
//
//	eval   experiments on data files: artificial drift, label noise and missing
//	       features, splits, active learning, soft-max regression for comparison,
//	       figures
//	train  offline training with principal components or shifted images, figures
//	paper  the batch experiments of the paper behind the model
//	plot   figures of the reports that edge prints as JSON
//	cost   the figure of the cost of a step and a prediction, from benchmarks
//
// Read main.go, then one file for each command.
package main
