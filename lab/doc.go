// Package lab holds the parts that the other approximations of edge's model share: the data, the
// sparse posterior, sites and their gradients, the factors of an observation and the
// optimisers. Packages below it are one method of the literature each:
//
//	ep        expectation propagation with a site for each pair of classes, in three schedules
//	tied      stochastic expectation propagation: tied sites, pairs or robust, and its evidence
//	rep       expectation propagation on the robust likelihood with the exact probability
//	gfitc     expectation propagation on the marginal prior (generalised FITC)
//	vi        variational inference: L-BFGS, Adam, natural gradients
//	fullep    expectation propagation without inducing points, classes correlated
//	binary    one latent function for two classes: Laplace, EP, VI
//	studentt  Student-t processes: bounds, EP, and the published objectives
//	offline   edge's offline training
//	linear    soft-max regression, the simplest alternative
//
// and others compare and check them:
//
//	compare             all methods on the same splits
//	published           the experiments of the paper behind the model
//	published/tprocess  the published experiments with Student-t processes
//	federated           learners that exchange what they have learnt, without a broker
//	exact               log evidences of tiny problems by orthant probabilities
//	labtest             what the tests of these packages share
//
// A method is a function from a Problem to a Classifier (method.go). Another one is a package
// below lab, built on the parts here, and a line in compare.Methods.
//
// All methods have the model of package model, from the same Problem:
//
//	f~_k(x) = f_k(x) + N(0, v0),  y = argmax_k f~_k(x)
//
// in whitened coordinates: e_k ~ N(0, I), f_k = w_k(x)·e_k with the residual variance and
// noise q_k(x). They differ in the factor of an observation, and in how it is made Gaussian.
//
//	data.go          Data, Start, AtRows: rows, labels and first parameters
//	covariance.go    covariances of rows, for the methods without inducing points
//	sparse.go        Sparse: the posterior of e_k from sites, one class after the other
//	gaussians.go     Gaussians: variational posteriors, their derivatives and coordinates
//	gradient.go      from derivatives of the latent marginals to those of the parameters
//	site.go          cavity, site and normaliser of one scalar
//	pair.go          factors of all pairs of classes of an observation
//	probabilities.go probabilities of all classes, by quadrature
//	likelihood.go    Likelihood: Joint, built on it, and Product, of the learner
//	classfactors.go  factors of all classes of an observation, with label noise
//	optimise.go      sign rule, Adam, L-BFGS
//	learn.go         Converge; Alternate, Maximise, Minibatches: learning the parameters with them
//	method.go        Problem, Method, Classifier
//
// Symbols: N observations i, C classes k, M inducing points, D features, G kernels (1 or C).
// Tables are N×C, with a row for each observation.
//
// References: Villacampa-Calvo & Hernández-Lobato, "Scalable Multi-Class Gaussian Process
// Classification using Expectation Propagation", ICML 2017, eq. 10 to 12 and the
// supplement; Hernández-Lobato, Hernández-Lobato & Dupont, "Robust Multi-Class Gaussian
// Process Classification", NIPS 2011; Naish-Guzman & Holden, "The Generalized FITC
// Approximation", NIPS 2007; Hensman, Matthews & Ghahramani, "Scalable Variational
// Gaussian Process Classification", AISTATS 2015.
package lab
