// Package online learns a model.Posterior from a stream, one minibatch at a
// time, by stochastic expectation propagation (SEP), and judges it before each
// sample is learnt.
//
// The sites of all observations older than a window of R are tied: only their
// product is kept, as Σ s1·w·wᵀ (C×M×M) and Σ s2·w (C×M) in whitened
// coordinates, so that memory is O(H·C·M²) for H forgetting horizons however
// long the stream runs. The R latest observations keep a site each, s1 and s2
// per class, and are refined with every minibatch.
//
// One minibatch step: horizons' weights by their evidence; forget; absorb what
// leaves the window; two parallel sweeps over the window; one Adam step along
// the gradient of the new samples' evidence; projection of the absorbed sites
// on the new basis. A large minibatch makes several such steps, each of samples
// spread over all of it.
//
// What the horizons say is mixed by their evidence, and then corrected by a
// model.Pool: its members sharpen the answer or weigh it with the order in which
// labels follow each other, and they, too, are mixed by their evidence; beside
// them stands a model.Stack, which learns what each horizon, the order, the latest
// labels and a soft-max regression on the features should count.
//
// Symbols: H horizons, C classes seen, M inducing points, D features, R window,
// n new samples; s1, s2 natural parameters of a site; a, v mean and variance of
// a cavity.
//
// References: Villacampa-Calvo & Hernández-Lobato (ICML 2017); Li, Hernández-
// Lobato & Turner, "Stochastic Expectation Propagation" (NIPS 2015); Bui, Nguyen
// & Turner, "Streaming Sparse Gaussian Process Approximations" (NIPS 2017).
package online
