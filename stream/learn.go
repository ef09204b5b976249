package stream

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"edge/online"
	"edge/stream/codec"
)

// countRepetitions counts the parts of a repeated example.
func (c *committer) countRepetitions(e *example) {
	if e.to != nil {
		if e.label != "" {
			c.countRepetition(e.to)
		}
		return
	}
	for _, late := range e.targets {
		c.countRepetition(late.to)
	}
}

// process handles an example, and reports true if the rest of it must wait until the group
// is committed. It returns a panic as an error: the message is then acknowledged, or the
// broker would send it again after every restart.
func (c *committer) process(it *item, e *example, now time.Time) (more bool, err error) {
	defer online.Recover(&err)
	switch {
	case e.to != nil:
		c.expire(e.to, now)
		c.takeSample(it, e, now)
	case e.by != nil:
		more = c.takeSelection(it, e, now)
	default:
		c.takeLabel(it, e, now)
	}
	return more, nil
}

func (c *committer) expire(m *modelState, now time.Time) {
	c.forget(m, m.pendingStore.expire(now), &c.counts.pendingExpired)
}

// forget removes samples from the journal as well, and counts those that waited for
// their label. It is not inlined, which would make its callers larger for a few samples.
//
//go:noinline
func (c *committer) forget(m *modelState, gone []*pendingSample, count *atomic.Uint64) {
	for _, p := range gone {
		if p.sample.Label == "" {
			count.Add(1)
		}
		if p.stored {
			c.group.forgetPending(m, p.sample.Key)
		}
	}
}

// forgetLearnt forgets the samples that are kept for corrections: a model that is replaced
// does not have them.
func (c *committer) forgetLearnt(m *modelState) {
	c.forget(m, m.pendingStore.forgetLearnt(), &c.counts.pendingEvicted)
	if m.last.sample.Label != "" {
		m.last.none = true
	}
}

func (c *committer) seen(m *modelState, key uint64) bool {
	return c.group.keys[recordKey{m.Name, key}] || c.journal.Seen(m.Name, key)
}

// ignoreLabel counts a label that came while learning was off.
func (c *committer) ignoreLabel(m *modelState) {
	m.ignored.Add(1)
	c.counts.frozen.Add(1)
}

func (c *committer) countRepetition(m *modelState) {
	m.redelivered.Add(1)
	c.counts.redelivered.Add(1)
}

// takeSample learns a labelled sample, or stores an unlabelled one until its label comes.
func (c *committer) takeSample(it *item, e *example, now time.Time) {
	m := e.to
	waits := e.wait != 0 && m.Pending.Max > 0
	one := e.pending(e.label != "" || waits)
	before := m.pendingStore.get(e.wait)
	if e.label != "" && m.learningOff() {
		c.ignoreLabel(m)
		m.last.set(one, e.device, now)
		m.last.none = e.mayRepeat && c.seen(m, e.key)
		return
	}
	if before != nil && !before.same(&one) {
		c.countReuse(it, e)
		before = nil
	}
	if e.label != "" && c.takeLabelled(it, e, one, before, now) {
		return
	}
	m.last.set(one, e.device, now)
	switch {
	case !waits:
	case before != nil:
		c.countRepetition(m)
	case c.seen(m, e.key):
		m.last.none = true
		c.countRepetition(m)
	default:
		one.stored = true
		kept, dropped := m.pendingStore.add(one, now)
		c.group.storePending(&kept.sample)
		c.forget(m, dropped, &c.counts.pendingEvicted) // perhaps the sample itself
		m.queries.close(e.wait, &m.queries.expired)    // of a sample that had the id before
		if e.query != nil && m.pendingStore.get(e.wait) == kept {
			c.ask(m, e.query, e.wait, now)
		}
	}
}

// pending returns the sample of an example as it is kept; with slices of its own if owned is true:
// another item will use the memory.
func (e *example) pending(owned bool) pendingSample {
	one := pendingSample{
		sample: online.Pending{Model: e.to.Name, Key: e.wait, X: e.x, Probs: e.probs, Parts: e.parts, Meta: e.meta, Epoch: e.epoch},
		seq:    e.seq, device: e.device, fresh: true,
	}
	if s := &one.sample; owned {
		s.X, s.Probs, s.Parts = slices.Clone(s.X), slices.Clone(s.Probs), slices.Clone(s.Parts)
	}
	if e.wait != 0 {
		one.sample.Identity = e.key
	}
	if e.made {
		one.sample.Device, one.sample.From, one.sample.To = e.device, e.window.from, e.window.to
	}
	return one
}

// takeLabelled learns a sample with its label, or a correction of the label that it had. It reports
// false if the label of a new sample is not accepted. before is the pending sample, nil if it was not
// pending.
func (c *committer) takeLabelled(it *item, e *example, one pendingSample, before *pendingSample, now time.Time) (taken bool) {
	m, by := e.to, e.key // by: of the message
	if e.wait != 0 {
		by = it.entryKey(e.entry)
	}
	switch {
	case before != nil && m.corrects(before, e.label) && !e.made: // a window that is formed again corrects nothing
		if c.acceptLabel(it, e, m) {
			c.correct(before, e, m, by, now)
		}
	case e.mayRepeat && c.seen(m, e.key) || before != nil && before.sample.Label != "":
		c.countRepetition(m)
	case c.acceptLabel(it, e, m):
		c.group.record(m, online.Event{Kind: online.Observe, Key: e.key, X: one.sample.X, Label: e.label, Weight: e.weight, Known: e.known})
		m.last.set(one, e.device, now)
		c.setLabel(m, one, before, e, by, now)
	default:
		return false
	}
	return true
}

