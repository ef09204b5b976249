// Package conformal publishes the uncertainty of predictions: whether to abstain,
// and prediction sets that hold the label as often as configured, whatever the
// stream does.
//
// The set of a sample holds the most probable classes, as long as their nonconformity
// score, the mass of the classes before and a random part of their own, is at most a
// threshold. A Threshold follows the labels that a learner learns, after each
// minibatch; a CoverageController corrects it for sets that are published before the
// labels before them are known. Uncertainty is an immutable copy of the rules at one
// moment, and PredictionMeta the part of them that is kept with one prediction until
// its label comes.
//
// References: Romano, Sesia & Candès, "Classification with valid and adaptive
// coverage" (NeurIPS 2020); Gibbs & Candès, "Adaptive conformal inference under
// distribution shift" (NeurIPS 2021); Angelopoulos, Candès & Tibshirani, "Conformal PID control
// for time series prediction" (NeurIPS 2023).
package conformal
