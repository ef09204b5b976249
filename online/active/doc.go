// Package active selects the samples whose label is worth a request (active
// learning on a stream).
//
// A Selector decides about each sample at once, within a budget: a fraction of all
// samples, and requests an hour. A Strategy gives the score: margin, entropy, BALD,
// or random.
//
// References: Kirsch et al. (2023), "Stochastic Batch Acquisition"; Houlsby et al.
// (2011), "Bayesian Active Learning for Classification and Preference Learning";
// Žliobaitė et al. (2014), "Active Learning With Drifting Streaming Data".
package active
