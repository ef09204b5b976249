package score

import "math"

// Judge accumulates Scores. The zero value is ready.
type Judge struct {
	tally
	ring []kept // the last samples
	next int    // index of the ring's next sample

	lastLabel      int    // class of the last label judged, counted from 1; 0: none
	pairs, repeats uint64 // labels for which "same as last label" knew one; that were equal to it
}

// Outcome is the comparison of one prediction with its label.
type Outcome struct {
	Label, Top int     // class indices; Top −1: nothing was predicted
	NLL        float64 // negative log probability of the label, nats

	brier, conf float64
	prior, last loss // of the baselines
	rule        rule
	set         int // size of the prediction set, −1: no set
	covered     bool
}

// Decision holds the decision of an abstention rule and the prediction set that
// were published with probabilities.
type Decision struct {
	Ruled, Abstained bool // a rule of abstention was in force; it applied
	Sets             bool // a prediction set was published,
	Size             int  // of that many classes,
	Holds            bool // the label among them

	// Known: the label is a state that was known before the sample. To repeat it is then
	// no rule to compare with, and "same as last label" scores as the class prior.
	Known bool

	// Late: the label came later than the prediction. "Same as last label" then knows no
	// more labels than the prediction did: the latest of them is of class Last, counted
	// from 1; 0: there was none, and the rule scores as the class prior.
	Late bool
	Last int
}

// Add scores one prediction; class is its label's index in the probabilities, or
// beyond them, where the probability is 0.
func (j *Judge) Add(probs []float64, class int) Outcome {
	return j.AddPublished(probs, class, Decision{})
}

// AddPublished scores one prediction and the decision that was published with it.
// The numbers of the outcome are rounded to 32 bits.
func (j *Judge) AddPublished(probs []float64, class int, d Decision) Outcome {
	o := compare(probs, class)
	last := j.lastLabel
	if d.Late {
		last = d.Last
	}
	o.prior, o.last = j.baseline(len(probs), class, last)
	if d.Known {
		o.last = o.prior
	}
	if d.Ruled {
		if o.rule = answered; d.Abstained {
			o.rule = abstained
		}
	}
	if d.Sets {
		o.set, o.covered = d.Size, d.Holds
	}
	j.add(&o)
	if last > 0 {
		j.pairs++
		if last == class+1 {
			j.repeats++
		}
	}
	j.lastLabel = class + 1
	for _, x := range o.numbers() {
		*x = float64(float32(*x))
	}
	if len(j.ring) < scoreWindow {
		j.ring = append(j.ring, keep(&o))
	} else {
		j.ring[j.next] = keep(&o)
		j.next = (j.next + 1) % scoreWindow
	}
	return o
}

// compare compares a prediction with its label. The probabilities may be fewer
// than the classes: one that is missing is 0.
func compare(probs []float64, label int) Outcome {
	o := Outcome{Label: label, Top: -1, set: -1}
	var square, py float64
	for k, q := range probs {
		if q > o.conf {
			o.Top, o.conf = k, q
		}
		square += q * q
	}
	if label < len(probs) {
		py = probs[label]
	}
	o.NLL, o.brier = logLoss(py), square-2*py+1
	return o
}

func logLoss(p float64) float64 { return -math.Log(min(max(p, minProb), 1)) }

// baseline returns the losses of the baselines for a label: they know the frequencies of
// those before it, the number of classes that the model knew, and the class of the last
// label, counted from 1; 0: none.
func (j *Judge) baseline(classes, label, latest int) (prior, last loss) {
	prior.wrong, last.wrong = true, true
	prior.nll, last.nll = logLoss(0), logLoss(0)
	if classes == 0 {
		return prior, last
	}
	var n, most uint64
	top := 0
	count := func(k int) uint64 {
		if k < len(j.labels) {
			return j.labels[k]
		}
		return 0
	}
	for k := range classes {
		c := count(k)
		n += c
		if c > most {
			top, most = k, c
		}
	}
	before := latest - 1
	if before >= classes {
		before = -1
	}
	prior.wrong = top != label
	last.wrong = prior.wrong
	if before >= 0 {
		last.wrong = before != label
	}
	if label >= classes {
		return prior, last
	}
	frequency := func(k int) float64 { return (float64(count(k)) + 1) / (float64(n) + float64(classes)) }
	py := frequency(label)
	prior.nll = logLoss(py)
	again := (float64(j.repeats) + 1) / (float64(j.pairs) + 2)
	switch {
	case before == label && classes > 1:
		py = again
	case before >= 0 && before != label:
		py *= (1 - again) / (1 - frequency(before))
	}
	last.nll = logLoss(py)
	return prior, last
}

// DropClass removes class k; the classes after it move down by one.
func (j *Judge) DropClass(k int) {
	j.drop(k)
	move := func(at int) int {
		if at > k {
			at--
		}
		return at
	}
	if j.lastLabel == k+1 {
		j.lastLabel = 0
	} else {
		j.lastLabel = move(j.lastLabel-1) + 1
	}
	var ring []kept
	for i := range j.ring {
		if o := j.ring[(j.next+i)%len(j.ring)]; int(o.label) != k && int(o.top) != k {
			o.label, o.top = int16(move(int(o.label))), int16(move(int(o.top)))
			ring = append(ring, o)
		}
	}
	j.ring, j.next = ring, 0
}

// Correct judges a prediction again whose label was wrong: probs are its C probabilities, and the
// cumulative scores of the model become those with the class is in place of was. The window, the
// baselines and the published decisions stay. A prediction that the scores no longer have,
// after a reset, is not judged.
func (j *Judge) Correct(probs []float64, was, is int) {
	if wrong, right := compare(probs, was), compare(probs, is); j.holds(&wrong) {
		j.count(&wrong, -1)
		j.count(&right, 1)
	}
}

// Scores returns the scores up to now; names are the classes.
func (j *Judge) Scores(names []string) Scores {
	s := Scores{Figures: j.figures(names), Classes: names}
	var window tally
	for i := range j.ring {
		o := j.ring[i].outcome()
		window.add(&o)
	}
	s.Window = window.figures(names)
	if j.n == 0 {
		return s
	}
	s.Reliability = make([]Bin, eceBins)
	for b := range eceBins {
		if k := j.binN[b]; k > 0 {
			s.Reliability[b] = Bin{N: k, Confidence: j.binConf[b] / float64(k), Accuracy: float64(j.binHits[b]) / float64(k)}
		}
	}
	s.Matrix = make([][]uint64, len(names))
	for k := range names {
		s.Matrix[k] = make([]uint64, len(names))
		if k < len(j.confusion) {
			copy(s.Matrix[k], j.confusion[k])
		}
	}
	return s
}

// Coverage returns the results of the prediction sets up to now.
func (j *Judge) Coverage() Coverage { return j.sets.coverage() }

// numbers are the numbers of an outcome that need no more than 32 bits.
func (o *Outcome) numbers() [5]*float64 {
	return [5]*float64{&o.NLL, &o.brier, &o.conf, &o.prior.nll, &o.last.nll}
}

// CoverageCounter counts published prediction sets. The zero value is ready.
type CoverageCounter struct{ counts setCounts }

// Add counts a set of that many classes.
func (c *CoverageCounter) Add(size int, holds bool) {
	c.counts.n++
	c.counts.size += uint64(size)
	if size == 0 {
		c.counts.empty++
	}
	if holds {
		c.counts.covered++
	}
}

// Coverage returns the results up to now.
func (c *CoverageCounter) Coverage() Coverage { return c.counts.coverage() }
