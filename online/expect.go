package online

import "math"

// mostExpected is the number of samples that are prepared at once, at most.
const mostExpected = 16

// expected are the next samples of the minibatch that is filling. The parts of their
// predictions that follow from the features alone are in the learner's workspace.
type expected struct {
	x    []float64 // n×D  raw
	n    int
	next int // the one that comes next
}

// drop forgets the samples: the model that was to predict them changes.
func (e *expected) drop() { e.n, e.next = 0, 0 }

// take returns the number in the workspace of a sample with features x, if it is the one
// that comes next.
func (e *expected) take(x []float64) (i int, ok bool) {
	if e.next >= e.n {
		return 0, false
	}
	i = e.next
	for j, v := range e.x[i*len(x) : (i+1)*len(x)] {
		if math.Float64bits(v) != math.Float64bits(x[j]) {
			e.drop()
			return 0, false
		}
	}
	e.next++
	return i, true
}

// Expect tells the learner which records come next. It then prepares the predictions of
// the samples that belong to the minibatch which is filling, in one go, and on several
// cores where it has them. No result depends on it, and the records need not come.
func (l *Learner) Expect(records []Record) {
	e := &l.expected
	if e.next < e.n || !l.view.Built() || l.view.Fleet != nil {
		return
	}
	e.drop()
	e.x = e.x[:0]
	for i := range records[:max(0, min(len(records), mostExpected, l.cfg.Batch.MaxSize-l.batch.len()))] {
		ev := &records[i].Event
		_, known := l.classes.index[ev.Label]
		if ev.Kind != Observe || ev.Probs != nil || !known || l.view.CheckInput(ev.X) != nil {
			break
		}
		e.x = append(e.x, ev.X...)
		e.n++
	}
	if e.n < 2 || !l.prepare(l.warmup.done && l.batch.len()+e.n == l.cfg.Batch.MaxSize) {
		e.drop()
	}
}

// prepare prepares the expected samples; a step follows them if step is true. It leaves a
// panic to the sample that is the cause.
func (l *Learner) prepare(step bool) (done bool) {
	defer func() {
		if recover() != nil {
			done = false
		}
	}()
	if step {
		l.bank.Awake()
	}
	return l.view.Prepare(l.expected.x, l.expected.n, l.bank, &l.ws)
}
