package online

import (
	"encoding/json"
	"math"
	"slices"
)

// Scores are the prequential (test-then-train) scores of a model: each sample
// is judged by the prediction made before it was learnt. docs/reference/scores.md has
// every formula.
type Scores struct {
	Figures
	Window  Figures    `json:"window"`    // the same over the last samples, 500 at most
	Classes []string   `json:"classes"`   //
	Matrix  [][]uint64 `json:"confusion"` // Matrix[label][predicted]

	Reliability []Bin `json:"reliability"` // the bins of ECE, by rising probability
}

// Figures are the scores of some predictions; all 0 or undefined if N is 0.
type Figures struct {
	N        uint64  `json:"n"`        // samples judged
	Error    float64 `json:"error"`    // fraction whose most probable class was wrong
	NLL      float64 `json:"nll"`      // mean negative log probability of the label, nats, probabilities clipped from below at 1e-6
	Brier    float64 `json:"brier"`    // mean squared distance of the probabilities from the label's indicator, 0 to 2
	ECE      float64 `json:"ece"`      // expected calibration error, 15 equal-width bins of the top probability
	MacroF1  float64 `json:"macro_f1"` // mean F1 of the classes that were seen
	Balanced Real    `json:"balanced_accuracy"`
	Kappa    Real    `json:"kappa"` // Cohen's

	Prior     Baseline     `json:"class_prior"`
	Last      Baseline     `json:"last_label"`
	Abstained *Abstentions `json:"abstention,omitempty"` // nil: no sample was judged under a rule
	Sets      *Coverage    `json:"sets,omitempty"`       // nil: no set was judged
	PerClass  []ClassScore `json:"per_class"`
}

// Baseline is how well one of two rules that know nothing of the features did
// on the same samples: the class prior, which predicts the frequencies of the
// labels so far, (n_k + 1)/(n + C); and "same as last label", which gives the
// last label the probability r = (repeats + 1)/(labels + 2) and shares out the
// rest as the prior does.
type Baseline struct {
	N     uint64  `json:"n"` // fewer than the model's after an upgrade
	Error float64 `json:"error"`
	NLL   float64 `json:"nll"`
}

// Abstentions say what a rule of abstention was worth.
type Abstentions struct {
	N     uint64 `json:"n"`     // samples judged under a rule
	Kept  Real   `json:"kept"`  // fraction that was answered
	Error Real   `json:"error"` // of those
}

// Coverage says how prediction sets did.
type Coverage struct {
	N       uint64 `json:"n"`        // sets judged
	Covered Real   `json:"coverage"` // fraction that held the label
	Size    Real   `json:"size"`     // mean number of classes
	Empty   Real   `json:"empty"`    // fraction without any class
}

// ClassScore is about one class.
type ClassScore struct {
	Class      string `json:"class"`
	N          uint64 `json:"n"`          // labels
	Prevalence Real   `json:"prevalence"` // their fraction
	Precision  Real   `json:"precision"`  // fraction of those predicted to be it that were
	Recall     Real   `json:"recall"`     // fraction of its samples that were found
}

// Real is a number that is null in JSON where it is not defined.
type Real float64

// MarshalJSON writes all digits.
func (v Real) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(v))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (v *Real) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*v = Real(math.NaN())
		return nil
	}
	return json.Unmarshal(text, (*float64)(v))
}

// Bin is one of the equal-width bins of the top probability: what was promised
// there, and what came true.
type Bin struct {
	N          uint64  `json:"n"`
	Confidence float64 `json:"confidence"` // mean top probability; 0 if N is 0
	Accuracy   float64 `json:"accuracy"`   // fraction whose most probable class was right; 0 if N is 0
}

// Beats reports whether both error and log loss are lower than those of both
// baselines; known is false while the baselines have not judged the same samples.
func (f *Figures) Beats() (beats, known bool) {
	if f.N == 0 || f.Prior.N != f.N {
		return false, false
	}
	return f.Error < min(f.Prior.Error, f.Last.Error) && f.NLL < min(f.Prior.NLL, f.Last.NLL), true
}

