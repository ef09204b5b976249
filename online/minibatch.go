package online

import "edge/model"

// minibatch holds the samples that were judged and wait to be learnt.
type minibatch struct {
	x  []float64 // n×D  raw
	y  []int     // n    classes
	w  []float64 // n    weights
	ll []float64 // n×H  weight·log p_h(label) when the sample was judged
}

func (b *minibatch) len() int { return len(b.y) }

// add appends a sample without its evidence.
func (b *minibatch) add(x []float64, k int, weight float64) {
	for _, v := range x {
		b.x = append(b.x, bounded(v))
	}
	b.y, b.w = append(b.y, k), append(b.w, weight)
}

// evidence stores the sum of each horizon's log probabilities.
func (b *minibatch) evidence(sum []float64) {
	clear(sum)
	for h := range sum {
		for i := range b.y {
			sum[h] += b.ll[i*len(sum)+h]
		}
	}
}

func (b *minibatch) clear() { b.x, b.y, b.w, b.ll = b.x[:0], b.y[:0], b.w[:0], b.ll[:0] }

// bounded returns a raw feature as it is learnt.
func bounded(v float64) float64 {
	if v != v {
		return model.Missing
	}
	return min(max(v, -model.MaxFeature), model.MaxFeature)
}
