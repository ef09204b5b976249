package mixture

import (
	"math"

	"edge/online/wire"
)

// twoAnswers weighs two answers by evidence.
type twoAnswers struct {
	logw, pend [2]float64 // of either, the larger 0; their evidence in the minibatch that is filling
}

// share is the weight of the first answer.
func (d *twoAnswers) share() float64 { return 1 / (1 + math.Exp(d.logw[1]-d.logw[0])) }

// observe adds the log probabilities of a class by the two answers, times weight. A class
// that an answer does not know is no evidence.
func (d *twoAnswers) observe(class int, weight float64, first, second []float64) {
	for i, probs := range [...][]float64{first, second} {
		if class < len(probs) {
			d.pend[i] += weight * math.Log(max(probs[class], minProb))
		}
	}
}

// learn updates the weights by the samples of the minibatch, and remembers that many.
func (d *twoAnswers) learn(b Batch, memory float64) {
	weigh(d.logw[:], d.pend[:], b.N, b.root(), memory)
	clear(d.pend[:])
}

// follow adds the log probabilities of a class as observe does, updates the weights at once
// and remembers the latest samples.
func (d *twoAnswers) follow(class int, weight float64, first, second []float64) {
	d.observe(class, weight, first, second)
	d.learn(Together(1), latest)
}

// learnFast is learn where each of the samples counts whole.
func (d *twoAnswers) learnFast(b Batch, memory float64) {
	scale(math.Sqrt(float64(b.N)), d.pend[:])
	d.learn(b, memory)
}

func (d *twoAnswers) encode(e *wire.Encoder) {
	e.Floats(d.logw[:])
	e.Floats(d.pend[:])
}

func (d *twoAnswers) decode(from *wire.Decoder, name string) {
	from.Numbers(d.logw[:], name)
	from.Numbers(d.pend[:], name)
}