const (
	minProb     = 1e-6 // floor of a probability in the log loss
	eceBins     = 15
	scoreWindow = 500 // samples in Scores.Window
)

// verdict is what became of one prediction.
type verdict struct {
	label, top       int // class indices; top −1: nothing was predicted
	nll, brier, conf float64
	prior, last      loss // of the baselines
	rule             ruling
	set              int // size of the prediction set, −1: there was none
	covered          bool
}

// loss is what one baseline lost.
type loss struct {
	nll   float64
	wrong bool
}

// ruling says whether a rule of abstention let a prediction pass.
type ruling uint8

const (
	unruled ruling = iota
	kept
	abstained
)

// ruled is the ruling of a rule that applied, or not.
func ruled(applied bool) ruling {
	if applied {
		return abstained
	}
	return kept
}

// tally adds up verdicts. Memory O(C²).
type tally struct {
	n, errors   uint64
	nll, brier  float64
	binN        [eceBins]uint64
	binHits     [eceBins]uint64
	binConf     [eceBins]float64
	labels      []uint64   // C  of each class
	confusion   [][]uint64 // C×C, grows with the classes
	baselines   uint64     // samples that the baselines judged
	prior, last lossSum
	rulings     [3]uint64 // by ruling
	keptErrors  uint64
	sets        struct{ n, covered, size, empty uint64 }
}

type lossSum struct {
	errors uint64
	nll    float64
}

func (s *lossSum) add(l loss) {
	s.nll += l.nll
	if l.wrong {
		s.errors++
	}
}

func (s lossSum) mean(n uint64) Baseline {
	if n == 0 {
		return Baseline{}
	}
	return Baseline{n, float64(s.errors) / float64(n), s.nll / float64(n)}
}

func (t *tally) grow(classes int) {
	for len(t.confusion) < classes {
		for i := range t.confusion {
			t.confusion[i] = append(t.confusion[i], 0)
		}
		t.confusion = append(t.confusion, make([]uint64, len(t.confusion)+1))
		t.labels = append(t.labels, 0)
	}
}

// add counts a verdict.
func (t *tally) add(v *verdict) {
	t.judge(v, 1)
	t.baselines++
	t.prior.add(v.prior)
	t.last.add(v.last)
	t.rulings[v.rule]++
	if v.rule == kept && v.top != v.label {
		t.keptErrors++
	}
	if v.set >= 0 {
		t.sets.n++
		t.sets.size += uint64(v.set)
		if v.covered {
			t.sets.covered++
		}
		if v.set == 0 {
			t.sets.empty++
		}
	}
}

// judge counts a verdict in the scores of the model, or with sign −1 takes it out.
func (t *tally) judge(v *verdict, sign int) {
	t.grow(max(v.label, v.top) + 1)
	one := uint64(sign) // −1 wraps around, as uint64 does
	t.n += one
	t.labels[v.label] += one
	t.nll += float64(sign) * v.nll
	t.brier += float64(sign) * v.brier
	bin := min(int(v.conf*eceBins), eceBins-1)
	t.binN[bin] += one
	t.binConf[bin] += float64(sign) * v.conf
	if v.top == v.label {
		t.binHits[bin] += one
	} else {
		t.errors += one
	}
	if v.top >= 0 {
		t.confusion[v.label][v.top] += one
	}
}

// drop takes a class out of what is kept by class. The other scores stay: they
// are of predictions that were made.
func (t *tally) drop(k int) {
	if k >= len(t.labels) {
		return
	}
	t.labels = slices.Delete(t.labels, k, k+1)
	t.confusion = slices.Delete(t.confusion, k, k+1)
	for i, row := range t.confusion {
		t.confusion[i] = slices.Delete(row, k, k+1)
	}
}

