// Package forest learns a model.Forest from a stream: the partitions of its trees, and
// the weights of all leaves jointly.
//
// A Learner keeps a posterior's Pool.Stack.Forest up to date. For each label, in order:
//
//  1. the sample enters a ring of the latest ones, where the oldest leaves;
//  2. the weights of its leaf in each tree take a step down the gradient of the log
//     loss (step.go);
//  3. its leaf in each tree is split where that is due; a full tree joins two leaves that the
//     stream has left for it (split.go);
//  4. the weights take a step for one sample of the ring, drawn at random;
//  5. a tree is grown anew from the samples of the ring where that is due (renew.go): the more
//     labels there were, the more rarely.
//
// Beside the forests of a fleet's members a second set of weights takes the same steps by the
// error of the mean of all forests (tuned.go). The answers of the members are those that the
// prediction of a sample has computed, if these forests are still there (answercache.go).
//
// It begins with the first label, and the builds of the warm-up do not start it again:
// thresholds on raw features need no scaling.
//
// References: Geurts, Ernst & Wehenkel (2006), "Extremely randomized trees", for the
// random thresholds; Ren, Cao, Wei & Sun (2015), "Global refinement of random forest",
// for joint weights of the leaves; Duchi, Hazan & Singer (2011), "Adaptive subgradient
// methods", for the rates.
package forest
