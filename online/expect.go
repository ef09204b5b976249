package online

import (
	"math"

	"edge/model"
)

// mostExpected is the number of samples that are prepared at once, at most.
const mostExpected = 16

// expected are the next samples of the minibatch that is filling. The answers to them are
// in the learner's workspace.
type expected struct {
	x      []float64 // n×D  raw
	labels []int     // n    classes; −1 of a label that was known before its sample
	n      int
	next   int // the one that comes next

	observed []observation // that the mixture has not observed
}

// drop forgets the samples: the model that was to predict them changes.
func (e *expected) drop() { e.n, e.next = 0, 0 }

// take returns the number in the workspace of a sample of class k, if it is the one that
// comes next. One that is not ends them: the order of the labels is another one then.
func (e *expected) take(ev *Event, k int) (i int, ok bool) {
	if e.next >= e.n {
		return 0, false
	}
	i = e.next
	if e.labels[i] != ev.inOrder(k) {
		e.drop()
		return 0, false
	}
	for j, v := range e.x[i*len(ev.X) : (i+1)*len(ev.X)] {
		if math.Float64bits(v) != math.Float64bits(ev.X[j]) {
			e.drop()
			return 0, false
		}
	}
	e.next++
	return i, true
}

// inOrder is the class k of a sample, as far as it extends the order of the labels: −1 for a
// label that was known before its sample.
func (ev *Event) inOrder(k int) int {
	if ev.Known {
		return -1
	}
	return k
}

// expect gives the learner the records that come next. It then prepares the predictions of
// the samples that belong to the minibatch which is filling, in one go, and on several
// cores where it has them. No result depends on it, and the records need not come.
func (l *Learner) expect(records []Record) {
	e := &l.expected
	if e.next < e.n || !l.view.Built() || l.view.Fleet != nil {
		return
	}
	e.drop()
	e.x, e.labels = e.x[:0], e.labels[:0]
	for i := range records[:max(0, min(len(records), mostExpected, l.cfg.Batch.MaxSize-l.batch.len()))] {
		ev := &records[i].Event
		k, known := l.classes.index[ev.Label]
		if ev.Kind != Observe || ev.Probs != nil || !known || k >= len(l.view.Names) || l.view.CheckInput(ev.X) != nil {
			break
		}
		e.x, e.labels = append(e.x, ev.X...), append(e.labels, ev.inOrder(k))
		e.n++
	}
	step := l.warmup.done && l.batch.len()+e.n == l.cfg.Batch.MaxSize
	if e.n < 2 || !l.prepare(step, len(records) > e.n) {
		e.drop()
	}
}

// prepare prepares the expected samples; a step follows them if step is true, and others
// follow it if more is true. It leaves a panic to the sample that is the cause.
func (l *Learner) prepare(step, more bool) (done bool) {
	defer func() { _ = recover() }()
	l.settle()
	if step {
		l.bank.Awake(more)
	}
	e := &l.expected
	l.mix.Foresee(e.labels, &l.ws)
	return l.view.Prepare(e.x, e.n, l.bank, &l.ws)
}

// observation is a sample that the mixture is to observe.
type observation struct {
	class  int
	weight float64
	after  *model.Workspace // of its answer
}

// observeAnswer lets the mixture observe a sample of a class, whose answer is in ws. One that was
// prepared waits: nothing depends on the sums before the minibatch is closed.
func (l *Learner) observeAnswer(class int, weight float64, ws *model.Workspace) {
	if ws != &l.ws {
		l.expected.observed = append(l.expected.observed, observation{class, weight, ws})
		return
	}
	l.settle()
	l.mix.Observe(class, weight, ws)
	l.publishShares()
}

// settle lets the mixture observe the samples that wait. It comes before the sums or the
// classes are needed, and before others are prepared.
func (l *Learner) settle() {
	for i := range l.expected.observed {
		o := &l.expected.observed[i]
		l.mix.Observe(o.class, o.weight, o.after)
	}
	l.expected.observed = l.expected.observed[:0]
}
