package score

import (
	"encoding/json"
	"math"
)

// Scores are the scores of a model. Where they are prequential, each sample was
// judged by the prediction made before it was learnt.
type Scores struct {
	Figures
	Window  Figures    `json:"window"`    // the same over the last samples, 500 at most
	Classes []string   `json:"classes"`   //
	Matrix  [][]uint64 `json:"confusion"` // Matrix[label][predicted]

	Reliability []Bin `json:"reliability"` // the bins of ECE, by rising probability
}

// Figures are the scores of some predictions; all 0 or undefined if N is 0.
type Figures struct {
	N        uint64  `json:"n"`        // samples judged
	Error    float64 `json:"error"`    // fraction whose most probable class was wrong
	NLL      float64 `json:"nll"`      // mean negative log probability of the label, nats, probabilities clipped from below at 1e-6
	Brier    float64 `json:"brier"`    // mean squared distance of the probabilities from the label's indicator, 0 to 2
	ECE      float64 `json:"ece"`      // expected calibration error, 15 equal-width bins of the top probability
	MacroF1  float64 `json:"macro_f1"` // mean F1 of the classes that were seen
	Balanced Real    `json:"balanced_accuracy"`
	Kappa    Real    `json:"kappa"` // Cohen's

	Prior     Baseline     `json:"class_prior"`
	Last      Baseline     `json:"last_label"`
	Abstained *Abstentions `json:"abstention,omitempty"` // nil: no sample was judged under a rule
	Sets      *Coverage    `json:"sets,omitempty"`       // nil: no set was judged
	PerClass  []ClassScore `json:"per_class"`
}

// Baseline holds the scores, on the same samples, of one of two rules that do not
// use the features: the class prior, which predicts the frequencies of the labels
// up to now, (n_k + 1)/(n + C); and "same as last label", which gives the last label
// that was known when the prediction was made the probability
// r = (repeats + 1)/(labels + 2) and shares out the rest as the prior does.
type Baseline struct {
	N     uint64  `json:"n"` // fewer than the model's after an upgrade
	Error float64 `json:"error"`
	NLL   float64 `json:"nll"`
}

// MarshalJSON writes null for the scores of no sample.
func (b Baseline) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		N     uint64 `json:"n"`
		Error Real   `json:"error"`
		NLL   Real   `json:"nll"`
	}{b.N, Judged(b.N, b.Error), Judged(b.N, b.NLL)})
}

// Abstentions are the results of an abstention rule.
type Abstentions struct {
	N     uint64 `json:"n"`     // samples judged under a rule
	Kept  Real   `json:"kept"`  // fraction that was answered
	Error Real   `json:"error"` // of those
}

// Coverage holds the results of prediction sets.
type Coverage struct {
	N       uint64 `json:"n"`        // sets judged
	Covered Real   `json:"coverage"` // fraction that held the label
	Size    Real   `json:"size"`     // mean number of classes
	Empty   Real   `json:"empty"`    // fraction without any class
}

// ClassScore holds the scores of one class.
type ClassScore struct {
	Class      string `json:"class"`
	N          uint64 `json:"n"`          // labels
	Prevalence Real   `json:"prevalence"` // their fraction
	Precision  Real   `json:"precision"`  // fraction of the samples predicted to be of the class that were
	Recall     Real   `json:"recall"`     // fraction of its samples that were found
}

// Real is a number that is null in JSON where it is not defined.
type Real float64

// Judged returns a score of n judged samples, which is not defined for none.
func Judged(n uint64, v float64) Real {
	if n == 0 {
		return Real(math.NaN())
	}
	return Real(v)
}

// MarshalJSON writes all digits.
func (v Real) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(v))
}

// UnmarshalJSON reads the text that MarshalJSON writes.
func (v *Real) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*v = Real(math.NaN())
		return nil
	}
	return json.Unmarshal(text, (*float64)(v))
}

// Bin is one of the equal-width bins of the top probability: the predicted and the
// observed frequency of right answers in it.
type Bin struct {
	N          uint64  `json:"n"`
	Confidence float64 `json:"confidence"` // mean top probability; 0 if N is 0
	Accuracy   float64 `json:"accuracy"`   // fraction whose most probable class was right; 0 if N is 0
}

// Beats reports whether both error and log loss are lower than those of both
// baselines; known is false while the baselines have not judged the same samples.
func (f *Figures) Beats() (beats, known bool) {
	if f.N == 0 || f.Prior.N != f.N {
		return false, false
	}
	return f.Error < min(f.Prior.Error, f.Last.Error) && f.NLL < min(f.Prior.NLL, f.Last.NLL), true
}
