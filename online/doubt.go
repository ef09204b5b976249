package online

import (
	"math"
	"slices"
	"sync"
)

// Abstain says when a prediction should not be relied on.
type Abstain struct {
	// NoveltyAbove: where more than this fraction of the prior variance is left,
	// nothing like the sample was learnt. Default 1: never; range 0 to 1.
	NoveltyAbove float64 `yaml:"novelty_above"`
	// ConfidenceBelow: where the most probable class has less than this
	// probability. Default 0: never; range 0 to 1.
	ConfidenceBelow float64 `yaml:"confidence_below"`
}

// on reports whether the rule can ever apply.
func (a Abstain) on() bool { return a.NoveltyAbove < 1 || a.ConfidenceBelow > 0 }

// Conformal asks for prediction sets.
type Conformal struct {
	// Coverage is the fraction of sets that should hold the label, in the long
	// run and whatever the stream does. Default 0.9; range 0.5 to 0.999, 0: no sets.
	Coverage float64 `yaml:"coverage"`
}

// Doubt is what a learner says about predictions beside their probabilities. It
// is immutable; any goroutine may use it.
type Doubt struct {
	Abstain   Abstain
	Coverage  float64 // that the sets aim at; 0: there are none
	Threshold float64 // of strangeness, up to which a class is in the set
	Quantile  float64 // the part of Threshold that is a quantile; the rest is the sum
	Drift     Level   // of the stream
}

// Said is what was published beside a prediction whose label comes late.
type Said struct {
	Ruled, Abstained bool    // there was a rule of abstention; it applied
	Sets             bool    // there was a prediction set
	Threshold        float64 // of it
}

// Holds reports whether the set that was published with a prediction of x holds a
// class; one beyond the probabilities it does not hold.
func (s *Said) Holds(probs, x []float64, class int) bool {
	return class < len(probs) && strangeness(probs[class])+dither(x) <= s.Threshold
}

// Size is the number of classes in the set that was published with a prediction of x.
func (s *Said) Size(probs, x []float64) int { return setSize(s.Threshold, probs, dither(x)) }

// Say returns what is published beside a prediction.
func (d *Doubt) Say(probs []float64, novelty float64) Said {
	a := d.Abstain
	return Said{
		Ruled: a.on(), Abstained: a.on() && (novelty > a.NoveltyAbove || len(probs) == 0 || slices.Max(probs) < a.ConfidenceBelow),
		Sets: d.Coverage > 0, Threshold: d.Threshold,
	}
}

// AppendSet appends the prediction set of x, given its probabilities: classes,
// the most probable first.
func (d *Doubt) AppendSet(dst []int, probs, x []float64) []int {
	jitter := dither(x)
	first := len(dst)
	for k, p := range probs {
		if strangeness(p)+jitter > d.Threshold {
			continue
		}
		at := len(dst)
		for dst = append(dst, k); at > first && probs[dst[at-1]] < p; at-- {
			dst[at], dst[at-1] = dst[at-1], dst[at]
		}
	}
	return dst
}

// setSize is the length of the set that AppendSet would append.
func setSize(threshold float64, probs []float64, jitter float64) (size int) {
	for _, p := range probs {
		if strangeness(p)+jitter <= threshold {
			size++
		}
	}
	return size
}

const (
	strangeWindow = 500  // labels whose strangeness the threshold looks back on
	strangeGain   = 1.5  // of the threshold, in units of strangeness, for each set too many that failed
	minStrange    = 1e-9 // of a probability and of its distance from 1
	ditherWidth   = 1e-3
)

// strangeness of a class of probability p is its log odds against.
func strangeness(p float64) float64 {
	p = min(max(p, minStrange), 1-minStrange)
	return math.Log((1 - p) / p)
}

