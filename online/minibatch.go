package online

import (
	"math"

	"edge/model"
	"edge/online/mixture"
	"edge/online/wire"
)

// minibatch holds the samples that were judged and wait to be learnt.
type minibatch struct {
	x  []float64 // n×D  raw
	y  []int     // n    classes
	w  []float64 // n    weights
	ll []float64 // n×H  weight·log p_h(label) when the sample was judged

	joined []float64 // n×F  the same of the fleet's horizons
	nll    float64   // sum of −log p(label) of the samples that were judged
	errors float64   // how many independent errors the samples may have: the sum of 1/lateness
}

func (b *minibatch) len() int { return len(b.y) }

// add appends a sample without its evidence. Its label is that many labels late: the
// samples of as many labels were predicted without each other's, and have much the same error.
func (b *minibatch) add(x []float64, k int, weight, late float64) {
	b.errors += 1 / late
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
	b.errors = 0
}

// lateness is the number of labels from the prediction of a sample to its own label, which is
// counted: 1 if it comes before the next label, and where it is not known.
func (l *Learner) lateness(ev *Event) float64 {
	then, now := ev.Meta.Version, l.view.N+uint64(l.batch.len())
	if ev.Probs == nil || then == 0 || then > now {
		return 1
	}
	return float64(min(now-then, model.FarAhead) + 1)
}

// evidence describes the minibatch for the mixture. Its samples have one independent error at
// most, as they are predicted by one model.
func (b *minibatch) evidence() mixture.Batch {
	n := b.len()
	return mixture.Batch{N: n, Alike: float64(n) / min(1, b.errors)}
}

// encodeErrors appends the number of independent errors, if any label was late.
func (b *minibatch) encodeErrors(e *wire.Encoder) {
	if b.errors < float64(b.len()) {
		e.Float(b.errors)
	}
}

// decodeErrors reads the number that encodeErrors wrote.
func (b *minibatch) decodeErrors(d *wire.Decoder) {
	if b.errors = d.Number("errors of the minibatch"); !(b.errors > 0 && b.errors <= float64(b.len())) {
		d.Fail("a minibatch of %d samples has %g independent errors", b.len(), b.errors)
	}
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
