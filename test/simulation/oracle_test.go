package simulation

import (
	"fmt"
	"maps"
	"slices"

	"edge/online"
)

// meaning is what a message says, as its publisher knows it.
type meaning struct {
	entries []entry
}

// entry is one sample, one late label, or one request.
type entry struct {
	models []string // that it is for
	x      []float64
	id     string
	label  string
	verb   string // of a request
	name   string // that it is about
}

// lesson is a record that a message must have caused.
type lesson struct {
	kind        online.Kind
	x           []float64
	label, name string
}

// oracle decides whether one model was taught what it should have been: every
// message of the node's session, in the order of the session, once.
type oracle struct {
	world   *world
	model   string
	records []lesson
	steps   int
	vain    map[string]bool // where explain was tried in vain
	far     int             // records that could be explained
	why     string          // the next one could not
}

// belief is what is known of a model after some of the messages.
type belief struct {
	samples map[string]sample // that have an id
	last    sample            // the latest
	lastID  string            // its id
	born    int               // life in which it came first
	off     bool              // learning
	classes map[string]bool
	used    map[*mistake]int
	qos0    map[int]bool // that were learnt
	excused int
}

type sample struct {
	x     []float64
	label string
	born  int // life in which it came first with its label; 0: its label came later, and no start forgets it
}

// remembered reports whether a message finds a sample that had its label at
// once, which only the life that learnt it keeps for a correction.
func (s sample) remembered(d *delivery) bool { return s.born == 0 || s.born == d.died }

func (b *belief) clone() *belief {
	c := *b
	c.samples, c.classes, c.used, c.qos0 = maps.Clone(b.samples), maps.Clone(b.classes), maps.Clone(b.used), maps.Clone(b.qos0)
	return &c
}

// verdict checks a model, and returns how many samples of it must be waiting.
func (w *world) verdict(model string) (waiting int, err error) {
	o := &oracle{world: w, model: model, vain: map[string]bool{}}
	for i := range w.truth.models[model].records {
		r := &w.truth.models[model].records[i]
		if r.Kind != online.Boundary {
			o.records = append(o.records, lesson{r.Kind, r.X, r.Label, r.Name})
		}
	}
	b := &belief{samples: map[string]sample{}, classes: map[string]bool{}, used: map[*mistake]int{}, qos0: map[int]bool{}}
	for _, name := range w.plan.classes {
		b.classes[name] = true
	}
	end := o.explain(0, 0, b)
	if end == nil {
		return 0, fmt.Errorf("model %s, record %d of %d: %s", model, o.far, len(o.records), o.why)
	}
	w.excused += end.excused
	for _, s := range end.samples {
		if s.label == "" {
			waiting++
		}
	}
	if end.excused > 0 {
		waiting = -1 // not known
	}
	return waiting, nil
}

const maxSteps = 100_000

// explain explains the records from number at on by the messages from number i
// on. It returns what is known in the end, nil if they cannot be explained. The
// same is not tried twice: what is open multiplies the ways to get there.
func (o *oracle) explain(i, at int, b *belief) *belief {
	c := *b
	c.excused = 0
	key := fmt.Sprint(i, at, c)
	if o.vain[key] {
		return nil
	}
	end := o.attempt(i, at, b)
	if end == nil {
		o.vain[key] = true
	}
	return end
}

func (o *oracle) attempt(i, at int, b *belief) *belief {
	history := o.world.history
	for ; i < len(history); i++ {
		if history[i].lost > 0 {
			return o.forgotten(i, at, b)
		}
		end, n, ok := o.message(i, at, b)
		if end != nil || !ok {
			return end
		}
		at = n
	}
	for at < len(o.records) && o.spare(at, b) {
		at++
	}
	if at < len(o.records) {
		o.blame(at, fmt.Errorf("%v was learnt twice, or never sent", o.records[at]))
		return nil
	}
	return b
}

// message explains the records of one message. Where there are several
// possibilities it tries to explain what follows, too, and returns the end.
func (o *oracle) message(i, at int, b *belief) (end *belief, n int, ok bool) {
	if o.steps++; o.steps > maxSteps {
		o.why = "too many possibilities"
		return nil, at, false
	}
	d := o.world.history[i]
	if d.meaning == nil || d.retained {
		return nil, at, true
	}
	if d.mistaken != nil && b.used[d.mistaken] < d.mistaken.left {
		if end := o.mistaken(i, at, b); end != nil {
			return end, 0, true
		}
	}
	decline := false
	if o.open(d, b) {
		taken := b.clone()
		if n, err := o.apply(d, at, taken, false); err == nil {
			if end := o.explain(i+1, n, taken); end != nil {
				return end, 0, true
			}
		}
		decline = true
	}
	n, err := o.apply(d, at, b, decline)
	if err != nil {
		o.blame(at, err)
	}
	return nil, n, err == nil
}

// mistaken leaves out a message that may have been taken for a repetition.
func (o *oracle) mistaken(i, at int, b *belief) *belief {
	d := o.world.history[i]
	taken := b.clone()
	if n, err := o.apply(d, at, taken, false); err == nil {
		if end := o.explain(i+1, n, taken); end != nil {
			return end
		}
	}
	without := b.clone()
	without.used[d.mistaken]++
	without.excused++
	return o.explain(i+1, at, without)
}