// figures are the scores of what was counted; names are the classes.
func (t *tally) figures(names []string) Figures {
	f := Figures{N: t.n, Balanced: Real(math.NaN()), Kappa: Real(math.NaN()), PerClass: []ClassScore{}}
	f.Prior, f.Last = t.prior.mean(t.baselines), t.last.mean(t.baselines)
	if t.n == 0 {
		return f
	}
	n := float64(t.n)
	f.Error, f.NLL, f.Brier = float64(t.errors)/n, t.nll/n, t.brier/n
	for b := range eceBins {
		f.ECE += math.Abs(t.binConf[b]-float64(t.binHits[b])) / n
	}
	var f1, recalls, seen, chance float64
	for k, name := range names {
		if k >= len(t.labels) {
			f.PerClass = append(f.PerClass, ClassScore{name, 0, 0, Real(math.NaN()), Real(math.NaN())})
			continue
		}
		var predicted uint64
		for j := range t.confusion {
			predicted += t.confusion[j][k]
		}
		labels, hits := float64(t.labels[k]), float64(t.confusion[k][k])
		f.PerClass = append(f.PerClass, ClassScore{name, t.labels[k], Real(labels / n), Real(hits / float64(predicted)), Real(hits / labels)})
		chance += labels / n * float64(predicted) / n
		if labels > 0 {
			seen++
			recalls += hits / labels
			f1 += 2 * hits / (labels + float64(predicted))
		}
	}
	if seen > 0 {
		f.MacroF1, f.Balanced = f1/seen, Real(recalls/seen)
	}
	f.Kappa = Real((1 - f.Error - chance) / (1 - chance))
	if ruled := t.rulings[kept] + t.rulings[abstained]; ruled > 0 {
		f.Abstained = &Abstentions{ruled, Real(float64(t.rulings[kept]) / float64(ruled)), Real(float64(t.keptErrors) / float64(t.rulings[kept]))}
	}
	if s := &t.sets; s.n > 0 {
		n := float64(s.n)
		f.Sets = &Coverage{s.n, Real(float64(s.covered) / n), Real(float64(s.size) / n), Real(float64(s.empty) / n)}
	}
	return f
}

// prequential accumulates Scores. Memory O(C² + window).
type prequential struct {
	tally
	ring []verdict // the last samples, their numbers rounded to 32 bits
	next int       // where the ring's next sample goes

	lastLabel      int    // class of the last label judged, counted from 1; 0: none
	pairs, repeats uint64 // labels that had a predecessor; that were its like
}

// opinion is what is judged: a prediction, and what was said beside it.
type opinion struct {
	probs []float64 // may be shorter than the number of classes, or empty: what is not in it has probability 0
	rule  ruling
	sets  bool // there was a prediction set,
	size  int  // of so many classes,
	holds bool // the label among them
}

// judge scores one prediction; label is its class. The verdict's numbers are
// rounded to 32 bits.
func (p *prequential) judge(o *opinion, label int) verdict {
	v := p.look(o.probs, label)
	v.prior, v.last = p.baseline(len(o.probs), label)
	v.rule = o.rule
	if o.sets {
		v.set, v.covered = o.size, o.holds
	}
	p.add(&v)
	if p.lastLabel > 0 {
		p.pairs++
		if p.lastLabel == label+1 {
			p.repeats++
		}
	}
	p.lastLabel = label + 1
	for _, x := range v.numbers() {
		*x = float64(float32(*x))
	}
	if len(p.ring) < scoreWindow {
		p.ring = append(p.ring, v)
	} else {
		p.ring[p.next] = v
		p.next = (p.next + 1) % scoreWindow
	}
	return v
}

// look compares a prediction with its label.
func (p *prequential) look(probs []float64, label int) verdict {
	v := verdict{label: label, top: -1, set: -1}
	var square, py float64
	for k, q := range probs {
		if q > v.conf {
			v.top, v.conf = k, q
		}
		square += q * q
	}
	if label < len(probs) {
		py = probs[label]
	}
	v.nll, v.brier = logLoss(py), square-2*py+1
	return v
}

func logLoss(p float64) float64 { return -math.Log(min(max(p, minProb), 1)) }