// setLabel notes that a sample was labelled, so that another label can correct it.
// before is the pending sample, nil if it was not pending.
func (c *committer) setLabel(m *modelState, one pendingSample, before *pendingSample, e *example, by uint64, now time.Time) {
	one.sample.Label, one.sample.By, one.sample.Parts = e.label, by, nil
	one.stored = before != nil && before.stored
	if before != nil && before.fresh && c.onLabel != nil {
		seq, label := before.seq, e.label
		c.group.onCommit(func() { c.onLabel(m.Name, seq, label) })
	}
	if !m.last.none && (e.id == codec.LastID || m.last.sample.Key == one.sample.Key) {
		m.last.sample.Label, m.last.sample.By = e.label, by
	}
	if one.sample.Key == 0 {
		return
	}
	m.queries.close(one.sample.Key, &m.queries.answered)
	if m.Pending.Corrections == 0 {
		if m.pendingStore.removeKey(one.sample.Key) != nil && one.stored {
			c.group.forgetPending(m, one.sample.Key)
		}
		m.pendingStore.noteGone(&one)
		m.pendingStore.noteDropped(one.sample.Key)
		return
	}
	kept, dropped := m.pendingStore.add(one, now)
	if kept.stored {
		c.group.storePending(&kept.sample)
	}
	c.forget(m, dropped, &c.counts.pendingEvicted)
}

// corrects reports whether label is of another class than the sample's label.
func (m *modelState) corrects(p *pendingSample, label string) bool {
	return p.sample.Label != "" && !m.classes.same(p.sample.Label, label)
}

// labelledBy reports whether a message has labelled the sample before.
func (c *committer) labelledBy(m *modelState, p *pendingSample, message uint64) bool {
	return message == p.sample.By || c.seen(m, message)
}

// same reports whether two samples with one key are equal. They differ if a device sends
// one id with all samples.
func (p *pendingSample) same(other *pendingSample) bool {
	if p.sample.Identity == 0 { // stored by an earlier version
		return slices.Equal(p.sample.X, other.sample.X)
	}
	return p.sample.Identity == other.sample.Identity
}

// countReuse counts a sample whose id another sample had, and logs a warning for the first
// one of a stream.
func (c *committer) countReuse(it *item, e *example) {
	c.counts.idReused.Add(1)
	if e.from.idReused.Swap(true) {
		return
	}
	advice := `if it is the id of the device, set id: "" for the stream`
	if e.device == "" {
		advice += "; if several devices number their samples, topic_template or device tells them apart"
	}
	c.log.Warn("an id came again with other features, and is treated as another sample", "stream", e.from.name, "topic", shortTopic(it.msg), "advice", advice)
	c.report.event("", "id_reused", fmt.Sprintf("stream %s: samples with other features have the same id: %s", e.from.name, advice))
}

// correct learns another label of a labelled sample.
func (c *committer) correct(before *pendingSample, e *example, m *modelState, by uint64, now time.Time) {
	p := before.sample
	c.group.record(m, online.Event{
		Kind: online.Correct, Key: by, X: p.X, Label: e.label, Name: p.Label, Probs: p.Probs, Meta: p.Meta, Weight: e.weight, Epoch: p.Epoch,
	})
	m.corrected.Add(1)
	c.setLabel(m, *before, before, e, p.By, now)
}

// acceptLabel reports whether the model accepts the label, and adds its class.
func (c *committer) acceptLabel(it *item, e *example, m *modelState) bool {
	var err *codec.Refusal
	switch reason := m.classes.refusal(e.label); reason {
	case "":
		_ = m.classes.change(c.group.next(), &online.Event{Kind: online.Observe, Label: e.label}) // it was checked
		return true
	case codec.UnknownClass:
		err = codec.Refuse(reason, "label %.80q is not one of the model's classes, which are closed", e.label)
	default:
		err = codec.Refuse(reason, "label %.80q would be one class more than classes.max = %d", e.label, m.Classes.Max)
	}
	c.report.refuse(e.from, []*modelState{m}, it.msg, err)
	return false
}

// takeLabel learns the samples of a late label.
func (c *committer) takeLabel(it *item, e *example, now time.Time) {
	var (
		reached bool // a sample was found, or was labelled before
		why     = unknownID(e.id)
		models  []*modelState
	)
	for i := range e.targets {
		late := &e.targets[i]
		m := late.to
		models = append(models, m)
		c.expire(m, now)
		p, err := c.find(e, late)
		switch {
		case err != nil:
			if why.Reason == codec.UnknownID {
				why = err
			}
			continue
		case p == nil || m.classes.same(p.sample.Label, e.label) || m.corrects(p, e.label) && e.mayRepeat && c.labelledBy(m, p, e.key):
			reached = true
			c.countRepetition(m)
			continue
		}
		reached = true
		if m.learningOff() {
			c.ignoreLabel(m)
			continue
		}
		if !c.acceptLabel(it, e, m) {
			continue
		}
		c.learnLate(p, e, m, now)
	}
	if !reached {
		c.report.refuse(e.from, models, it.msg, why)
	}
}

