package online

// Scores are the prequential (test-then-train) scores of a model: each sample
// is judged by the prediction made before it was learnt.
type Scores struct {
	N       uint64   `json:"n"`        // samples judged
	Error   float64  `json:"error"`    // fraction whose most probable class was wrong
	NLL     float64  `json:"nll"`      // mean negative log probability of the label, nats, probabilities clipped from below at 1e-6
	Brier   float64  `json:"brier"`    // mean squared distance of the probabilities from the label's indicator, 0 to 2
	ECE     float64  `json:"ece"`      // expected calibration error, 15 equal-width bins of the top probability
	MacroF1 float64  `json:"macro_f1"` // mean F1 of the classes that were seen
	Window  struct { // the same over the last samples
		N     int     `json:"n"`
		Error float64 `json:"error"`
		NLL   float64 `json:"nll"`
	} `json:"window"`
	Classes   []string   `json:"classes"`
	Confusion [][]uint64 `json:"confusion"` // Confusion[label][predicted]
}
