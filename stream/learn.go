package stream

import (
	"edge/online"
	"edge/stream/codec"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// repeated counts what a repetition would have taught.
func (c *committer) repeated(l *lesson) {
	if l.to != nil {
		if l.label != "" {
			c.again(l.to)
		}
		return
	}
	for _, late := range l.labels {
		c.again(late.to)
	}
}

// consider takes up what a message teaches. A panic is the error: the message is
// then acknowledged, or the broker would send it again after every restart.
func (c *committer) consider(it *item, l *lesson, now time.Time) (err error) {
	defer online.Recover(&err)
	if l.to == nil {
		c.label(it, l, now)
		return nil
	}
	c.expire(l.to, now)
	c.sample(it, l, now)
	return nil
}

func (c *committer) expire(m *modelState, now time.Time) {
	c.dropped(m, m.waiting.expire(now), &c.counts.pendingExpired)
}

// dropped lets the journal forget samples as well, and counts those that were
// waiting for their label.
func (c *committer) dropped(m *modelState, gone []*waiter, count *atomic.Uint64) {
	for _, p := range gone {
		if p.sample.Label == "" {
			count.Add(1)
		}
		if p.stored {
			c.group.forget(m, p.sample.Key)
		}
	}
}

func (c *committer) seen(m *modelState, key uint64) bool {
	return c.group.keys[recordKey{m.Name, key}] || c.journal.Seen(m.Name, key)
}

// freeze counts a label that came while learning was off.
func (c *committer) freeze(m *modelState) {
	m.ignored.Add(1)
	c.counts.frozen.Add(1)
}

func (c *committer) again(m *modelState) {
	m.redelivered.Add(1)
	c.counts.redelivered.Add(1)
}

// sample teaches a labelled sample, and lets another one wait for its label.
func (c *committer) sample(it *item, l *lesson, now time.Time) {
	m := l.to
	if l.label != "" && m.off() {
		c.freeze(m)
		return
	}
	x, probs := l.x, l.probs
	waits := l.wait != 0 && m.Pending.Max > 0
	if l.label != "" || waits { // the item's memory is another's soon
		x, probs = slices.Clone(x), slices.Clone(probs)
	}
	one := waiter{
		sample:  online.Pending{Model: m.Name, Key: l.wait, X: x, Probs: probs, Meta: l.said, Ahead: l.ahead, Last: l.last, Epoch: l.epoch},
		version: l.version, seq: l.seq, fresh: true,
	}
	before := m.waiting.get(l.wait)
	if l.wait != 0 {
		one.sample.Identity = l.key
	}
	if before != nil && !before.same(&one) {
		c.reused(it, l)
		before = nil
	}
	if l.label != "" {
		said := l.key // of the message
		if l.wait != 0 {
			said = messageKey(it.msg.Topic, it.msg.Payload, l.entry)
		}
		switch {
		case before != nil && before.corrects(l.label):
			if c.admit(it, l, m) {
				c.correct(before, l, m, said, now)
			}
			return
		case l.repeat && c.seen(m, l.key) || before != nil && before.sample.Label != "":
			c.again(m)
			return
		case c.admit(it, l, m):
			c.group.record(m, online.Event{Kind: online.Observe, Key: l.key, X: x, Label: l.label, Weight: l.weight})
			m.last.keep(one, l.device, now)
			c.taught(m, one, before, l, said, now)
			return
		}
	}
	m.last.keep(one, l.device, now)
	switch {
	case !waits:
	case before != nil:
		c.again(m)
	case c.seen(m, l.key):
		m.last.none = true
		c.again(m)
	default:
		one.stored = true
		kept, dropped := m.waiting.add(one, now)
		c.dropped(m, dropped, &c.counts.pendingEvicted)
		c.group.wait(&kept.sample)
		if l.query != nil {
			c.ask(m, l.query, l.wait, now)
		}
	}
}

// taught remembers that a sample was taught its label, so that another one can
// correct it. before is the sample as it waited, if it did.
func (c *committer) taught(m *modelState, one waiter, before *waiter, l *lesson, by uint64, now time.Time) {
	one.sample.Label, one.sample.By = l.label, by
	one.stored = before != nil && before.stored
	if before != nil && before.fresh && c.labelled != nil {
		seq, label := before.seq, l.label
		c.group.done = append(c.group.done, func() { c.labelled(m.Name, seq, label) })
	}
	if !m.last.none && (l.id == codec.LastID || m.last.sample.Key == one.sample.Key) {
		m.last.sample.Label, m.last.sample.By = l.label, by
	}
	if one.sample.Key == 0 {
		return
	}
	m.queries.answer(one.sample.Key)
	if m.Pending.Corrections == 0 {
		if m.waiting.take(one.sample.Key) != nil && one.stored {
			c.group.forget(m, one.sample.Key)
		}
		m.waiting.forget(one.sample.Key)
		return
	}
	kept, dropped := m.waiting.add(one, now)
	if kept.stored {
		c.group.wait(&kept.sample)
	}
	c.dropped(m, dropped, &c.counts.pendingEvicted)
}

// corrects reports whether a label is another one than the sample was taught.
func (p *waiter) corrects(label string) bool {
	return p.sample.Label != "" && p.sample.Label != label
}

// heard reports whether a message has told a label of the sample before.
func (c *committer) heard(m *modelState, p *waiter, message uint64) bool {
	return message == p.sample.By || c.seen(m, message)
}

// same reports whether a sample under the same key is the same one, not another
// one of a device that sends its own id with each.
func (p *waiter) same(other *waiter) bool {
	if p.sample.Identity == 0 { // kept by an earlier version
		return slices.Equal(p.sample.X, other.sample.X)
	}
	return p.sample.Identity == other.sample.Identity
}

// reused counts a sample whose id another one had, and warns about the first one
// of a stream.
func (c *committer) reused(it *item, l *lesson) {
	c.counts.idReused.Add(1)
	if l.from.idReused.Swap(true) {
		return
	}
	detail := fmt.Sprintf("stream %s: samples with other features come under one id: if it is the device's, say id: \"\" for the stream", l.from.name)
	c.log.Warn("an id came again with other features, and is taken for another sample", "stream", l.from.name, "topic", it.msg.Topic, "way_out", "where it is the device's id, say id: \"\" for the stream")
	c.report.event("", "id_reused", detail)
}

// correct teaches another label of a sample that was taught one before.
func (c *committer) correct(before *waiter, l *lesson, m *modelState, by uint64, now time.Time) {
	p := before.sample
	c.group.record(m, online.Event{
		Kind: online.Correct, Key: by, X: p.X, Label: l.label, Name: p.Label, Probs: p.Probs, Meta: p.Meta, Weight: l.weight,
		Ahead: p.Ahead, Last: p.Last, Epoch: p.Epoch,
	})
	m.corrected.Add(1)
	c.taught(m, *before, before, l, p.By, now)
}

// admit reports whether the model may be taught the label, and remembers it.
func (c *committer) admit(it *item, l *lesson, m *modelState) bool {
	var err *codec.Refusal
	switch reason := m.classes.refusal(l.label); reason {
	case "":
		if m.Classes.Needed(m.classes.count()) <= 1 { // otherwise the learner says when it is a class
			m.classes.add(l.label)
		}
		return true
	case codec.UnknownClass:
		err = codec.Refuse(reason, "label %.80q is not one of the model's classes, which are closed", l.label)
	default:
		err = codec.Refuse(reason, "label %.80q would be one class more than classes.max = %d", l.label, m.Classes.Max)
	}
	c.report.refuse(l.from, []*modelState{m}, it.msg, err)
	return false
}

// label teaches the samples that a late label is for.
func (c *committer) label(it *item, l *lesson, now time.Time) {
	var (
		reached bool // a sample was found, or had been taught already
		why     = codec.Refuse(codec.UnknownID, "no sample with id %.80q waits for a label: it never came, waited too long, or made room for others", l.id)
		models  []*modelState
	)
	for i := range l.labels {
		late := &l.labels[i]
		m := late.to
		models = append(models, m)
		c.expire(m, now)
		p, err := c.find(l, late)
		switch {
		case err != nil:
			if err.Reason != codec.UnknownID {
				why = err
			}
			continue
		case p == nil || p.sample.Label == l.label || p.corrects(l.label) && l.repeat && c.heard(m, p, l.key):
			reached = true
			c.again(m)
			continue
		}
		reached = true
		if m.off() {
			c.freeze(m)
			continue
		}
		if !c.admit(it, l, m) {
			continue
		}
		if p.sample.Label != "" {
			c.correct(p, l, m, l.key, now)
			continue
		}
		c.measure(m, p, now)
		m.review(p, l.label)
		s := p.sample
		key := s.Identity
		if key == 0 || m.waiting.get(s.Key) != p { // the newest sample, which has no id or does not wait
			key = l.key
		}
		if s.Probs == nil { // no class was known: the learner must not judge by what it knows now
			s.Probs = []float64{}
		}
		c.group.record(m, online.Event{
			Kind: online.Observe, Key: key, X: s.X, Label: l.label, Probs: s.Probs, Meta: s.Meta, Weight: l.weight, Ahead: s.Ahead, Last: s.Last, Epoch: s.Epoch,
		})
		c.taught(m, *p, p, l, l.key, now)
	}
	if !reached {
		c.report.refuse(l.from, models, it.msg, why)
	}
}

// measure notes how late the label of a sample is, in time and in labels.
func (c *committer) measure(m *modelState, p *waiter, now time.Time) {
	if p.sample.Key != 0 && m.waiting.get(p.sample.Key) == p {
		m.delays.add(m.waiting.clock(now) - p.sample.Clock)
	} else {
		m.delays.add(now.Sub(m.last.at))
	}
	m.delay.Store(int64(m.delays.value()))
	if p.fresh {
		m.late.Observe(m.place+1, p.version)
		m.lag.Store(int64(m.late.Ahead()))
	}
}

// review judges the set that was published for a sample which is taught its
// label now.
func (m *modelState) review(p *waiter, label string) {
	post, s := m.Model.Posterior(), &p.sample
	if !p.fresh || !s.Meta.Sets || s.Epoch != post.Epoch {
		return
	}
	if k, known := classOf(post, label); known {
		size := s.Meta.Size(s.Probs, s.X)
		m.aim.Judge(s.Meta.Holds(s.Probs, s.X, k), size, p.version, m.place+1)
	}
}

// find returns the sample of one model that a late label is for; nil if it has
// been taught already and is not kept any more.
func (c *committer) find(l *lesson, late *lateLabel) (*waiter, *codec.Refusal) {
	m := late.to
	unknown := codec.Refuse(codec.UnknownID, "no sample with that id waits")
	if l.id == codec.LastID {
		switch {
		case l.repeat && c.seen(m, l.key):
			return nil, nil
		case m.last.none || late.device != "" && late.device != m.last.device:
			return nil, unknown
		}
		if p := m.waiting.get(m.last.sample.Key); m.last.sample.Key != 0 && p != nil {
			return p, nil
		}
		return m.last.waiting(), nil
	}
	keys := late.keys
	if late.byID {
		sharing := m.waiting.sharing(waitKey("", nil, l.id))
		if len(sharing) > 1 {
			return nil, codec.Refuse(codec.AmbiguousID, "samples of several devices wait under id %.80q: send the label to …/label/<device>", l.id)
		}
		keys = slices.Concat(keys, sharing)
	}
	for _, k := range keys {
		if p := m.waiting.get(k); p != nil {
			return p, nil
		}
	}
	for _, k := range keys {
		switch {
		case !m.waiting.forgot(k):
		case l.repeat:
			return nil, nil
		default:
			return nil, codec.Refuse(codec.TooLate, "the sample with id %.80q was taught its label, and is not kept any more for a correction", l.id)
		}
	}
	return nil, unknown
}