// learnLate learns the late label of a sample, or a correction of it.
func (c *committer) learnLate(p *pendingSample, e *example, m *modelState, now time.Time) {
	if p.sample.Label != "" {
		c.correct(p, e, m, e.key, now)
		return
	}
	c.recordDelay(m, p, now)
	m.judgeSet(p, e.label)
	s := p.sample
	key := s.Identity
	if key == 0 || e.by == nil && m.pendingStore.get(s.Key) != p { // the newest sample, which has no id or is not pending
		key = e.key
	}
	if s.Probs == nil { // no class was known then: the learner must not judge with its present classes
		s.Probs = []float64{}
	}
	c.group.record(m, online.Event{
		Kind: online.Observe, Key: key, X: s.X, Label: e.label, Probs: s.Probs, Parts: s.Parts, Meta: s.Meta, Weight: e.weight, Epoch: s.Epoch,
	})
	c.setLabel(m, *p, p, e, e.key, now)
}

// recordDelay records how late the label of a sample is, in time and in labels.
func (c *committer) recordDelay(m *modelState, p *pendingSample, now time.Time) {
	if p.sample.Key != 0 && m.pendingStore.get(p.sample.Key) == p {
		m.delays.add(m.pendingStore.clock(now) - p.sample.Clock)
	} else {
		m.delays.add(now.Sub(m.last.at))
	}
	m.delay.Store(int64(m.delays.value()))
	if p.fresh {
		c.group.late = append(c.group.late, lateLabel{m, len(c.group.records), p.seq})
	}
}

// judgeSet judges the published prediction set of a sample by its label.
func (m *modelState) judgeSet(p *pendingSample, label string) {
	post, s := m.Model.Snapshot(), &p.sample // its classes alone
	if !p.fresh || !s.Meta.Sets || s.Epoch != post.Epoch {
		return
	}
	if k, known := classOf(post, label); known {
		size := s.Meta.Size(s.Probs, s.X)
		m.aim.Judge(s.Meta.Holds(s.Probs, s.X, k), size, s.Meta.Version, m.labelCount+1)
	}
}

// unknownID is the refusal of a label by an id that no sample has.
func unknownID(id string) *codec.Refusal {
	return codec.Refuse(codec.UnknownID, "no sample with id %.80q waits for a label: it never came, waited too long, or made room for others", id)
}

// ambiguous is the refusal of a label by an id that samples of several devices share.
func ambiguous(id string) *codec.Refusal {
	return codec.Refuse(codec.AmbiguousID, "samples of several devices wait under id %.80q: send the label to …/label/<device>", id)
}

// sharing returns the keys of the samples with an id. Of those of stages, whose devices are
// known, they are those of the devices that the label's topic means.
func (m *modelState) sharing(id string, of *devices) []uint64 {
	return slices.DeleteFunc(m.pendingStore.sameID(waitKey("", nil, id)), func(key uint64) bool {
		device := m.pendingStore.get(key).sample.Device
		return device != "" && !of.have(device)
	})
}

// find returns the sample of a late label in one model; nil if the sample was labelled
// before and is not kept any more.
func (c *committer) find(e *example, late *labelTarget) (*pendingSample, *codec.Refusal) {
	m := late.to
	if e.id == codec.LastID {
		switch {
		case e.mayRepeat && c.seen(m, e.key):
			return nil, nil
		case m.last.none:
			return nil, unknownID(e.id)
		case !late.of.have(m.last.device):
			return nil, codec.Refuse(codec.UnknownID, "the newest sample of model %s is of device %.80q, not of %.80q: only an id finds an earlier one", m.Name, m.last.device, late.of.String())
		}
		if p := m.pendingStore.get(m.last.sample.Key); m.last.sample.Key != 0 && p != nil {
			return p, nil
		}
		return m.last.pending(), nil
	}
	keys := late.keys
	if late.byID {
		sharing := m.sharing(e.id, &late.of)
		if len(sharing) > 1 {
			return nil, ambiguous(e.id)
		}
		keys = slices.Concat(keys, sharing)
	}
	for _, k := range keys {
		if p := m.pendingStore.get(k); p != nil {
			return p, nil
		}
	}
	if late.byID {
		keys = append(keys, m.pendingStore.droppedWithID(waitKey("", nil, e.id))...)
	}
	for _, k := range keys {
		switch {
		case !m.pendingStore.wasDropped(k):
		case e.mayRepeat:
			return nil, nil
		default:
			return nil, codec.Refuse(codec.TooLate, "the sample with id %.80q was labelled before, and is not kept any more for a correction", e.id)
		}
	}
	return nil, unknownID(e.id)
}
