package online

import (
	"math"

	"edge/model"
)

// minibatch holds the samples that were judged and wait to be learnt.
type minibatch struct {
	x  []float64 // n×D  raw
	y  []int     // n    classes
	w  []float64 // n    weights
	ll []float64 // n×H  weight·log p_h(label) when the sample was judged

	joined []float64 // n×F  the same of the fleet's horizons
	nll    float64   // sum of −log p(label) of the samples that were judged
}

func (b *minibatch) len() int { return len(b.y) }

// add appends a sample without its evidence.
func (b *minibatch) add(x []float64, k int, weight float64) {
	for _, v := range x {
		b.x = append(b.x, bounded(v))
	}
	b.y, b.w = append(b.y, k), append(b.w, weight)
}

// join begins the evidence of horizons of a fleet, which join own ones. They were not asked
// about the samples that wait, and would have given the same answers as the own ones.
func (b *minibatch) join(own []int) {
	b.joined = b.joined[:0]
	for i := range b.len() {
		rows := b.ll[len(b.ll)/b.len()*i:]
		for _, h := range own {
			b.joined = append(b.joined, rows[h])
		}
	}
}

// sumRows stores the sums of the columns of rows, each as long as sum.
func sumRows(sum, rows []float64) {
	clear(sum)
	for h := range sum {
		for i := h; i < len(rows); i += len(sum) {
			sum[h] += rows[i]
		}
	}
}

func (b *minibatch) clear() {
	b.x, b.y, b.w, b.ll, b.joined, b.nll = b.x[:0], b.y[:0], b.w[:0], b.ll[:0], b.joined[:0], 0
}

// bounded returns a raw feature as it is learnt.
func bounded(v float64) float64 {
	if v != v {
		return model.Missing
	}
	return min(max(v, -model.MaxFeature), model.MaxFeature)
}

// withNaN gives NaN to the missing ones of raw features as they are learnt, as a sample has them.
func withNaN(x []float64) []float64 {
	for j, v := range x {
		if v == model.Missing {
			x[j] = math.NaN()
		}
	}
	return x
}
