// Package sep approximates the posterior of a sparse multi-class Gaussian process on
// a stream by stochastic expectation propagation (SEP).
//
// A Bank holds the posterior under H forgetting horizons that share kernel, inducing
// inputs and window. The sites of all observations older than the window of R are
// tied: only their product is kept, as Σ s1·w·wᵀ (C×M×M) and Σ s2·w (C×M) in
// whitened coordinates, so that memory is O(H·C·M²), independent of the length of the
// stream. The R latest observations keep a site for each pair of their label with
// another class, as in expectation propagation, and are refined in a few steps.
//
// One step of Learn: sites of the new samples by assumed-density filtering; a parallel
// sweep that refines these and the sites of the steps just before (of the whole window
// while the model warms up), with the new sites included by Woodbury's identity; forget;
// absorb the points that leave the window; in every second step, and in all of them while
// the model warms up, one Adam step along the gradient of the evidence of both steps'
// samples, and projection of the absorbed sites on the new basis; one factorisation of
// each posterior. A large minibatch
// makes several such steps, each of samples spread over all of it; of few samples a
// rank-one update includes each (filter).
//
// Tasks of a step run on several cores (team); bits do not depend on their number.
//
// Save and Undo roll a failed step back. Site, Evidence, Projection, Adam and the
// feature scaling are exported for package train.
//
// Symbols: H horizons, C latent functions, M inducing points, D features, R window,
// n new samples; s1, s2 natural parameters of a site; a, v mean and variance of a
// cavity.
//
// References: as of package online.
package sep
