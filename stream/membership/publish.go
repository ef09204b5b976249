package membership

import (
	"time"

	"edge/online/fleet"
)

// own is the publication of the own contribution.
type own struct {
	stored  uint64 // epoch that the state file knows
	epoch   uint64 // of this process; 0: not chosen yet
	durable bool   // epoch is in the state file
	found   bool   // the broker kept a message at the first connection
	former  former // that message, or an older one that came later

	fleet.Version           // of the latest publication
	at            time.Time // of it
	labels        uint64    // in it
	waiting       time.Time // since when the model has labels that are not in it; zero: it has none
	bytes         int       // of it
	parts         int
	published     bool   // by this process
	known         bool   // by this process, or by the one before
	again         bool   // it has to be published again
	limit         int    // of a message, halved whenever one was not kept; 0: that of the configuration
	cleared       bool   // the broker had it, and a client has removed it
	strikes       int    // connections that ended right after it
	stopped       string // why nothing is published any more; "": it is
	echo
}

// Todo is the due work.
type Todo struct {
	Epoch    uint64        // to be made durable, see EpochDurable; 0: none
	Parts    bool          // the subscription to parts is needed
	Publish  bool          // the own contribution, see Publish
	Merge    *fleet.Set    // to be merged, see Merged; nil: none
	Announce []Publication // of a common basis
	Ask      []string      // filters to subscribe to, so that the broker sends messages again
	Enough   []string      // filters of which the subscription ends
}

// Learnt is the progress of the member's model.
type Learnt struct {
	Labels uint64
	Nats   float64 // sum of -log p(label) by the predictions before the labels were learnt
	Ready  bool    // there is something to contribute
	Behind bool    // the journal is being learnt
}

// Step returns the due work.
func (m *Member) Step(now time.Time, learnt Learnt) (todo Todo) {
	todo.Parts = m.parted
	m.info.observe(learnt.Nats)
	m.own.wait(now, learnt.Labels)
	if m.link.up {
		m.checkKept(now)
	}
	if m.link.up && !m.cfg.Follows() {
		m.chooseEpoch(now, gatherWithin)
		m.compareFormer(learnt)
		m.checkEcho(now)
		m.tryName(now)
		if !m.own.durable {
			todo.Epoch = m.own.epoch
		}
	}
	todo.Ask, todo.Enough = m.ask(now)
	todo.Publish = learnt.Ready && m.due(now, learnt.Labels)
	todo.Merge = m.mergeDue(now, learnt)
	todo.Announce = append(m.announce(now), m.takeBack(learnt)...)
	return todo
}

// takeBack returns the publications that remove from the broker what this node has published: as a
// member, before it was a follower, or of a model that has forgotten it. By a reset that one is in its
// warm-up again, and has nothing to publish for some time.
func (m *Member) takeBack(learnt Learnt) []Publication {
	o := &m.own
	switch {
	case m.cfg.Follows():
		if !o.found || !m.link.kept {
			return nil
		}
		o.found = false
		m.event("fleet_left", m.name+": this node only follows now, and its contribution is removed")
		return m.removal(m.name, o.former.parts)
	case !m.link.up || !o.known || o.cleared || o.stopped != "" || learnt.Ready || learnt.Behind || learnt.Labels >= o.labels:
		return nil
	}
	o.fresh, o.cleared, o.again = false, true, true
	m.event("fleet_left", m.name+": its model was reset, and its contribution is removed")
	return m.removal(m.name, o.parts)
}

// removal returns the publications that remove a member's message and its parts.
func (m *Member) removal(name string, parts int) []Publication {
	var all []Publication
	for _, topic := range m.topics.of(name, parts) {
		all = append(all, Publication{Topic: topic})
	}
	return all
}

// stop ends the publications until the next start, or until OtherEnded.
func (m *Member) stop(why, kind string) {
	if m.own.stopped == "" {
		m.own.stopped = why
		m.event(kind, why)
	}
}

// due reports whether the own contribution is to be published.
func (m *Member) due(now time.Time, labels uint64) bool {
	o := &m.own
	if m.cfg.Follows() || o.stopped != "" || !m.link.up || !o.durable {
		return false
	}
	switch since := now.Sub(o.at); {
	case !o.known:
		return true
	case o.again, m.basis.former:
		return since >= keptWithin
	case since < m.cfg.Interval:
		return false
	default:
		enough := m.cfg.Information > 0 && m.info.since() >= m.cfg.Information && labels > o.labels
		late := m.cfg.MaxWait > 0 && !o.waiting.IsZero() && now.Sub(o.waiting) >= m.cfg.MaxWait && fleet.Worthwhile(labels, o.labels)
		return enough || late || labels < o.labels || labels-o.labels >= m.cfg.Every
	}
}

// wait notes since when the model has labels that the latest publication lacks.
func (o *own) wait(now time.Time, labels uint64) {
	switch {
	case labels <= o.labels:
		o.waiting = time.Time{}
	case o.waiting.IsZero():
		o.waiting = now
	}
}

// Final reports whether the own contribution is to be published before the end.
func (m *Member) Final(labels uint64) bool {
	o := &m.own
	return !m.cfg.Follows() && o.stopped == "" && m.link.up && o.durable && labels != o.labels
}

// Publish returns the messages of a contribution with the next version. The error is that
// of AppendBinary.
func (m *Member) Publish(now time.Time, c *fleet.Contribution) ([]Publication, error) {
	o := &m.own
	next := fleet.Version{Epoch: o.epoch, Sequence: o.Sequence + 1}
	if o.Epoch != o.epoch {
		next.Sequence = 1
	}
	c.Instance, c.Version = m.instance, next
	data, err := c.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	all, parts := m.send(m.name, next, data)
	for i := parts; i < o.parts; i++ { // of a larger one before
		all = append(all, Publication{Topic: m.topics.Part(m.name, i)})
	}
	o.Version, o.at, o.labels, o.waiting, o.bytes, o.parts = next, now, c.N, time.Time{}, len(data), parts
	o.published, o.known, o.fresh, o.passed, o.again, o.cleared, o.upload = true, true, true, time.Time{}, false, false, upload{}
	m.basis.former, m.proposal = false, c.Proposal()
	m.info.published()
	return all, nil
}

// send returns the messages of a contribution, or of a common basis, and the number of its parts;
// 0: it is in one message. It counts their bytes.
func (m *Member) send(name string, v fleet.Version, data []byte) (all []Publication, parts int) {
	all = m.topics.Messages(name, v, data, m.limit())
	for _, p := range all {
		m.counts.Sent += uint64(len(p.Payload))
	}
	parts = len(all) - 1
	m.parted = m.parted || parts > 0
	return all, parts
}

// NotReady notes that there is nothing to publish yet, so that it is not asked for again
// at once.
func (m *Member) NotReady(now time.Time) {
	if m.own.published {
		m.own.at = now
	}
}

// OwnTopics are the topics on which the broker may keep messages of this member.
func (m *Member) OwnTopics() []string {
	if m.cfg.Follows() || !m.own.known {
		return nil
	}
	return m.topics.of(m.name, m.own.parts)
}
