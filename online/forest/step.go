package forest

import (
	"math"

	"edge/model"
)

const (
	rate   = 0.1
	memory = 5000 // labels of a leaf
	tiny   = 0.01
	least  = 1e-6 // of a gradient: no step is taken for a smaller one
)

// step moves the weights of a sample's leaves, and the bias, down the gradient of
// −weight·log P(label | x) in the logits,
//
//	g_k = weight·(P(k | x) − [k is the label])
//	s ← (1 − 1/memory)·s + g_k²,     w ← w − rate·g_k/(√s + tiny)
//
// A class with |g_k| < least keeps its w and s: most of many classes, of which the
// squares would underflow.
func (l *Learner) step(leaves []uint8, label int, weight float64) {
	f := l.forest
	f.LeafLogsTo(l.logs, leaves)
	l.differentiate(label, weight)
	l.descend(f, l.squares, l.biasSquares, leaves, rate)
}

// differentiate stores the gradient of a sample in l.gradient, by the answer in l.logs.
func (l *Learner) differentiate(label int, weight float64) {
	for k, logp := range l.logs {
		g := math.Exp(logp)
		if k == label {
			g--
		}
		l.gradient[k] = float32(weight * g)
	}
}

// descend takes the step down l.gradient with the weights of a forest, their squares, and a rate.
func (l *Learner) descend(f *model.Forest, squares, biasSquares []float32, leaves []uint8, rate float32) {
	descend(f.Bias, biasSquares, l.gradient, rate)
	for t, leaf := range leaves {
		at := (t*f.Leaves + int(leaf)) * f.Classes
		descend(f.Weights[at:at+f.Classes], squares[at:at+f.Classes], l.gradient, rate)
	}
}

// descend takes the step of one row of weights.
func descend(w, squares, gradient []float32, rate float32) {
	for k, g := range gradient {
		if g < least && g > -least {
			continue
		}
		s := (1-1./memory)*squares[k] + g*g
		squares[k] = s
		w[k] -= rate * g / (float32(math.Sqrt(float64(s))) + tiny)
	}
}