// baseline returns what the baselines lose by a label of which they know those
// before it, and the number of classes that the model knew.
func (p *prequential) baseline(classes, label int) (prior, last loss) {
	prior.wrong, last.wrong = true, true
	prior.nll, last.nll = logLoss(0), logLoss(0)
	if classes == 0 {
		return prior, last
	}
	var n, most uint64
	top := 0
	count := func(k int) uint64 {
		if k < len(p.labels) {
			return p.labels[k]
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
	before := p.lastLabel - 1
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
	again := (float64(p.repeats) + 1) / (float64(p.pairs) + 2)
	switch {
	case before == label && classes > 1:
		py = again
	case before >= 0 && before != label:
		py *= (1 - again) / (1 - frequency(before))
	}
	last.nll = logLoss(py)
	return prior, last
}

// drop takes a class out.
func (p *prequential) drop(k int) {
	p.tally.drop(k)
	move := func(at int) int {
		if at > k {
			at--
		}
		return at
	}
	if p.lastLabel == k+1 {
		p.lastLabel = 0
	} else {
		p.lastLabel = move(p.lastLabel-1) + 1
	}
	ring := slices.Concat(p.ring[p.next:], p.ring[:p.next])
	p.ring, p.next = slices.DeleteFunc(ring, func(v verdict) bool { return v.label == k || v.top == k }), 0
	for i := range p.ring {
		v := &p.ring[i]
		v.label, v.top = move(v.label), move(v.top)
	}
}

// correct judges a prediction anew that was judged by the label was and should
// have been by is: the cumulative scores of the model are as if it had been.
// The window, the baselines and what was said beside the prediction stay.
func (p *prequential) correct(probs []float64, was, is int) {
	wrong, right := p.look(probs, was), p.look(probs, is)
	p.tally.judge(&wrong, -1)
	p.tally.judge(&right, 1)
}

// Judge scores predictions outside a learner, for held-out samples. The zero
// value is ready.
type Judge struct{ p prequential }

// Add scores one prediction; class is its label's place in the probabilities,
// or beyond them, where the probability is 0.
func (j *Judge) Add(probs []float64, class int) { j.p.judge(&opinion{probs: probs}, class) }

// Beside is what was published beside the probabilities of a prediction.
type Beside struct {
	Ruled, Abstained bool // there was a rule of abstention; it applied
	Sets             bool // there was a prediction set,
	Size             int  // of so many classes,
	Holds            bool // the label among them
}

// AddBeside scores one prediction and what was published beside it.
func (j *Judge) AddBeside(probs []float64, class int, b Beside) {
	o := opinion{probs: probs, sets: b.Sets, size: b.Size, holds: b.Holds}
	if b.Ruled {
		o.rule = ruled(b.Abstained)
	}
	j.p.judge(&o, class)
}

// Scores returns the figures so far; names are the classes.
func (j *Judge) Scores(names []string) Scores { return j.p.scores(names) }

// scores returns the figures so far; names are the classes.
func (p *prequential) scores(names []string) Scores {
	s := Scores{Figures: p.figures(names), Classes: names}
	var window tally
	for i := range p.ring {
		window.add(&p.ring[i])
	}
	s.Window = window.figures(names)
	if p.n == 0 {
		return s
	}
	s.Reliability = make([]Bin, eceBins)
	for b := range eceBins {
		if k := p.binN[b]; k > 0 {
			s.Reliability[b] = Bin{N: k, Confidence: p.binConf[b] / float64(k), Accuracy: float64(p.binHits[b]) / float64(k)}
		}
	}
	s.Matrix = make([][]uint64, len(names))
	for k := range names {
		s.Matrix[k] = make([]uint64, len(names))
		if k < len(p.confusion) {
			copy(s.Matrix[k], p.confusion[k])
		}
	}
	return s
}

// numbers are those of a verdict that need no more than 32 bits.
func (v *verdict) numbers() [5]*float64 {
	return [5]*float64{&v.nll, &v.brier, &v.conf, &v.prior.nll, &v.last.nll}
}

func (p *prequential) encode(e *encoder) {
	p.encodeBefore(e)
	for _, n := range p.labels {
		e.uint(n)
	}
	e.uint(p.baselines)
	for _, s := range []*lossSum{&p.prior, &p.last} {
		e.uint(s.errors)
		e.float(s.nll)
	}
	for _, n := range p.counts() {
		e.uint(*n)
	}
	e.int(p.lastLabel)
	e.int(len(p.ring))
	for i := range p.ring {
		v := &p.ring[i]
		e.int(v.label)
		e.int(v.top + 1)
		e.int(v.set + 1)
		flags := uint64(v.rule)
		for bit, set := range []bool{v.prior.wrong, v.last.wrong, v.covered} {
			if set {
				flags |= 4 << bit
			}
		}
		e.uint(flags)
		for _, x := range v.numbers() {
			e.float32(*x)
		}
	}
	e.int(p.next)
}

// counts are the numbers that every version since 2 has.
func (p *prequential) counts() []*uint64 {
	return []*uint64{
		&p.rulings[unruled], &p.rulings[kept], &p.rulings[abstained], &p.keptErrors,
		&p.sets.n, &p.sets.covered, &p.sets.size, &p.sets.empty, &p.pairs, &p.repeats,
	}
}

// encodeBefore writes what version 1 had, too.
func (p *prequential) encodeBefore(e *encoder) {
	e.uint(p.n)
	e.uint(p.errors)
	e.float(p.nll)
	e.float(p.brier)
	for b := range eceBins {
		e.uint(p.binN[b])
		e.uint(p.binHits[b])
		e.float(p.binConf[b])
	}
	e.int(len(p.confusion))
	for _, row := range p.confusion {
		for _, v := range row {
			e.uint(v)
		}
	}
}

func (p *prequential) decodeBefore(d *decoder) {
	p.n, p.errors = d.uint(), d.uint()
	p.nll, p.brier = d.number("scores"), d.number("scores")
	for b := range eceBins {
		p.binN[b], p.binHits[b], p.binConf[b] = d.uint(), d.uint(), d.number("scores")
	}
	c := d.int(maxClasses, "confusion matrix")
	if len(d.buf) < c*c {
		d.fail("truncated confusion matrix")
		return
	}
	p.grow(c)
	for k := range p.confusion {
		for j := range p.confusion[k] {
			p.confusion[k][j] = d.uint()
		}
	}
}

// decodeVersion1 reads the scores of a state of version 1, which had a window of
// losses alone: the window begins anew.
func (p *prequential) decodeVersion1(d *decoder) {
	p.decodeBefore(d)
	for k, row := range p.confusion {
		for _, n := range row {
			p.labels[k] += n
		}
	}
	d.floats(d.int(scoreWindow, "score window"), "score window")
	d.int(scoreWindow-1, "score window")
}

func (p *prequential) decode(d *decoder) {
	p.decodeBefore(d)
	for k := range p.labels {
		p.labels[k] = d.uint()
	}
	p.baselines = d.uint()
	for _, s := range []*lossSum{&p.prior, &p.last} {
		s.errors, s.nll = d.uint(), d.number("scores")
	}
	for _, n := range p.counts() {
		*n = d.uint()
	}
	c := len(p.labels)
	p.lastLabel = d.int(c, "last label")
	p.ring = make([]verdict, d.int(scoreWindow, "score window"))
	if c == 0 && len(p.ring) > 0 {
		d.fail("scores of no class")
		return
	}
	for i := range p.ring {
		v := &p.ring[i]
		v.label, v.top, v.set = d.int(c-1, "class"), d.int(c, "class")-1, d.int(maxClasses+1, "size of a set")-1
		flags := d.uint()
		v.rule = ruling(min(flags&3, uint64(abstained)))
		v.prior.wrong, v.last.wrong, v.covered = flags&4 != 0, flags&8 != 0, flags&16 != 0
		for _, x := range v.numbers() {
			*x = d.float32("score window")
		}
	}
	p.next = d.int(scoreWindow-1, "score window")
	if d.err != nil {
		*p = prequential{}
	}
}
