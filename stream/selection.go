package stream

import (
	"cmp"
	"slices"
	"time"

	"edge/stream/codec"
	"edge/stream/signal"
)

// maxSelected bounds the samples that one label names. Each maxGroupRecords of them, or maxPart
// bytes, are a commit.
const maxSelected = 10_000

// maxPart is the size in bytes of records at which a part of a label is committed: with the
// pending samples that it replaces it fits in the smallest store.
const maxPart = 128 << 10

// span is a range of times.
type span struct {
	device   string // that the label itself names, of those that its topic means; "": all of them
	from, to int64  // ns since 1970
}

// holds reports whether a window lies in the span of a label.
func (t *labelTarget) holds(device string, from, to int64) bool {
	s := &t.span
	if to == 0 || from < s.from || to > s.to {
		return false
	}
	return (s.device == "" || s.device == device) && t.of.have(device)
}

// selectionResult is what became of the samples of a label that names several.
type selectionResult struct {
	labelled int      // now, or corrected
	already  int      // that had the same label
	expired  int      // that are not kept any more
	ignored  int      // while learning is switched off
	shared   []string // ids under which samples of several devices wait
}

// locateSelection prepares a label that names its samples otherwise than by one id.
func locateSelection(it *item, src *source, r *codec.Reading, captured []string) error {
	s, msg := r.Selection, it.msg
	if s.Seq > 0 && len(src.models) > 1 {
		return codec.Refuse(codec.BadID, "seq numbers the predictions of one model: send the label to the topic of that model, or set model for these topics")
	}
	e := example{from: src, label: r.Label, weight: r.Weight, key: it.entryKey(0), mayRepeat: msg.Retained, chosen: chosen{by: s}}
	for _, m := range src.models {
		target := labelTarget{to: m, span: span{device: s.Device, to: signal.FromTime(msg.Arrived)}}
		if why := target.locate(src, msg.Topic, captured, m.streams, s.IDs...); why != nil {
			return why
		}
		if s.From != "" {
			zone := cmp.Or(target.zone, time.Local)
			var ok, ended bool
			target.span.from, ok = signal.ParseTime(s.From, zone)
			if ended = true; s.To != "" {
				target.span.to, ended = signal.ParseTime(s.To, zone)
			}
			if !ok || !ended || target.span.from > target.span.to {
				return codec.Refuse(codec.BadID, "from %.40s to %.40s is no range of time", s.From, s.To)
			}
		}
		e.targets = append(e.targets, target)
	}
	it.examples = append(it.examples, e)
	return nil
}

// locate sets the keys and the devices of the samples with these ids that the topic of a label from
// src means in streams. It refuses a topic that names a device which none of them can have.
func (t *labelTarget) locate(src *source, topic string, captured []string, streams []*source, ids ...string) *codec.Refusal {
	misnaming := 0
	for _, s := range streams {
		levels, named := src.levels(topic, captured, s)
		switch named {
		case noDevice:
			misnaming++
			continue
		case oneDevice:
			for _, id := range ids {
				t.keys = append(t.keys, waitKey(s.identity, levels, id))
			}
		default:
			t.byID = true
		}
		t.of.add(levels, named)
		if s.stage != nil {
			t.zone = s.stage.zone
		}
	}
	if misnaming == len(streams) {
		return misnamed(topic, src.ownTopic, streams)
	}
	return nil
}

// takeSelection learns the samples that a label names otherwise than by one id, and answers
// what became of them once that is durable. It reports true if the group must be committed
// before more of them are learnt.
func (c *committer) takeSelection(it *item, e *example, now time.Time) (more bool) {
	for ; e.done < len(e.targets); e.done++ {
		t := &e.targets[e.done]
		m := t.to
		if !t.chosen {
			c.expire(m, now)
			t.found, t.result = m.choose(e.by, t)
			t.chosen = true
			if err := c.refuseSelection(it, e, t); err != nil {
				c.answer(m, t.result, err)
				continue
			}
		}
		for ; len(t.found) > 0; t.found = t.found[1:] {
			switch p := t.found[0]; {
			case m.classes.same(p.sample.Label, e.label):
				t.result.already++
				c.countRepetition(m)
			case m.learningOff():
				t.result.ignored++
				c.ignoreLabel(m)
			case len(c.group.records) >= maxGroupRecords || c.group.size >= maxPart:
				return true
			default:
				t.result.labelled++
				c.learnLate(p, e, m, now)
			}
		}
		c.answer(m, t.result, nil)
	}
	return false
}

