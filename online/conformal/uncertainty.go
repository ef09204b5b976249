package conformal

import (
	"math"
	"slices"

	"edge/online/drift"
	"edge/online/score"
)

// Abstain is the rule for predictions that should not be relied on.
type Abstain struct {
	// NoveltyAbove is the fraction of the prior variance above which a prediction
	// abstains: no similar sample was learnt. Default 1: never; range 0 to 1.
	NoveltyAbove float64 `yaml:"novelty_above"`
	// ConfidenceBelow is the probability of the most probable class below which a
	// prediction abstains. Default 0: never; range 0 to 1.
	ConfidenceBelow float64 `yaml:"confidence_below"`
}

// enabled reports whether the rule can ever apply.
func (a Abstain) enabled() bool { return a.NoveltyAbove < 1 || a.ConfidenceBelow > 0 }

// Config configures prediction sets.
type Config struct {
	// Coverage is the fraction of sets that should hold the label, in the long
	// run and whatever the stream does. Default 0.9; range 0.5 to 0.999, 0: no sets.
	Coverage float64 `yaml:"coverage"`
}

// Uncertainty holds the rules by which predictions are published with their
// uncertainty. It is immutable; any goroutine may use it.
type Uncertainty struct {
	Abstain   Abstain
	Coverage  float64     // target of the sets; 0: no sets
	Threshold float64     // largest nonconformity score of a class in the set
	Quantile  float64     // the quantile in Threshold; the rest is the integral term
	Drift     drift.Level // of the stream
}

// PredictionMeta is published with the probabilities of a prediction, and kept
// until its label comes.
type PredictionMeta struct {
	Ruled, Abstained bool    // a rule of abstention was in force; it applied
	Sets             bool    // a prediction set was published
	Threshold        float64 // of the set
}

// Meta returns the metadata of a prediction.
func (u *Uncertainty) Meta(probs []float64, novelty float64) PredictionMeta {
	a := u.Abstain
	ruled := a.enabled()
	return PredictionMeta{
		Ruled: ruled, Abstained: ruled && (novelty > a.NoveltyAbove || len(probs) == 0 || slices.Max(probs) < a.ConfidenceBelow),
		Sets: u.Coverage > 0, Threshold: u.Threshold,
	}
}

// AppendSet appends the prediction set of x, given its probabilities: classes,
// the most probable first.
func (u *Uncertainty) AppendSet(dst []int, probs, x []float64) []int {
	noise := tieNoise(x)
	first := len(dst)
	for k, p := range probs {
		if nonconformity(p)+noise > u.Threshold {
			continue
		}
		at := len(dst)
		for dst = append(dst, k); at > first && probs[dst[at-1]] < p; at-- {
			dst[at], dst[at-1] = dst[at-1], dst[at]
		}
	}
	return dst
}

// Holds reports whether the set that was published with a prediction of x holds a
// class; a class beyond the probabilities is not in it.
func (m *PredictionMeta) Holds(probs, x []float64, class int) bool {
	return class < len(probs) && nonconformity(probs[class])+tieNoise(x) <= m.Threshold
}

// Size is the number of classes in the set that was published with a prediction of x.
func (m *PredictionMeta) Size(probs, x []float64) int {
	return setSize(m.Threshold, probs, tieNoise(x))
}

// Decide returns the decision that was published with a prediction of x, now that
// its label is known, and the nonconformity score of the label, for Threshold.Learn.
// A class beyond the probabilities has probability 0.
func (m *PredictionMeta) Decide(probs, x []float64, class int) (d score.Decision, nonconforming float64) {
	noise := tieNoise(x)
	nonconforming = nonconformity(0) + noise
	if class < len(probs) {
		nonconforming = nonconformity(probs[class]) + noise
	}
	d = score.Decision{Ruled: m.Ruled, Abstained: m.Abstained, Sets: m.Sets}
	if m.Sets {
		d.Size = setSize(m.Threshold, probs, noise)
		d.Holds = class < len(probs) && nonconforming <= m.Threshold
	}
	return d, nonconforming
}

// setSize is the length of the set that AppendSet would append.
func setSize(threshold float64, probs []float64, noise float64) (size int) {
	for _, p := range probs {
		if nonconformity(p)+noise <= threshold {
			size++
		}
	}
	return size
}

const (
	minOdds    = 1e-9 // smallest distance of a probability from 0 and from 1
	noiseWidth = 1e-3 // of the tie-breaking noise
)

// nonconformity is the score of a class of probability p: its log odds against.
func nonconformity(p float64) float64 {
	p = min(max(p, minOdds), 1-minOdds)
	return math.Log((1 - p) / p)
}

// tieNoise returns a number in [0, noiseWidth) that is uniform over different x:
// it breaks the ties between equal predictions, as before the model is built. It is
// a function of x alone, so that a replay repeats it.
func tieNoise(x []float64) float64 {
	h := uint64(14695981039346656037)
	for _, v := range x {
		h = (h ^ math.Float64bits(v)) * 1099511628211
		h ^= h >> 29
	}
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 32
	return noiseWidth * float64(h>>11) / (1 << 53)
}
