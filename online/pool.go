package online

import (
	"math"

	"edge/model"
)

// distrust is the log weight of a member that has to earn its trust.
const distrust = -30

// startPool gives every member of the pool the same weight.
func (l *Learner) startPool() {
	l.poolLogw, l.pendPool = make([]float64, len(model.Members)), make([]float64, len(model.Members))
	l.view.Pool = model.Pool{Weights: make([]float64, len(model.Members)), Last: -1}
	l.setPoolWeights()
}

// trustProcess lets the bank's mixture alone answer, until the stream shows
// that it should be corrected: it was trained on a set that is no stream.
func (l *Learner) trustProcess() {
	for m, member := range model.Members {
		if l.poolLogw[m] = distrust; member == (model.Member{Sharpness: 1}) {
			l.poolLogw[m] = 0
		}
	}
	l.setPoolWeights()
	l.distrustStack()
}

// observePool notes how well each member predicted a sample of class k and of that weight, from
// what the last prediction left in the workspace.
func (l *Learner) observePool(k int, weight float64) {
	answers := l.ws.PerMember()
	c := len(answers) / len(model.Members)
	for m := range l.pendPool {
		l.pendPool[m] += weight * math.Log(max(answers[m*c+k], minMixProb))
	}
}

// weighPool updates the members' log weights by how well each predicted the n
// samples of the minibatch: a Bayesian mixture that forgets, as that of the
// horizons is. It stands even if the step is refused: the predictions were made.
func (l *Learner) weighPool(n int) {
	weigh(l.poolLogw, l.pendPool, n, mixMemory)
	clear(l.pendPool)
	l.setPoolWeights()
}

// setPoolWeights puts softmax(poolLogw) into the view, over the members that
// the configuration lets speak.
func (l *Learner) setPoolWeights() {
	weights := l.view.Pool.Weights
	var sum float64
	for m, member := range model.Members {
		weights[m] = math.Exp(l.poolLogw[m])
		if l.cfg.Temporal == TemporalOn && member.Persistence == 0 {
			weights[m] = 0
		}
		sum += weights[m]
	}
	for m := range weights {
		weights[m] /= sum
	}
}

// growChain makes room for the classes that were published since there were old.
func (l *Learner) growChain(old int) {
	c := len(l.view.Names)
	if l.cfg.Temporal == TemporalOff || (c == old && l.view.Pool.Moves != nil) {
		return
	}
	moves := make([]float64, c*c)
	for i := range old {
		copy(moves[i*c:], l.view.Pool.Moves[i*old:(i+1)*old])
	}
	l.view.Pool.Moves = moves
}

// extendChain appends a label of class k to the chain.
func (l *Learner) extendChain(k int) {
	p := &l.view.Pool
	if p.Moves == nil {
		return
	}
	if p.Last >= 0 {
		p.Moves[p.Last*len(l.view.Names)+k]++
	}
	p.Last = k
}
