package simulation

import (
	"fmt"
	"maps"
	"slices"

	"edge/online"
)

// meaning is the contents of a message that the simulation publishes.
type meaning struct {
	entries []entry
}

// entry is one sample, one late label, or one request.
type entry struct {
	models []string // that receive it
	x      []float64
	id     string
	label  string
	verb   string // of a request
	name   string // argument of the request
}

// effect is a record that a message must cause.
type effect struct {
	kind        online.Kind
	x           []float64
	label, name string
}

// oracle checks that the records of one model result from the messages of the node's
// session: every message once, in the order of the session.
type oracle struct {
	world    *world
	model    string
	records  []effect
	steps    int
	failed   map[string]bool // arguments for which explain has returned nil
	furthest int             // largest number of explained records
	reason   string          // why the next record could not be explained
}

// modelState is the expected state of a model after some of the messages.
type modelState struct {
	samples    map[string]sample // by id
	last       sample            // the latest
	lastID     string            // its id
	lastRun    int               // process that received it first
	off        bool              // learning is off
	fleet      bool              // a merge may bring classes, also ones that were removed
	classes    map[string]bool
	usedSkips  map[*ambiguity]int
	learntQoS0 map[int]bool // indices of world.qos0
	skipped    int
}

type sample struct {
	x     []float64
	label string
	run   int // process that received it with its label; 0: the label came later, so that every process can correct it
}

// correctable reports whether a message can correct a sample. Only the process that
// learnt it can if the sample arrived with its label.
func (s sample) correctable(d *delivery) bool { return s.run == 0 || s.run == d.ackedIn }

func (state *modelState) clone() *modelState {
	c := *state
	c.samples, c.classes, c.usedSkips, c.learntQoS0 = maps.Clone(state.samples), maps.Clone(state.classes), maps.Clone(state.usedSkips), maps.Clone(state.learntQoS0)
	return &c
}

// checkModel checks the records of a model, and returns the number of its samples that
// must be pending, −1 if it is not known.
func (w *world) checkModel(model string) (waiting int, err error) {
	if w.plan.rows != nil {
		return -1, w.checkRows(model)
	}
	o := &oracle{world: w, model: model, failed: map[string]bool{}}
	for i := range w.truth.models[model].records {
		r := &w.truth.models[model].records[i]
		if r.Kind != online.Boundary && r.Kind != online.Merge {
			o.records = append(o.records, effect{r.Kind, r.X, r.Label, r.Name})
		}
	}
	state := &modelState{fleet: w.fleet != nil, samples: map[string]sample{}, classes: map[string]bool{}, usedSkips: map[*ambiguity]int{}, learntQoS0: map[int]bool{}}
	for _, name := range w.plan.classes {
		state.classes[name] = true
	}
	end := o.explain(0, 0, state)
	if end == nil {
		return 0, fmt.Errorf("model %s, record %d of %d: %s", model, o.furthest, len(o.records), o.reason)
	}
	w.skipped += end.skipped
	for _, s := range end.samples {
		if s.label == "" {
			waiting++
		}
	}
	if end.skipped > 0 {
		waiting = -1
	}
	return waiting, nil
}

const maxSteps = 1_000_000

// explain explains the records from number at on by the messages from number i on. It
// returns the final state, nil if it cannot explain them. It tries the same arguments
// once, since optional effects multiply the paths to them.
func (o *oracle) explain(i, at int, state *modelState) *modelState {
	c := *state
	c.skipped = 0
	key := fmt.Sprint(i, at, c)
	if o.failed[key] {
		return nil
	}
	end := o.attempt(i, at, state)
	if end == nil {
		o.failed[key] = true
	}
	return end
}

func (o *oracle) attempt(i, at int, state *modelState) *modelState {
	history := o.world.history
	for ; i < len(history); i++ {
		if history[i].lost > 0 {
			return o.lost(i, at, state)
		}
		end, n, ok := o.message(i, at, state)
		if end != nil || !ok {
			return end
		}
		at = n
	}
	for at < len(o.records) && o.isQoS0(at, state) {
		at++
	}
	if at < len(o.records) {
		o.noteFailure(at, fmt.Errorf("%v was learnt twice, or never sent", o.records[at]))
		return nil
	}
	return state
}

// message explains the records of one message. If several explanations are possible it
// also explains the following messages, and returns the final state.
func (o *oracle) message(i, at int, state *modelState) (end *modelState, n int, ok bool) {
	if o.steps++; o.steps > maxSteps {
		o.reason = "too many possible explanations"
		return nil, at, false
	}
	d := o.world.history[i]
	if d.meaning == nil || d.retained {
		return nil, at, true
	}
	if d.ambiguous != nil && state.usedSkips[d.ambiguous] < d.ambiguous.left {
		if end := o.skip(i, at, state); end != nil {
			return end, 0, true
		}
	}
	decline := false
	if o.optional(d, state) {
		taken := state.clone()
		if n, err := o.apply(d, at, taken, false); err == nil {
			if end := o.explain(i+1, n, taken); end != nil {
				return end, 0, true
			}
		}
		decline = true
	}
	n, err := o.apply(d, at, state, decline)
	if err != nil {
		o.noteFailure(at, err)
	}
	return nil, n, err == nil
}

// skip explains the records with and then without an ambiguous message, which the node
// may have taken for a repetition.
func (o *oracle) skip(i, at int, state *modelState) *modelState {
	d := o.world.history[i]
	taken := state.clone()
	if n, err := o.apply(d, at, taken, false); err == nil {
		if end := o.explain(i+1, n, taken); end != nil {
			return end
		}
	}
	without := state.clone()
	without.usedSkips[d.ambiguous]++
	without.skipped++
	return o.explain(i+1, at, without)
}

