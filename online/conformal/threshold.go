package conformal

import (
	"slices"

	"edge/online/wire"
)

const (
	windowLabels  = 500  // labels whose scores the quantile looks back on
	priorLabels   = 20   // labels that the trust in the probabilities counts for
	integralGain  = 0.05 // of the threshold, for each missed set above the target
	leastDistance = 2    // in labels: at 1 the noise of S made sets 4 % larger
)

// integral returns the change of S for misses above the target at a distance.
func integral(excess, distance float64) float64 {
	return integralGain * excess / max(distance, leastDistance)
}

// Threshold keeps the threshold of a learner's prediction sets. The set of a sample
// holds the classes whose nonconformity score, from 0 to 1, is at most
//
//	q + S,   q = (n·Q(coverage) + 20·coverage)/(n + 20)
//
// with Q the quantile of the scores of the last n labels, at most 500. Before the
// first label q is the coverage: a set then holds that much probability. S is an
// integral controller on top of it: for each label
//
//	S ← S + 0.05·(missed − (1 − coverage))/max(distance, 2)
//
// with the distance of the label from the last one that its set knew. The labels of
// a minibatch are not known before it is closed: they wait until then, and have its
// size as their distance.
//
// Scores are bounded, so that S is, and with it the difference between the achieved
// and the configured coverage of n labels, by (1/0.05 + 1)·max(distance, 2)/n for a
// steady distance, whatever the stream does. With NeverEmpty this bounds it from below
// alone; S then stays where the threshold is 0. It is single-threaded.
//
// Source: Gibbs & Candès, "Adaptive conformal inference under distribution
// shift" (NeurIPS 2021); Angelopoulos, Candès & Tibshirani, "Conformal PID
// control for time series prediction" (NeurIPS 2023), P and I parts.
type Threshold struct {
	cfg     Config
	shift   float64 // S
	ring    []float64
	next    int       // index of the ring's next score
	waiting []label   // of the open minibatch
	sorted  []float64 // the ring in order; derived from it, as the quantile is
	q       float64
}

// label is a label whose minibatch is open.
type label struct {
	score  float64
	missed bool // it was not in the learner's set
}

// NewThreshold returns the threshold before the first label.
func NewThreshold(cfg Config) Threshold {
	t := Threshold{cfg: cfg}
	t.update()
	return t
}

// Uncertainty returns the rules for sets; the other rules are left at zero.
func (t *Threshold) Uncertainty() Uncertainty {
	return Uncertainty{Coverage: t.cfg.Coverage, Threshold: t.q + t.shift, Quantile: t.q, NeverEmpty: t.cfg.NeverEmpty, Untried: len(t.ring) == 0}
}

// Judge judges the learner's set for a prediction of x by the class of its label. The threshold
// stays until Learn is called.
//
//	probs  C  of the prediction
//	x      D  raw features, which give the dither
func (t *Threshold) Judge(probs, x []float64, class int) {
	if t.cfg.Coverage == 0 {
		return
	}
	now := PredictionMeta{Threshold: t.q + t.shift, NeverEmpty: t.cfg.NeverEmpty}
	score := float64(float32(scoreOf(class, probs, x))) // as the state keeps it
	t.waiting = append(t.waiting, label{score, !now.Holds(probs, x, class)})
}

// Learn moves the threshold by the labels that were judged since it was called last,
// a minibatch.
func (t *Threshold) Learn() {
	distance := float64(len(t.waiting))
	for _, l := range t.waiting {
		t.shift += integral(excess(l.missed, t.cfg.Coverage), distance)
		t.push(l.score)
	}
	t.waiting = t.waiting[:0]
	t.update()
}

// excess is the amount that a set adds to the misses above the target.
func excess(missed bool, coverage float64) float64 {
	if missed {
		return coverage
	}
	return coverage - 1
}

// push adds a score to the window.
func (t *Threshold) push(s float64) {
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
}

// update computes the quantile.
func (t *Threshold) update() {
	c, n := t.cfg.Coverage, len(t.sorted)
	t.q = c
	if n > 0 {
		at := min(max(c*float64(n+1)-1, 0), float64(n-1))
		low := int(at)
		q := t.sorted[low]
		if low+1 < n {
			q += (at - float64(low)) * (t.sorted[low+1] - q)
		}
		t.q = (float64(n)*q + priorLabels*c) / float64(n+priorLabels)
	}
	t.shift = bounded(t.shift, t.q, t.cfg.NeverEmpty)
}

// bounded keeps a threshold q + shift from falling below 0 where sets are never
// empty: they would not get smaller, and the sum would not end.
func bounded(shift, q float64, neverEmpty bool) float64 {
	if neverEmpty {
		return max(shift, -q)
	}
	return shift
}

// Encode appends the state; nothing where sets are off.
func (t *Threshold) Encode(e *wire.Encoder) {
	if t.cfg.Coverage == 0 {
		return
	}
	e.Float(t.cfg.Coverage)
	e.Float(t.shift)
	e.Int(len(t.ring))
	for _, s := range t.ring {
		e.Float32(s)
	}
	e.Int(t.next)
	e.Int(len(t.waiting))
	for _, l := range t.waiting {
		e.Float32(l.score)
		e.Bool(l.missed)
	}
}

// Decode reads the state that Encode wrote, perhaps under another coverage: S then
// begins again. At most that many labels of an open minibatch are read.
func (t *Threshold) Decode(d *wire.Decoder, minibatch int) {
	coverage, shift := d.Number("coverage"), d.Number("shift of the sets")
	ring, next := decodeWindow(d)
	waiting := make([]label, d.Count(minibatch, 5, "minibatch of the sets"))
	for i := range waiting {
		waiting[i] = label{d.Float32("minibatch of the sets"), d.Bool()}
	}
	if d.Err() != nil || t.cfg.Coverage == 0 {
		return
	}
	if coverage == t.cfg.Coverage {
		t.shift = shift
	}
	t.ring, t.next, t.waiting, t.sorted = ring, next, waiting, append(t.sorted[:0], ring...)
	slices.Sort(t.sorted)
	t.update()
}

// DecodeLogOdds reads the state of programs whose scores were log odds, and drops
// it: the mass above a class does not follow from them. The threshold begins again.
func DecodeLogOdds(d *wire.Decoder) {
	d.Number("coverage")
	d.Number("sum of misses")
	decodeWindow(d)
}

// decodeWindow reads scores and the index of the oldest.
func decodeWindow(d *wire.Decoder) (ring []float64, next int) {
	n := d.Int(windowLabels, "window of the sets")
	ring = make([]float64, 0, n)
	for range n {
		ring = append(ring, d.Float32("window of the sets"))
	}
	next = d.Int(max(n-1, 0), "window of the sets")
	if n < windowLabels && next > 0 {
		d.Fail("window of the sets continues in its middle")
	}
	return ring, next
}
