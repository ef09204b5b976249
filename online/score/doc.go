// Package score judges probabilistic predictions of a class: prequential
// (test-then-train) or held out.
//
// A Judge counts each prediction with the label that it should have had, and
// returns Scores: error, log loss, Brier score, expected calibration error, macro
// F1, balanced accuracy, Cohen's kappa, two baselines, abstentions and prediction
// sets, over all samples and over the last 500. docs/reference/scores.md has every formula.
//
// Memory is O(C²) for C classes, plus the window.
package score
