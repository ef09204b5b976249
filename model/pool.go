package model

import (
	"math"
	"math/bits"
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
// that the order of the labels expects, a known number of labels after the last one.
//
// Source: Genest & Zidek (1986), "Combining probability distributions", for the
// pool; a = 1, b = 1 is the forward step of a hidden Markov model.
type Pool struct {
	Weights []float64 // of the Members, sum 1; nil: the bank's mixture is the answer
	Order   Order     // of the labels
	Stack   Stack     // blends of experts, mixed with the answer of the Members
	Noise   Noise     // of the labels
	Prior   float64   // weight of the class frequencies in the answer, 0 to 1
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

const floorProb = 1e-12 // of a probability before its logarithm

// forecast has the answers that the members of a pool combine, and their own.
type forecast struct {
	paths       []float64 // Paths×C  distributions of the label by the order of the labels
	next        []float64 // C  scratch
	pi          []float64 // C  frequencies of the classes
	logp, ratio []float64 // C  log p, log c/π
	recent      []float64 // as Order.Recent
	members     []float64 // Members×C  the answer of each member alone
	chained     bool      // the place of the sample in the order is known: paths and ratio are those of the last prediction
}

// expect stores the distributions of the label that comes ahead labels after the last
// one in f.paths; false if the order or the place is unknown.
//
// The first goes there by steps of powers of two, the longest first, each with the
// moves that were counted at its own distance: at most MaxSteps products of O(C²). The
// second knows how long a label a dwells and nothing else,
//
//	λ^ahead·[b = a] + (1 − λ^ahead)·π_b,   λ = (R_aa − π_a)/(1 − π_a)
//
// with R that of the distance 1.
func (f *forecast) expect(o *Order, ahead int) bool {
	c := len(f.pi)
	if ahead < 1 || ahead > FarAhead || c < 2 || o.Last < 0 || o.Last >= c || len(o.Steps) < bits.Len(uint(ahead)) {
		return false
	}
	f.paths, f.next = grow(f.paths, Paths*c), grow(f.next, c)
	counted, dwelt := f.paths[:c], f.paths[c:]
	clear(counted)
	counted[o.Last] = 1
	o.Steps[0].stepTo(dwelt, counted, f.pi)
	if ahead == 1 {
		copy(counted, dwelt)
	}
	for j := bits.Len(uint(ahead)) - 1; j >= 0 && ahead > 1; j-- {
		if ahead>>j&1 == 1 {
			o.Steps[j].stepTo(f.next, counted, f.pi)
			copy(counted, f.next)
		}
	}
	pi := f.pi[o.Last]
	stays := math.Pow(max((dwelt[o.Last]-pi)/(1-pi), 0), float64(ahead))
	for k, v := range f.pi {
		dwelt[k] = (1 - stays) * v
	}
	dwelt[o.Last] += stays
	return true
}

// weighPaths sets f.ratio by the mixture of the paths.
func (f *forecast) weighPaths(o *Order) {
	c := len(f.pi)
	for k, pi := range f.pi {
		f.ratio[k] = math.Log(max(o.Paths[0]*f.paths[k]+o.Paths[1]*f.paths[c+k], floorProb) / pi)
	}
}

// foresee stores in f the forecasts of frequencies and order of the labels for a sample
// that comes ahead labels after the last one (0: unknown).
func (p *Posterior) foresee(ahead int, f *forecast) {
	f.pi = p.FrequenciesTo(f.pi)
	f.chained = f.expect(&p.Pool.Order, ahead)
	f.recent = append(f.recent[:0], p.Pool.Order.Recent...)
}

// pool replaces the mixture's probabilities in dst by the pool's, after foresee, and leaves
// the answer of each member in f.members.
func (p *Posterior) pool(dst []float64, f *forecast) {
	f.reserve(len(dst))
	for k := range dst {
		f.logp[k] = math.Log(max(dst[k], floorProb))
	}
	if f.chained {
		f.weighPaths(&p.Pool.Order)
	}
	p.combine(dst, f)
}

// reserve makes room for c classes.
func (f *forecast) reserve(c int) {
	f.pi, f.logp, f.ratio = grow(f.pi, c), grow(f.logp, c), grow(f.ratio, c)
	f.members = grow(f.members, len(Members)*c)
}

// combine stores the mixture of the members' answers in dst.
func (p *Posterior) combine(dst []float64, f *forecast) {
	c := len(dst)
	clear(dst)
	for m, member := range Members {
		q := f.members[m*c : (m+1)*c]
		if !f.chained && member.Persistence > 0 { // as the member that ignores the chain
			copy(q, f.members[member.unordered()*c:][:c])
		} else {
			member.answer(q, f.logp, f.ratio)
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