// refuseSelection returns the reason why the chosen samples are not learnt, and reports it.
func (c *committer) refuseSelection(it *item, e *example, t *labelTarget) error {
	m := t.to
	var why *codec.Refusal
	switch n := len(t.found); {
	case n > maxSelected:
		why = codec.Refuse(codec.TooLarge, "the label names %d samples, at most %d are learnt together: divide the range", n, maxSelected)
	case n == 0 && len(t.result.shared) > 0:
		why = ambiguous(t.result.shared[0])
	case e.by.From == "" && n+t.result.already == 0:
		why = codec.Refuse(codec.UnknownID, "no sample of that label waits: it never came, waited too long, made room for others, or is of a device that the topic does not name")
	case n > 0 && !m.learningOff() && !c.acceptLabel(it, e, m): // which has reported it
		return codec.Refuse(codec.UnknownClass, "the model does not accept label %.80q", e.label).Err
	default:
		return nil
	}
	c.report.refuse(e.from, []*modelState{m}, it.msg, why)
	return why.Err
}

// choose returns the samples that a label names, oldest first, and counts those that are
// not kept any more.
func (m *modelState) choose(by *codec.Selection, t *labelTarget) (found []*pendingSample, result selectionResult) {
	switch {
	case by.Seq > 0:
		if p := m.bySeq(by.Seq); p != nil && t.of.have(p.device) {
			found = append(found, p)
		} else {
			result.expired++
		}
	case len(by.IDs) > 0:
		return m.byIDs(by.IDs, t)
	default:
		for p := range m.pendingStore.all {
			if t.holds(p.sample.Device, p.sample.From, p.sample.To) {
				found = append(found, p)
			}
		}
		slices.SortStableFunc(found, func(a, b *pendingSample) int { return cmp.Compare(a.sample.Clock, b.sample.Clock) })
		for _, g := range m.pendingStore.gone {
			switch {
			case !t.holds(g.device, g.from, g.to):
			case g.label == "":
				result.expired++
			default:
				result.already++
			}
		}
	}
	return found, result
}

// bySeq returns the sample of a prediction of this run, nil if it is not kept.
func (m *modelState) bySeq(seq uint64) *pendingSample {
	for p := range m.pendingStore.all {
		if p.fresh && p.seq == seq {
			return p
		}
	}
	if !m.last.none && m.last.fresh && m.last.seq == seq {
		return m.last.pending()
	}
	return nil
}

// byIDs returns the samples with ids. t.keys has a key for each of them and each stream
// whose device is known.
func (m *modelState) byIDs(ids []string, t *labelTarget) (found []*pendingSample, result selectionResult) {
	for i, id := range ids {
		var p *pendingSample
		for j := i; j < len(t.keys) && p == nil; j += len(ids) {
			p = m.pendingStore.get(t.keys[j])
		}
		var sharing []uint64
		if p == nil && t.byID {
			if sharing = m.sharing(id, &t.of); len(sharing) == 1 {
				p = m.pendingStore.get(sharing[0])
			}
		}
		switch {
		case len(sharing) > 1:
			result.shared = append(result.shared, id)
		case p == nil:
			result.expired++
		case !slices.Contains(found, p):
			found = append(found, p)
		}
	}
	return found, result
}

// answer publishes the result of a label of several samples, once it is durable.
func (c *committer) answer(m *modelState, r selectionResult, err error) {
	v := ResponsePayload{Status: "ok", Data: map[string]any{"model": m.Name, "labelled": r.labelled, "already": r.already, "expired": r.expired}}
	if r.ignored > 0 {
		v.Data["ignored"] = r.ignored
	}
	if len(r.shared) > 0 {
		v.Data["ambiguous"] = len(r.shared)
	}
	if err != nil {
		v.Status, v.Error = "error", err.Error()
	}
	c.group.onCommit(func() { c.report.respond("label", v) })
}
