// Package mixture combines the answers of several forgetting horizons, and corrects
// them by the order of the labels.
//
// A Mixture learns the parts of a model.Posterior that combine answers:
//
//   - Weights of the H horizons: a Bayesian mixture that forgets;
//   - Pool.Weights of the pool's members, logarithmic opinion pools that sharpen
//     the answer or weigh it with the chain of labels: another such mixture;
//   - Pool.Order: the chain of labels and the latest labels, when each label comes;
//   - Pool.Stack: two blends, whose exponents follow Newton's steps of a slow and of a
//     fast learner, in a fleet by the labels of all members as well, and a soft-max
//     regression on the features;
//   - Pool.Noise: how sure labels are at best, of which a part is wrong;
//   - Fleet.Own: the answer without a fleet, and its weight;
//   - Fleet.Exponent: how sure a fleet's answer for classes with few own labels may be.
//
// Every sample is judged first, and then learnt with its minibatch.
//
// References: Genest & Zidek (1986), "Combining probability distributions"; Wolpert
// (1992), "Stacked generalization"; van Erven & Koolen (2016), "MetaGrad: multiple
// learning rates in online learning"; Opper (1998), "A Bayesian approach to on-line
// learning".
package mixture