// dither returns a number that is as if drawn for x: predictions that are all
// the same, as before the model is built, are told apart by it. It follows from
// x alone, so that a replay has the same one.
func dither(x []float64) float64 {
	h := uint64(14695981039346656037)
	for _, v := range x {
		h = (h ^ math.Float64bits(v)) * 1099511628211
		h ^= h >> 29
	}
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 32
	return ditherWidth * float64(h>>11) / (1 << 53)
}

// conformal keeps the threshold of the prediction sets. The set of a sample
// holds the classes whose strangeness is at most
//
//	q = Q(coverage) + 1.5·Σ (missed − (1 − coverage))
//
// with Q the quantile of the strangeness of the last 500 labels, and the sum
// over all labels so far: an integral controller on top of a running quantile.
// Strangeness is bounded, so that the sum is, and with it the difference between
// the achieved and the wanted coverage, by a constant over the number of labels,
// whatever the stream does.
//
// Source: Gibbs & Candès, "Adaptive conformal inference under distribution
// shift" (NeurIPS 2021); Angelopoulos, Candès & Tibshirani, "Conformal PID
// control for time series prediction" (NeurIPS 2023), P and I parts, with the
// score 1 − p of Sadinle, Lei & Wasserman (2019) on the scale of log odds.
type conformal struct {
	coverage  float64 // 0: off
	excess    float64 // the sum
	ring      []float64
	next      int       // where the ring's next goes
	sorted    []float64 // the ring in order; follows from it, as what is below does
	quantile  float64   // Q
	threshold float64
}

func newConformal(coverage float64) conformal {
	c := conformal{coverage: coverage}
	if coverage > 0 {
		c.ring, c.sorted = make([]float64, 0, strangeWindow), make([]float64, 0, strangeWindow)
	}
	c.aim()
	return c
}

// learn takes notice of the strangeness that a label had.
func (c *conformal) learn(s float64) {
	c.excess -= 1 - c.coverage
	if s > c.threshold {
		c.excess++
	}
	s = float64(float32(s)) // as the state keeps it
	if len(c.ring) < strangeWindow {
		c.ring = append(c.ring, s)
	} else {
		at, _ := slices.BinarySearch(c.sorted, c.ring[c.next])
		c.sorted = slices.Delete(c.sorted, at, at+1)
		c.ring[c.next] = s
		c.next = (c.next + 1) % strangeWindow
	}
	at, _ := slices.BinarySearch(c.sorted, s)
	c.sorted = slices.Insert(c.sorted, at, s)
	c.aim()
}

// aim computes the threshold. Without any label yet it believes the
// probabilities: a class is in the set if it is more probable than 1 − coverage.
func (c *conformal) aim() {
	if c.coverage == 0 {
		return
	}
	q := strangeness(1 - c.coverage)
	if n := len(c.sorted); n > 0 {
		at := min(max(c.coverage*float64(n+1)-1, 0), float64(n-1))
		low := int(at)
		q = c.sorted[low]
		if low+1 < n {
			q += (at - float64(low)) * (c.sorted[low+1] - q)
		}
	}
	c.quantile, c.threshold = q, q+strangeGain*c.excess
}

// Aim keeps the coverage of published sets at the target. They are made before
// the labels before them are learnt, so that the learner's threshold, which keeps
// the coverage of the learner's own predictions, is behind. It has the sum over
// the published sets instead, as soon as their labels are known, in place of the
// learner's:
//
//	q = Q(coverage) + 1.5·Σ (missed − (1 − coverage))/distance
//
// The distance is 1 for a label that is known at once, and that of a late label
// from the last one that the set knew, in labels: a sum that counts errors of
// long ago must be slow, or it swings. It begins with the learner's sum. The zero
// value is ready; any goroutine may use it.
type Aim struct {
	mu     sync.Mutex
	target float64 // 0: it has not begun
	shift  float64 // the sum
	sets   struct{ n, covered, size, empty uint64 }
}

