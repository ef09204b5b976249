package conformal

import (
	"slices"

	"edge/online/wire"
)

const (
	windowLabels = 500 // labels whose scores the quantile looks back on
	integralGain = 1.5 // of the threshold, in units of the score, for each missed set above the target
)

// Threshold keeps the threshold of the prediction sets. The set of a sample
// holds the classes whose nonconformity score is at most
//
//	q = Q(coverage) + 1.5·Σ (missed − (1 − coverage))
//
// with Q the quantile of the scores of the last 500 labels, and the sum over all
// labels up to now: an integral controller on top of a running quantile. Scores are
// bounded, so that the sum is, and with it the difference between the achieved and
// the configured coverage, by a constant over the number of labels, whatever the
// stream does. It is single-threaded.
//
// Source: Gibbs & Candès, "Adaptive conformal inference under distribution
// shift" (NeurIPS 2021); Angelopoulos, Candès & Tibshirani, "Conformal PID
// control for time series prediction" (NeurIPS 2023), P and I parts, with the
// score 1 − p of Sadinle, Lei & Wasserman (2019) on the scale of log odds.
type Threshold struct {
	coverage float64 // 0: off
	excess   float64 // the sum
	ring     []float64
	next     int       // index of the ring's next score
	sorted   []float64 // the ring in order; derived from it, as the values below are
	quantile float64   // Q
	value    float64   // q
}

// NewThreshold returns the threshold before the first label.
func NewThreshold(cfg Config) Threshold {
	t := Threshold{coverage: cfg.Coverage}
	if t.coverage > 0 {
		t.ring, t.sorted = make([]float64, 0, windowLabels), make([]float64, 0, windowLabels)
	}
	t.update()
	return t
}

// Coverage is the target; 0: no sets.
func (t *Threshold) Coverage() float64 { return t.coverage }

// Value is the threshold.
func (t *Threshold) Value() float64 { return t.value }

// Quantile is the quantile in the threshold, without the integral term.
func (t *Threshold) Quantile() float64 { return t.quantile }

// Learn adds the nonconformity score of a label.
func (t *Threshold) Learn(s float64) {
	if t.coverage == 0 {
		return
	}
	t.excess -= 1 - t.coverage
	if s > t.value {
		t.excess++
	}
	s = float64(float32(s)) // as the state keeps it
	if len(t.ring) < windowLabels {
		t.ring = append(t.ring, s)
	} else {
		at, _ := slices.BinarySearch(t.sorted, t.ring[t.next])
		t.sorted = slices.Delete(t.sorted, at, at+1)
		t.ring[t.next] = s
		t.next = (t.next + 1) % windowLabels
	}
	at, _ := slices.BinarySearch(t.sorted, s)
	t.sorted = slices.Insert(t.sorted, at, s)
	t.update()
}

// update computes the threshold. Before the first label it trusts the
// probabilities: a class is in the set if it is more probable than 1 − coverage.
func (t *Threshold) update() {
	if t.coverage == 0 {
		return
	}
	q := nonconformity(1 - t.coverage)
	if n := len(t.sorted); n > 0 {
		at := min(max(t.coverage*float64(n+1)-1, 0), float64(n-1))
		low := int(at)
		q = t.sorted[low]
		if low+1 < n {
			q += (at - float64(low)) * (t.sorted[low+1] - q)
		}
	}
	t.quantile, t.value = q, q+integralGain*t.excess
}

// Encode appends the state; nothing where sets are off.
func (t *Threshold) Encode(e *wire.Encoder) {
	if t.coverage == 0 {
		return
	}
	e.Float(t.coverage)
	e.Float(t.excess)
	e.Int(len(t.ring))
	for _, s := range t.ring {
		e.Float32(s)
	}
	e.Int(t.next)
}

// Decode reads the state that Encode wrote, perhaps under another coverage: the
// sum then begins again.
func (t *Threshold) Decode(d *wire.Decoder) {
	coverage, excess := d.Number("coverage"), d.Number("sum of misses")
	n := d.Int(windowLabels, "window of the sets")
	ring := make([]float64, 0, windowLabels)
	for range n {
		ring = append(ring, d.Float32("window of the sets"))
	}
	next := d.Int(max(n-1, 0), "window of the sets")
	if n < windowLabels && next > 0 {
		d.Fail("window of the sets continues in its middle")
	}
	if d.Err() != nil || t.coverage == 0 {
		return
	}
	if coverage == t.coverage {
		t.excess = excess
	}
	t.ring, t.next, t.sorted = ring, next, append(t.sorted[:0], ring...)
	slices.Sort(t.sorted)
	t.update()
}
