// Package train fits the model to a fixed set of labelled samples over many passes,
// by stochastic expectation propagation with tied sites, or by expectation
// propagation with sites of each sample: for its pairs of classes, for their product, or
// for the joint probability of the label (sites.go).
//
// A Trainer is made by New from the configuration of package online, a Config of the
// training, and Samples. Step learns one minibatch until Done; Predict and Score use
// the result; Learner returns an online.Learner that carries on from it. AppendBinary
// and Restore carry an interrupted training on, byte for byte.
//
// Symbols: N samples, C classes, M inducing points, D features, n samples of a
// minibatch.
//
// Source: Villacampa-Calvo & Hernández-Lobato (ICML 2017), Section 3.
package train
