// Package studentt is classification with a Student-t process: a Gaussian process whose
// amplitude is unknown,
//
//	s ~ IG(ν/2, ν/2),  f_k | s ~ GP(0, s c),  k = 1 … C
//
// in the whitened coordinates of package lab, e_k | s ~ N(0, s I). One s scales all classes,
// and never the noise, since a scale of both would change no label.
//
// The scale is a variable of the model. So bounds of the log evidence need only divergences
// of Gaussians and of inverse gammas, and predictions are mixtures over s:
//
//	Bound  free q(e): tied (the family of the published methods), non-centred, or a
//	       published objective, by L-BFGS
//	Grid   a Gaussian bound for each node of s: the tightest one, for few rows
//	EP     expectation propagation for each node of s
//
// Links are the logistic function of one latent, for two classes, and Φ of the differences
// of the latents of all pairs. The published objectives (VTP1, VTP2, SVTP2) replace the
// logarithm by log_t, separate two classes, and bound nothing.
//
//	scale.go    IG densities, nodes, divergence
//	rule.go     quadratures for normal and Student-t latents
//	link.go     expectations of the factors of all rows
//	family.go   tied and non-centred; relaxed.go: the published objectives
//	bound.go    Bound; logdet.go: log|K| for the published objectives
//	grid.go, ep.go, train.go
//
// Source: G. Roetzer, "Efficient and Scalable Inference for Generalized Student-t Process
// Models", Trinity College Dublin 2020; Shah, Wilson & Ghahramani, "Student-t Processes as
// Alternatives to Gaussian Processes", AISTATS 2014.
package studentt
