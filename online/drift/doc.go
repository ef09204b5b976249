// Package drift detects changes of a labelled stream: a rise of a model's log
// loss, error or novelty.
//
// A Monitor feeds one signal to a detector, ADWIN or Page-Hinkley, and keeps a
// Level: steady, warning or drifted. It reports each change of the level once, and
// stays silent for a cooldown. With the action "forget" it bounds the forgetting
// horizons for a while, with "reseed" it requests new inducing inputs.
//
// References: Bifet & Gavaldà, "Learning from time-changing data with adaptive
// windowing" (SDM 2007); Page, "Continuous inspection schemes" (Biometrika 1954);
// Gama et al., "A survey on concept drift adaptation" (2014).
package drift
