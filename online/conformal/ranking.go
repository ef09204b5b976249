package conformal

import "math"

// ranking walks through the classes by falling probability, equal ones by rising
// index. It keeps no list: a step costs O(C), and sets are small.
type ranking struct {
	probs []float64
	u     float64 // dither of the sample
	class int     // the present class; −1 before the first
	above float64 // mass of the classes before it
	score float64 // its nonconformity score
}

// newRanking stands before the most probable class of a sample with features x.
func newRanking(probs, x []float64) ranking { return ranking{probs: probs, u: dither(x), class: -1} }

// next goes to the next class; false after the last. The nonconformity score of a
// class is the mass of the classes before it and the part u of its own,
//
//	score = min(Σ p(before) + u·p, 1)
//
// which rises along the ranking. Under the true probabilities the label's score is
// uniform from 0 to 1.
//
// Source: Romano, Sesia & Candès, "Classification with valid and adaptive coverage"
// (NeurIPS 2020), equation 5.
func (r *ranking) next() bool {
	last := math.Inf(1)
	if r.class >= 0 {
		last = r.probs[r.class]
	}
	best := -1
	for k, p := range r.probs {
		if (p < last || p == last && k > r.class) && (best < 0 || p > r.probs[best]) {
			best = k
		}
	}
	if best < 0 {
		return false
	}
	if r.class >= 0 {
		r.above += last
	}
	r.class, r.score = best, min(r.above+r.u*r.probs[best], 1)
	return true
}

// nextOfSet goes to the next class of a set; false after its last.
func (r *ranking) nextOfSet(threshold float64, neverEmpty bool) bool {
	first := r.class < 0
	return r.next() && (r.score <= threshold || first && neverEmpty)
}

// scoreOf is the nonconformity score of a class; a class beyond the probabilities
// has the largest, 1.
func scoreOf(class int, probs, x []float64) float64 {
	if class >= len(probs) {
		return 1
	}
	r := newRanking(probs, x)
	for r.next() && r.class != class {
	}
	return r.score
}

// dither returns a number in [0, 1) that is uniform over different x. It is a
// function of x alone, so that a replay repeats it; all NaN are alike, and so are
// both zeros.
func dither(x []float64) float64 {
	h := uint64(14695981039346656037)
	for _, v := range x {
		if v != v {
			v = math.NaN()
		}
		h = (h ^ math.Float64bits(v+0)) * 1099511628211
		h ^= h >> 29
	}
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 32
	return float64(h>>11) / (1 << 53)
}
