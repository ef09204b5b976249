package model

import (
	"math"
	"slices"
)

// Pool corrects the answer of the Gaussian process by the evidence of the stream:
// answers may be too timid or too bold, and labels may follow each other in an order
// of their own, which no classifier of x alone can use. Each Member m answers by a
// logarithmic opinion pool,
//
//	p_m(y=k) ∝ p_k^a · (c_k/π_k)^b,     p(y=k) = Σ_m Weights_m · p_m(y=k)
//
// with p the bank's mixture, π the frequencies of the classes and c the distribution
// that the chain of labels expects: the row of the last known label in the g-th power
// of the transition matrix, g samples after it. For large g, c tends to π for a
// chain that mixes, so that an old label has no effect.
//
// Source: Genest & Zidek (1986), "Combining probability distributions", for the
// pool; a = 1, b = 1 is the forward step of a hidden Markov model.
type Pool struct {
	Weights []float64 // of the Members, sum 1; nil: the bank's mixture is the answer
	Moves   []float64 // C×C, Moves[i·C+j] counts label j right after label i; nil: no chain
	Last    int       // class of the last known label, −1: none
	Stack   Stack     // blends of experts, mixed with the answer of the Members
}

// Member is one way to correct the mixture: the exponents a and b above.
type Member struct {
	Sharpness   float64 // a, the inverse temperature: above 1 for answers that are too timid
	Persistence float64 // b, how much the chain of labels counts
}

// Members are the members of every Pool; new ones are added at the end, so that
// earlier states are read without them. The chain alone, without the process, is not
// among them: with a flat p it is the answer of (1, 1).
var Members = [...]Member{
	{1, 0}, {0.7, 0}, {1.4, 0}, {2, 0},
	{1, 0.5}, {0.7, 0.5}, {1.4, 0.5}, {2, 0.5},
	{1, 1}, {0.7, 1}, {1.4, 1}, {2, 1},
	{1, 2}, {2, 2},
}

const (
	chainPrior = 0.5   // pseudo-count of a row of the transition matrix, spread as the frequencies are
	farAhead   = 1000  // samples after which the last known label is forgotten
	floorProb  = 1e-12 // of a probability before its logarithm
)

// forecast is the distribution that the chain of one posterior expects, kept between
// predictions: the next sample is one step further.
type forecast struct {
	of          *float64 // the first of the posterior's own Pool.Weights, which identifies it without keeping it alive
	version     uint64
	epoch       uint64
	last, ahead int
	probs       []float64 // C  distribution of the label, ahead samples after the last known one
	next        []float64 // C  scratch
	pi          []float64 // C  frequencies of the classes
	logp, ratio []float64 // C  log p, log c/π
	members     []float64 // Members×C  the answer of each member alone
	chained     bool      // the chain has a forecast, and ratio is that of the last prediction
}

// expect returns the chain's distribution of the label that comes ahead samples
// after one of class last; nil if the chain or the place is unknown. O(C²) for the
// next sample, O(ahead·C²) at most.
func (b *forecast) expect(p *Posterior, last, ahead int) []float64 {
	c := len(p.Names)
	if ahead < 1 || ahead > farAhead || last < 0 || last >= c || len(p.Pool.Moves) != c*c {
		return nil
	}
	if of := &p.Pool.Weights[0]; b.of != of || b.version != p.N || b.epoch != p.Epoch || b.last != last || b.ahead > ahead || len(b.probs) != c {
		b.of, b.version, b.epoch, b.last, b.ahead = of, p.N, p.Epoch, last, 0
		b.probs, b.next = grow(b.probs, c), grow(b.next, c)
		clear(b.probs)
		b.probs[last] = 1
	}
	for ; b.ahead < ahead; b.ahead++ {
		var spread float64
		clear(b.next)
		for i, v := range b.probs {
			row := p.Pool.Moves[i*c : (i+1)*c]
			total := chainPrior
			for _, n := range row {
				total += n
			}
			v /= total
			spread += v * chainPrior
			for j, n := range row {
				b.next[j] += v * n
			}
		}
		for j := range b.next {
			b.next[j] += spread * b.pi[j]
		}
		b.probs, b.next = b.next, b.probs
	}
	return b.probs
}

// pool replaces the mixture's probabilities in dst by the pool's, for a sample
// that comes ahead samples after one of class last (0: unknown), and leaves the
// answer of each member in b.members.
func (p *Posterior) pool(dst []float64, last, ahead int, b *forecast) {
	c := len(dst)
	b.pi, b.logp, b.ratio = grow(b.pi, c), grow(b.logp, c), grow(b.ratio, c)
	b.members = grow(b.members, len(Members)*c)
	n := p.learnt()
	for k := range dst {
		b.pi[k] = p.frequency(k, n)
		b.logp[k] = math.Log(max(dst[k], floorProb))
	}
	chain := b.expect(p, last, ahead)
	b.chained = chain != nil
	for k, v := range chain {
		b.ratio[k] = math.Log(max(v, floorProb) / b.pi[k])
	}
	clear(dst)
	for m, member := range Members {
		q := b.members[m*c : (m+1)*c]
		if chain == nil && member.Persistence > 0 { // as the member that ignores the chain
			copy(q, b.members[member.unordered()*c:][:c])
		} else {
			member.answer(q, b.logp, b.ratio)
		}
		for k, v := range q {
			dst[k] += p.Pool.Weights[m] * v
		}
	}
}

// unordered is the index of the member that differs in ignoring the chain.
func (m Member) unordered() int {
	return slices.Index(Members[:], Member{m.Sharpness, 0})
}

// answer stores the member's probabilities in dst.
func (m Member) answer(dst, logp, ratio []float64) {
	for k := range dst {
		dst[k] = m.Sharpness * logp[k]
		if m.Persistence > 0 {
			dst[k] += m.Persistence * ratio[k]
		}
	}
	softmax(dst)
}