// lost explains messages that were lost, with a session or by restoring a backup: the
// node may have learnt any number of the first of them, up to the records of the
// backup.
func (o *oracle) lost(i, at int, state *modelState) *modelState {
	history := o.world.history
	limit, limited := o.world.limits[history[i].lost]
	taken := state.clone()
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
	return o.explain(next, at, state)
}

func (o *oracle) noteFailure(at int, err error) {
	if at >= o.furthest {
		o.furthest, o.reason = at, err.Error()
	}
}

// optional reports whether a message may have had no effect; an equal record may then
// be that of another message.
func (o *oracle) optional(d *delivery, state *modelState) bool {
	if o.world.runs == 1 {
		return false
	}
	state = state.clone() // expect changes it
	for i := range d.meaning.entries {
		if e := &d.meaning.entries[i]; slices.Contains(e.models, o.model) {
			if want, optional := state.expect(e, d); want != nil && optional {
				return true
			}
		}
	}
	return false
}

// apply explains the records of one message; if decline is true, without its optional
// effects.
func (o *oracle) apply(d *delivery, at int, state *modelState, decline bool) (int, error) {
	for i := range d.meaning.entries {
		e := &d.meaning.entries[i]
		if !slices.Contains(e.models, o.model) {
			continue
		}
		want, optional := state.expect(e, d)
		if want == nil {
			continue
		}
		if optional && decline {
			state.skipped++
			continue
		}
		for at < len(o.records) && !want.equals(&o.records[at]) && o.isQoS0(at, state) {
			at++
		}
		switch {
		case at < len(o.records) && want.equals(&o.records[at]):
			at++
			state.learn(e, want, d)
		case optional:
			state.skipped++
		default:
			got := "no record"
			if at < len(o.records) {
				got = fmt.Sprint(o.records[at])
			}
			return at, fmt.Errorf("%s %s must cause the record %v, got %s", d.topic, d.payload, *want, got)
		}
	}
	return at, nil
}

// isQoS0 reports whether a record is that of an unused message of QoS 0, and marks the
// message as used.
func (o *oracle) isQoS0(at int, state *modelState) bool {
	for i, p := range o.world.qos0 {
		for _, e := range p.meaning.entries {
			if !state.learntQoS0[i] && slices.Contains(e.models, o.model) && (&effect{online.Observe, e.x, e.label, ""}).equals(&o.records[at]) {
				state.learntQoS0[i] = true
				return true
			}
		}
	}
	return false
}

func (eff *effect) equals(other *effect) bool {
	return eff.kind == other.kind && eff.label == other.label && eff.name == other.name && slices.Equal(eff.x, other.x)
}

func (eff effect) String() string {
	return describe(&online.Event{Kind: eff.kind, X: eff.x, Label: eff.label, Name: eff.name})
}

// expect returns the effect that an entry must have by the rules of the README, nil for
// no effect. optional: the node may have been unable to apply it.
func (state *modelState) expect(e *entry, d *delivery) (want *effect, optional bool) {
	switch {
	case e.verb != "":
		return state.request(e)
	case e.x != nil:
		return state.sample(e, d)
	}
	return state.late(e, d)
}

func (state *modelState) sample(e *entry, d *delivery) (want *effect, optional bool) {
	known, waits := state.samples[e.id]
	if e.id == "" {
		known, waits = sample{}, false
	}
	if e.label == "" {
		state.last, state.lastID, state.lastRun = sample{x: e.x}, e.id, d.sentIn
		if e.id != "" && !waits {
			state.samples[e.id] = sample{x: e.x}
		}
		return nil, false
	}
	switch {
	case state.off || known.label == e.label:
		return nil, false
	case known.label != "":
		return &effect{online.Correct, e.x, e.label, known.label}, !known.correctable(d)
	}
	state.last, state.lastID, state.lastRun = sample{x: e.x, label: e.label}, e.id, d.sentIn
	return &effect{online.Observe, e.x, e.label, ""}, false
}

// late returns the effect of a label for an earlier sample.
func (state *modelState) late(e *entry, d *delivery) (want *effect, optional bool) {
	s, known := state.samples[e.id]
	if e.id == "last" {
		s, known = state.last, state.last.x != nil
		if state.lastID != "" {
			s = state.samples[state.lastID]
		}
		optional = state.lastRun != d.ackedIn // a restart loses the last sample
	}
	optional = optional || s.label != "" && !s.correctable(d)
	switch {
	case !known || state.off || s.label == e.label:
		return nil, false
	case s.label != "":
		return &effect{online.Correct, s.x, e.label, s.label}, optional
	}
	return &effect{online.Observe, s.x, e.label, ""}, optional
}

// request returns the effect of a request.
func (state *modelState) request(e *entry) (want *effect, optional bool) {
	switch e.verb {
	case "learning":
		state.off = e.name == "OFF"
	case "class_add":
		if !state.classes[e.name] || state.fleet {
			return &effect{kind: online.ClassAdd, label: e.name}, state.fleet
		}
	case "class_remove":
		if state.classes[e.name] || state.fleet {
			return &effect{kind: online.ClassRemove, label: e.name}, state.fleet
		}
	}
	return nil, false
}

// learn updates the state by an effect.
func (state *modelState) learn(e *entry, eff *effect, d *delivery) {
	switch eff.kind {
	case online.ClassAdd:
		state.classes[eff.label] = true
	case online.ClassRemove:
		delete(state.classes, eff.label)
	case online.Observe, online.Correct:
		state.classes[eff.label] = true
		id := e.id
		if id == "last" {
			id = state.lastID
			state.last.label = eff.label
		}
		if id != "" {
			was, known := state.samples[id]
			if !known {
				was.run = d.sentIn
			}
			state.samples[id] = sample{eff.x, eff.label, was.run}
		}
	}
}
