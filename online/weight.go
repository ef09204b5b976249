package online

import "math"

// Weighting is the rule by which classes are weighted.
type Weighting string

const (
	// Unweighted counts every sample once.
	Unweighted Weighting = "none"
	// Balanced counts the samples of rare classes for more, so that all classes
	// together count for as much.
	Balanced Weighting = "balanced"
)

// ClassWeights configures the weight of a sample of each class.
type ClassWeights struct {
	// Mode is none or balanced. Balanced finds more of the rare classes and
	// spoils the probabilities: they become those of a stream on which all classes
	// are as frequent. Default none.
	Mode Weighting `yaml:"mode"`
	// Max bounds the weight of a class. Default 10, range 1 to 100.
	Max float64 `yaml:"max"`
}

// weightOf is the weight of a sample of class k: its own, times that of its
// class,
//
//	w_k = min(max, (N + C)/(C·(n_k + 1)))
//
// with n_k of the N samples of the present classes learnt up to now; 1 on average.
func (l *Learner) weightOf(ev *Event, k int) float64 {
	w := ev.Weight
	if w == 0 {
		w = 1
	}
	if l.cfg.ClassWeights.Mode == Balanced {
		var n uint64
		if k < len(l.view.Counts) {
			n = l.view.Counts[k]
		}
		var all uint64 // without those of removed classes
		for _, of := range l.view.Counts {
			all += of
		}
		c := float64(len(l.classes.names) - len(l.classes.imported))
		w *= min(l.cfg.ClassWeights.Max, (float64(all)+c)/(c*(float64(n)+1)))
	}
	return min(max(w, math.SmallestNonzeroFloat64), MaxWeight) // the product may be rounded to 0
}
