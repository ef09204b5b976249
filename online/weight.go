package online

import "slices"

// Weighting says how classes are weighed.
type Weighting string

const (
	// Unweighted counts every sample once.
	Unweighted Weighting = "none"
	// Balanced counts the samples of rare classes for more, so that all classes
	// together count for as much.
	Balanced Weighting = "balanced"
)

// ClassWeights says how much a sample of each class counts.
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
// with n_k of the N samples learnt so far; 1 on average.
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
		c := float64(len(l.names))
		w *= min(l.cfg.ClassWeights.Max, (float64(l.view.N)+c)/(c*(float64(n)+1)))
	}
	return min(w, MaxWeight)
}

func ones(n int) []float64 { return slices.Repeat([]float64{1}, n) }

// weights are those of all samples that are kept one by one.
func (l *Learner) weights() [][]float64 { return [][]float64{l.bufW, l.pendW, l.winW} }

// encodeWeights appends them, unless all are 1.
func (l *Learner) encodeWeights(e *encoder) {
	plain := true
	for _, w := range l.weights() {
		plain = plain && !slices.ContainsFunc(w, func(v float64) bool { return v != 1 })
	}
	if plain {
		return
	}
	for _, w := range l.weights() {
		e.floats(w)
	}
}

func (l *Learner) decodeWeights(d *decoder) {
	for _, w := range l.weights() {
		d.fill(w, "weights")
		for i, v := range w {
			if !(v > 0 && v <= MaxWeight) {
				d.fail("a weight is out of range")
				w[i] = 1
			}
		}
	}
}
