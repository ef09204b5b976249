// Package model is the mathematics of one frozen posterior of a sparse
// multi-class Gaussian-process classifier.
//
// C latent functions f_k ~ GP(0, c) share one ARD kernel and M inducing inputs
// Z, or have a kernel and inducing inputs each; the label is the class whose
// noisy latent function is largest (FITC). Everything is kept in whitened
// coordinates: with K = c(Z,Z) = L·Lᵀ,
//
//	w(x) = L⁻¹ c(Z,x)                 M     whitened features of x
//	q(x) = s − |w|² + v0              1     variance that Z does not explain, plus noise
//	f_k(x) ~ N(w·m_k, q + |U_k·w|²)         U_k = chol(I + Σ site precisions)⁻¹
//
// A Pool corrects the resulting probabilities: their sharpness, the order of the
// labels, and wrong labels.
//
// Posterior holds a frozen state, made of Params, Basis, Gaussian, Scale and Pool;
// PredictTo and Load with AnswerTo predict with a Workspace of the caller. Margin,
// Entropy and Workspace.BALD rate the worth of a label. Read posterior.go first, then
// predict.go, basis.go, pool.go and order.go; the matrix kernels are in package dense.
//
// Symbols: C classes, D features, M inducing points, n rows of a minibatch,
// s amplitude (variance), v0 noise variance, ℓ lengthscales. Matrices are
// row-major []float64.
//
// References: Villacampa-Calvo & Hernández-Lobato, "Scalable Multi-Class
// Gaussian Process Classification using Expectation Propagation", ICML 2017;
// Rasmussen & Williams, "Gaussian Processes for Machine Learning", 2006.
package model