// Threshold returns the doubt with the threshold for the next published set.
func (a *Aim) Threshold(d Doubt) Doubt {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.target != d.Coverage {
		a.target, a.shift = d.Coverage, d.Threshold-d.Quantile
	}
	d.Threshold = d.Quantile + a.shift
	return d
}

// JudgeNow takes notice of a published set of some size whose label is known at once.
func (a *Aim) JudgeNow(holds bool, size int) { a.judge(holds, size, 1) }

// Judge takes notice of a published set of some size whose label came late: place
// is that of the label among all labels of the model, known the number of those
// that were known to the set. A set that knew none is left alone: nobody aimed.
func (a *Aim) Judge(holds bool, size int, known, place uint64) {
	if known > 0 {
		a.judge(holds, size, float64(max(place, known+1)-known))
	}
}

func (a *Aim) judge(holds bool, size int, distance float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	missed := 1.0
	a.sets.n++
	a.sets.size += uint64(size)
	if size == 0 {
		a.sets.empty++
	}
	if holds {
		a.sets.covered++
		missed = 0
	}
	a.shift += strangeGain * (missed - (1 - a.target)) / distance
}

// Coverage returns how the published sets did that were judged.
func (a *Aim) Coverage() Coverage {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, n := &a.sets, float64(a.sets.n)
	return Coverage{s.n, Real(float64(s.covered) / n), Real(float64(s.size) / n), Real(float64(s.empty) / n)}
}

func (c *conformal) encode(e *encoder) {
	if c.coverage == 0 {
		return
	}
	e.float(c.coverage)
	e.float(c.excess)
	e.int(len(c.ring))
	for _, s := range c.ring {
		e.float32(s)
	}
	e.int(c.next)
}

// decode reads what was learnt under a coverage that may have been another one:
// the sum then begins anew.
func (c *conformal) decode(d *decoder) {
	coverage, excess := d.number("coverage"), d.number("sum of misses")
	n := d.int(strangeWindow, "window of the sets")
	ring := make([]float64, 0, strangeWindow)
	for range n {
		ring = append(ring, d.float32("window of the sets"))
	}
	next := d.int(max(n-1, 0), "window of the sets")
	if n < strangeWindow && next > 0 {
		d.fail("window of the sets goes on in its middle")
	}
	if d.err != nil || c.coverage == 0 {
		return
	}
	if coverage == c.coverage {
		c.excess = excess
	}
	c.ring, c.next, c.sorted = ring, next, append(c.sorted[:0], ring...)
	slices.Sort(c.sorted)
	c.aim()
}

// Doubt returns what is to be said beside predictions from now on.
func (l *Learner) Doubt() Doubt {
	return Doubt{Abstain: l.cfg.Abstain, Coverage: l.conformal.coverage, Threshold: l.conformal.threshold, Quantile: l.conformal.quantile, Drift: l.watch.level}
}

// assess judges what was said of a sample of class k: the probabilities, whether
// to rely on them, and the set. What late says was said when the sample came;
// nil: the learner says it now. The threshold always learns by what it would say
// now: a sum that counted errors of long ago would swing.
func (l *Learner) assess(x, probs []float64, novelty float64, late *Said, k int, out *Outcome) {
	o := &l.opinion
	*o = opinion{probs: probs}
	var said Said
	if late != nil {
		said = *late
	} else {
		doubt := l.Doubt()
		said = doubt.Say(probs, novelty)
	}
	if said.Ruled {
		o.rule = ruled(said.Abstained)
	}
	jitter := dither(x)
	strange := strangeness(0) + jitter
	if k < len(probs) {
		strange = strangeness(probs[k]) + jitter
	}
	if o.sets = said.Sets; o.sets {
		o.size = setSize(said.Threshold, probs, jitter)
		o.holds = k < len(probs) && strange <= said.Threshold
	}
	v := l.judge.judge(o, k)
	l.watchFor(&v, novelty, out)
	if l.conformal.coverage > 0 {
		l.conformal.learn(strange)
	}
}