// forgotten explains messages that were lost, with a session or because the file of
// before was restored: those before some of them may have been learnt, of the
// records that the file had.
func (o *oracle) forgotten(i, at int, b *belief) *belief {
	history := o.world.history
	limit, limited := o.world.limits[history[i].lost]
	taken := b.clone()
	end, n, ok := o.message(i, at, taken)
	if end != nil {
		return end
	}
	if ok && (!limited || n <= limit[o.model]) {
		if end := o.explain(i+1, n, taken); end != nil {
			return end
		}
	}
	next := i
	for next < len(history) && history[next].lost == history[i].lost {
		next++
	}
	return o.explain(next, at, b)
}

func (o *oracle) blame(at int, err error) {
	if at >= o.far {
		o.far, o.why = at, err.Error()
	}
}

// open reports whether a message may have taught nothing: then a record like its
// own may be another's.
func (o *oracle) open(d *delivery, b *belief) bool {
	if o.world.lives == 1 {
		return false
	}
	b = b.clone() // which the entries change
	for i := range d.meaning.entries {
		if e := &d.meaning.entries[i]; slices.Contains(e.models, o.model) {
			if want, optional := b.expect(e, d); want != nil && optional {
				return true
			}
		}
	}
	return false
}

// apply explains the records that one message has caused; decline says that what
// may be missing is.
func (o *oracle) apply(d *delivery, at int, b *belief, decline bool) (int, error) {
	for i := range d.meaning.entries {
		e := &d.meaning.entries[i]
		if !slices.Contains(e.models, o.model) {
			continue
		}
		want, optional := b.expect(e, d)
		if want == nil {
			continue
		}
		if optional && decline {
			b.excused++
			continue
		}
		for at < len(o.records) && !want.equals(&o.records[at]) && o.spare(at, b) {
			at++
		}
		switch {
		case at < len(o.records) && want.equals(&o.records[at]):
			at++
			b.learn(e, want, d)
		case optional:
			b.excused++
		default:
			got := "nothing"
			if at < len(o.records) {
				got = fmt.Sprint(o.records[at])
			}
			return at, fmt.Errorf("%s %s must teach %v, and there is %s", d.topic, d.payload, *want, got)
		}
	}
	return at, nil
}

// spare reports whether a record is of a message of QoS 0, once.
func (o *oracle) spare(at int, b *belief) bool {
	for i, p := range o.world.loose {
		for _, e := range p.meaning.entries {
			if !b.qos0[i] && slices.Contains(e.models, o.model) && (&lesson{online.Observe, e.x, e.label, ""}).equals(&o.records[at]) {
				b.qos0[i] = true
				return true
			}
		}
	}
	return false
}

func (l *lesson) equals(other *lesson) bool {
	return l.kind == other.kind && l.label == other.label && l.name == other.name && slices.Equal(l.x, other.x)
}

func (l lesson) String() string {
	return describe(&online.Event{Kind: l.kind, X: l.x, Label: l.label, Name: l.name})
}

// expect returns what an entry must teach, nil if nothing, by the rules of the
// README. Optional: it may have been impossible.
func (b *belief) expect(e *entry, d *delivery) (want *lesson, optional bool) {
	switch {
	case e.verb != "":
		return b.obey(e), false
	case e.x != nil:
		return b.sample(e, d)
	}
	return b.late(e, d)
}

func (b *belief) sample(e *entry, d *delivery) (want *lesson, optional bool) {
	known, waits := b.samples[e.id]
	if e.id == "" {
		known, waits = sample{}, false
	}
	if e.label == "" {
		b.last, b.lastID, b.born = sample{x: e.x}, e.id, d.born
		if e.id != "" && !waits {
			b.samples[e.id] = sample{x: e.x}
		}
		return nil, false
	}
	switch {
	case b.off || known.label == e.label:
		return nil, false
	case known.label != "":
		return &lesson{online.Correct, e.x, e.label, known.label}, !known.remembered(d)
	}
	b.last, b.lastID, b.born = sample{x: e.x, label: e.label}, e.id, d.born
	return &lesson{online.Observe, e.x, e.label, ""}, false
}

// late is a label for a sample that came before.
func (b *belief) late(e *entry, d *delivery) (want *lesson, optional bool) {
	s, known := b.samples[e.id]
	if e.id == "last" {
		s, known = b.last, b.last.x != nil
		if b.lastID != "" {
			s = b.samples[b.lastID]
		}
		optional = b.born != d.died // no start remembers which sample was the last
	}
	optional = optional || s.label != "" && !s.remembered(d)
	switch {
	case !known || b.off || s.label == e.label:
		return nil, false
	case s.label != "":
		return &lesson{online.Correct, s.x, e.label, s.label}, optional
	}
	return &lesson{online.Observe, s.x, e.label, ""}, optional
}

// obey is a request.
func (b *belief) obey(e *entry) *lesson {
	switch e.verb {
	case "learning":
		b.off = e.name == "OFF"
	case "class_add":
		if !b.classes[e.name] {
			return &lesson{kind: online.ClassAdd, label: e.name}
		}
	case "class_remove":
		if b.classes[e.name] {
			return &lesson{kind: online.ClassRemove, label: e.name}
		}
	}
	return nil
}

// learn takes up what has been taught.
func (b *belief) learn(e *entry, l *lesson, d *delivery) {
	switch l.kind {
	case online.ClassAdd:
		b.classes[l.label] = true
	case online.ClassRemove:
		delete(b.classes, l.label)
	case online.Observe, online.Correct:
		b.classes[l.label] = true
		id := e.id
		if id == "last" {
			id = b.lastID
			b.last.label = l.label
		}
		if id != "" {
			was, known := b.samples[id]
			if !known {
				was.born = d.born
			}
			b.samples[id] = sample{l.x, l.label, was.born}
		}
	}
}
