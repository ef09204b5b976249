package conformal

import (
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
	// NeverEmpty puts the most probable class into a set that would have none. The
	// coverage is then the target or the fraction of right predictions, whichever is
	// larger. Default false.
	NeverEmpty bool `yaml:"never_empty"`
}

// Uncertainty holds the rules by which predictions are published with their
// uncertainty. It is immutable; any goroutine may use it.
type Uncertainty struct {
	Abstain    Abstain
	Coverage   float64     // target of the sets; 0: no sets
	Threshold  float64     // largest nonconformity score of a class in the set
	Quantile   float64     // the quantile in Threshold; the rest is the integral term
	NeverEmpty bool        // the most probable class is in the set, whatever its score
	Untried    bool        // no label has moved the threshold yet
	Drift      drift.Level // of the stream
}

// PredictionMeta is published with the probabilities of a prediction, and kept
// until its label comes.
type PredictionMeta struct {
	Ruled, Abstained bool    // a rule of abstention was in force; it applied
	Sets             bool    // a prediction set was published
	Threshold        float64 // of the set
	NeverEmpty       bool    // of the set
	Last             int     // class of the last label that was known, counted from 1; 0: none
	Version          uint64  // labels that the model had learnt; 0: not known, or none
}

// Meta returns the metadata of a prediction with the probabilities of C classes and a novelty of
// 0 to 1.
func (u *Uncertainty) Meta(probs []float64, novelty float64) PredictionMeta {
	a := u.Abstain
	ruled := a.enabled()
	return PredictionMeta{
		Ruled: ruled, Abstained: ruled && (novelty > a.NoveltyAbove || len(probs) == 0 || slices.Max(probs) < a.ConfidenceBelow),
		Sets: u.Coverage > 0, Threshold: u.Threshold, NeverEmpty: u.NeverEmpty,
	}
}

// AppendSet appends the prediction set of x to dst: classes, the most probable first. Sets of a
// larger threshold begin with it.
//
//	probs  C  of the prediction
//	x      D  raw features, which give the dither
func (u *Uncertainty) AppendSet(dst []int, probs, x []float64) []int {
	for r := newRanking(probs, x); r.nextOfSet(u.Threshold, u.NeverEmpty); {
		dst = append(dst, r.class)
	}
	return dst
}

// Holds reports whether the set that was published with a prediction of x holds a
// class; a class beyond the probabilities is not in it. Shapes as of Uncertainty.AppendSet.
func (m *PredictionMeta) Holds(probs, x []float64, class int) bool {
	for r := newRanking(probs, x); r.nextOfSet(m.Threshold, m.NeverEmpty); {
		if r.class == class {
			return true
		}
	}
	return false
}

// Size is the number of classes in the set that was published with a prediction of x. Shapes as
// of Uncertainty.AppendSet.
func (m *PredictionMeta) Size(probs, x []float64) (size int) {
	for r := newRanking(probs, x); r.nextOfSet(m.Threshold, m.NeverEmpty); {
		size++
	}
	return size
}

// Decide returns the decision that was published with a prediction of x, now that the class of
// its label is known. Shapes as of Uncertainty.AppendSet.
func (m *PredictionMeta) Decide(probs, x []float64, class int) score.Decision {
	d := score.Decision{Ruled: m.Ruled, Abstained: m.Abstained, Sets: m.Sets}
	if m.Sets {
		d.Size, d.Holds = m.Size(probs, x), m.Holds(probs, x, class)
	}
	return d
}
