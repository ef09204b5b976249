// Edge-lab is the laboratory of edge: the experiments, comparisons and figures
// that its documents show and a device does not need.
//
//	eval       experiments on data files: artificial drift, label noise and missing
//	           features, splits, active learning, soft-max regression for comparison,
//	           figures
//	train      offline training with principal components or shifted images, figures
//	compare    the methods of the literature on the same splits
//	published  published experiments, repeated: those of the paper behind the model, and
//	           of Student-t processes
//	fleet      learners that exchange what they have learnt, without a broker
//	plot       figures of the reports that edge prints as JSON
//	cost       the figure of the cost of a step and a prediction, from benchmarks
//	generate   artificial streams whose best prediction is known
//	rows       the rows of a file in the order of eval, for other learners
//
// Read main.go, then one file for each command.
package main
