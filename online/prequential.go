package online

import (
	"math"
	"slices"
)

// Scores are the prequential (test-then-train) scores of a model: each sample
// is judged by the prediction made before it was learnt.
type Scores struct {
	N       uint64      `json:"n"`         // samples judged
	Error   float64     `json:"error"`     // fraction whose most probable class was wrong
	NLL     float64     `json:"nll"`       // mean negative log probability of the label, nats, probabilities clipped from below at 1e-6
	Brier   float64     `json:"brier"`     // mean squared distance of the probabilities from the label's indicator, 0 to 2
	ECE     float64     `json:"ece"`       // expected calibration error, 15 equal-width bins of the top probability
	MacroF1 float64     `json:"macro_f1"`  // mean F1 of the classes that were seen
	Window  WindowScore `json:"window"`    // the same over the last samples
	Classes []string    `json:"classes"`   //
	Matrix  [][]uint64  `json:"confusion"` // Matrix[label][predicted]

	Reliability []Bin `json:"reliability"` // the bins of ECE, by rising probability
}

// Bin is one of the equal-width bins of the top probability: what was promised
// there, and what came true.
type Bin struct {
	N          uint64  `json:"n"`
	Confidence float64 `json:"confidence"` // mean top probability; 0 if N is 0
	Accuracy   float64 `json:"accuracy"`   // fraction whose most probable class was right; 0 if N is 0
}

// WindowScore covers the last samples only.
type WindowScore struct {
	N     int     `json:"n"`
	Error float64 `json:"error"`
	NLL   float64 `json:"nll"`
}

const (
	minProb     = 1e-6 // floor of a probability in the log loss
	eceBins     = 15
	scoreWindow = 500 // samples in WindowScore
)

// prequential accumulates Scores. Memory O(C² + window).
type prequential struct {
	n, errors  uint64
	nll, brier float64
	binN       [eceBins]uint64
	binHits    [eceBins]uint64
	binConf    [eceBins]float64
	confusion  [][]uint64 // C×C, grows with the classes
	ring       []float64  // nll of the last samples; its sign says whether the class was right
	next       int        // where the ring's next sample goes
}

// judge scores one prediction; label is its class. Probs may be shorter than
// the number of classes, or empty: what is not in it has probability 0.
func (p *prequential) judge(probs []float64, label int) {
	for label >= len(p.confusion) || len(probs) > len(p.confusion) {
		p.grow()
	}
	top, conf, square := -1, 0.0, 0.0
	for k, v := range probs {
		if v > conf {
			top, conf = k, v
		}
		square += v * v
	}
	var py float64
	if label < len(probs) {
		py = probs[label]
	}
	nll := -math.Log(min(max(py, minProb), 1))
	p.n++
	p.nll += nll
	p.brier += square - 2*py + 1
	bin := min(int(conf*eceBins), eceBins-1)
	p.binN[bin]++
	p.binConf[bin] += conf
	signed := -nll - 1 // negative: wrong; the 1 keeps a loss of 0 apart from −0
	if top == label {
		p.binHits[bin]++
		signed = nll + 1
	} else {
		p.errors++
	}
	if top >= 0 {
		p.confusion[label][top]++
	}
	if len(p.ring) < scoreWindow {
		p.ring = append(p.ring, signed)
	} else {
		p.ring[p.next] = signed
		p.next = (p.next + 1) % scoreWindow
	}
}

// grow makes room for another class in the confusion matrix.
func (p *prequential) grow() {
	for i := range p.confusion {
		p.confusion[i] = append(p.confusion[i], 0)
	}
	p.confusion = append(p.confusion, make([]uint64, len(p.confusion)+1))
}

// Judge scores predictions outside a learner, for held-out samples. The zero
// value is ready.
type Judge struct{ p prequential }

// Add scores one prediction; class is its label's place in the probabilities,
// or beyond them, where the probability is 0.
func (j *Judge) Add(probs []float64, class int) { j.p.judge(probs, class) }

// Scores returns the figures so far; names are the classes.
func (j *Judge) Scores(names []string) Scores { return j.p.scores(names) }

// scores returns the figures so far; names are the classes.
func (p *prequential) scores(names []string) Scores {
	s := Scores{N: p.n, Classes: names, Window: WindowScore{N: len(p.ring)}}
	if p.n == 0 {
		return s
	}
	n := float64(p.n)
	s.Error, s.NLL, s.Brier = float64(p.errors)/n, p.nll/n, p.brier/n
	s.Reliability = make([]Bin, eceBins)
	for b := range eceBins {
		s.ECE += math.Abs(p.binConf[b]-float64(p.binHits[b])) / n
		if k := p.binN[b]; k > 0 {
			s.Reliability[b] = Bin{N: k, Confidence: p.binConf[b] / float64(k), Accuracy: float64(p.binHits[b]) / float64(k)}
		}
	}
	var f1 float64
	var seen int
	s.Matrix = make([][]uint64, len(names))
	for k := range names {
		s.Matrix[k] = make([]uint64, len(names))
		if k >= len(p.confusion) {
			continue
		}
		copy(s.Matrix[k], p.confusion[k])
		var labels, predicted uint64
		for j := range p.confusion {
			labels += p.confusion[k][j]
			predicted += p.confusion[j][k]
		}
		if labels > 0 {
			seen++
			f1 += 2 * float64(p.confusion[k][k]) / float64(labels+predicted)
		}
	}
	if seen > 0 {
		s.MacroF1 = f1 / float64(seen)
	}
	for _, v := range p.ring {
		s.Window.NLL += (math.Abs(v) - 1) / float64(len(p.ring))
		if v < 0 {
			s.Window.Error += 1 / float64(len(p.ring))
		}
	}
	return s
}

// drop takes a class out of the confusion matrix. The other scores stay: they
// are of predictions that were made.
func (p *prequential) drop(k int) {
	if k >= len(p.confusion) {
		return
	}
	p.confusion = slices.Delete(p.confusion, k, k+1)
	for i, row := range p.confusion {
		p.confusion[i] = slices.Delete(row, k, k+1)
	}
}

// correct judges a prediction anew that was judged by the label was and should
// have been by is: the cumulative scores are as if it had been. The window goes
// on from what it saw.
func (p *prequential) correct(probs []float64, was, is int) {
	var once prequential
	once.judge(probs, was)
	wrong := once
	once = prequential{}
	once.judge(probs, is)
	p.errors += once.errors - wrong.errors
	p.nll += once.nll - wrong.nll
	p.brier += once.brier - wrong.brier
	for b := range eceBins {
		p.binHits[b] += once.binHits[b] - wrong.binHits[b]
	}
	for k, row := range wrong.confusion {
		for j, n := range row {
			if k < len(p.confusion) && j < len(p.confusion) && p.confusion[k][j] >= n {
				p.confusion[k][j] -= n
			}
		}
	}
	for len(p.confusion) < len(once.confusion) {
		p.grow()
	}
	for k, row := range once.confusion {
		for j, n := range row {
			p.confusion[k][j] += n
		}
	}
}
