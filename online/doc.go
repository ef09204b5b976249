// Package online learns a model.Posterior from a stream, one minibatch at a
// time, by stochastic expectation propagation (SEP), and judges it before each
// sample is learnt.
//
// A Learner is made by NewLearner from a Config, learns from Events by Add, and
// answers by Predict, or by Posterior for any number of goroutines. AppendBinary and
// Restore carry it over a restart, byte for byte. A Loop owns a Learner in a
// goroutine of its own, with checkpoints; Replay learns a journal.
//
// The Learner is composed of parts that own their state and their encoding: the bank
// of posteriors (package sep), the forest (forest), the mixture of the answers of both
// (mixture), scores (score), drift detection (drift), prediction sets (conformal), the
// class registry, the warm-up buffer and the minibatch. Package active selects samples whose label is
// requested, train fits a fixed set in many passes, wire encodes.
//
// One minibatch: the horizons are weighted by their evidence; the bank takes a step,
// which is rolled back if it fails; the mixture, the regression and the forest learn.
// Before the warm-up is over the model is built from a buffer of raw observations,
// several times. Read learner.go first, then warmup.go, sep/step.go and sep/sweep.go.
//
// Symbols: H horizons, C classes, M inducing points, D features, R window, n new
// samples.
//
// References: Villacampa-Calvo & Hernández-Lobato (ICML 2017); Li, Hernández-
// Lobato & Turner, "Stochastic Expectation Propagation" (NIPS 2015); Bui, Nguyen
// & Turner, "Streaming Sparse Gaussian Process Approximations" (NIPS 2017).
package online
