package stream

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"edge/model"
	"edge/online"
	"edge/online/conformal"
	"edge/stream/codec"
)

// Journal makes lessons durable. Only the committer's goroutine calls it.
type Journal interface {
	// Commit makes everything in c durable in one transaction, or nothing. It
	// fills in the sequence numbers of c.Records. A commit of nothing reports
	// whether another one can succeed.
	Commit(c *online.Commit) error
	// Seen reports whether a record of the model with this key was committed, as
	// far back as the journal remembers.
	Seen(model string, key uint64) bool
}

// Model predicts and learns; *online.Loop is one.
type Model interface {
	Posterior() *model.Posterior
	Status() *online.Status
	Uncertainty() *conformal.Uncertainty
	Learn(ctx context.Context, records []online.Record) error
	Idle(ctx context.Context) error
}

const (
	commitQueue = 64 // messages between the worker and the committer

	firstPause = 100 * time.Millisecond // after a commit that failed; doubled
	longPause  = 5 * time.Second
)

// committer is the only writer of the journal. It commits in groups,
// acknowledges in the order of receipt and hands the records to the models.
type committer struct {
	in      <-chan *item
	try     chan struct{} // asks for a commit of nothing; room for one
	journal Journal
	models  []*modelState
	window  int           // messages of QoS 1 that wait for no more company
	flush   time.Duration // longest wait for company
	relaxed bool          // messages are acknowledged before the commit
	report  *reporter
	counts  *counters
	log     *slog.Logger

	announced bool                                         // Home Assistant is told about the models
	labelled  func(model string, seq uint64, label string) // may be nil

	unconfirmed unconfirmed
	group       group
}

// run commits until its queue is closed, then commits the rest. If ctx ends
// first, what is not committed is not acknowledged, and taken back.
func (c *committer) run(ctx context.Context) {
	c.group.reset()
	defer c.takeBack()
	c.recover(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var due <-chan time.Time
		if at := c.due(); !at.IsZero() {
			timer.Reset(time.Until(at))
			due = timer.C
		}
		select {
		case it, ok := <-c.in:
			if !ok {
				c.settle(ctx)
				return
			}
			if c.meet(ctx, it) {
				c.add(it)
				if c.full(it) {
					c.settle(ctx)
				}
			}
		case <-due:
			c.boundaries(time.Now())
			c.settle(ctx)
		case <-c.try:
			c.commit(ctx, &online.Commit{})
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// meet prepares for the messages of another connection. It reports false where
// the connection ended before the broker's cursor was known: the message comes
// again over the next one.
func (c *committer) meet(ctx context.Context, it *item) bool {
	u, msg := &c.unconfirmed, it.msg
	if !u.meets(msg) {
		return true
	}
	c.settle(ctx) // what came over the connection before
	if ctx.Err() != nil {
		return false
	}
	select {
	case <-msg.From.CursorKnown():
	case <-msg.From.Lost():
	case <-ctx.Done():
		return false
	}
	// Both may be: then all that came over the connection is left out, not this
	// message alone, which would be learnt after those that follow it.
	select {
	case <-msg.From.Lost():
		msg.Ack()
		it.free()
		return false
	default:
	}
	u.begin(msg, msg.From.Cursor())
	if len(u.messages) > 0 {
		c.log.Debug("some messages may come again although they were learnt", "messages", len(u.messages), "renewed_identifiers", u.renewed)
	}
	return true
}

// full reports whether the group waits for no more company. Where durability is
// relaxed, messages but for requests are acknowledged at once, and the broker
// sends more.
func (c *committer) full(it *item) bool {
	g := &c.group
	if c.relaxed && it.order == nil {
		it.msg.Ack()
		it.free()
		g.items, g.unacked = g.items[:len(g.items)-1], 0
		return len(g.records)+len(g.order) >= MaxGroup
	}
	return c.relaxed || !c.durable() || g.unacked >= c.window || len(g.items) >= maxGroup || len(g.records) >= MaxGroup
}

// recover takes up the samples that wait, and lets a minibatch that was filling
// when the node stopped be closed in time.
func (c *committer) recover(ctx context.Context) {
	now := time.Now()
	for _, m := range c.models {
		if len(m.owed) > 0 {
			c.teach(ctx, m, m.owed)
		}
		var dropped []*waiter
		if m.waiting != nil { // it was handed over
			dropped = m.waiting.limit(m.Pending)
		} else {
			m.waiting, dropped = newWaiting(m.Pending, m.Waiting, now)
		}
		m.Waiting = nil
		m.pending.Store(int64(m.waiting.len()))
		c.dropped(m, dropped, &c.counts.pendingEvicted)
		status := m.Model.Status()
		m.place = status.Learned + uint64(status.Open)
		if m.Batch.MaxWait > 0 {
			m.since = now
		}
		if m.mark = m.Mark; c.announced && m.mark&markAnnounced == 0 {
			c.mark(m, m.mark|markAnnounced)
		}
	}
	if c.durable() {
		c.group.due = now
	}
}

// due returns when something is to be done even if no message comes; zero for never.
func (c *committer) due() time.Time {
	at := c.group.due
	for _, m := range c.models {
		if m.since.IsZero() {
			continue
		}
		if t := m.since.Add(m.Batch.MaxWait); at.IsZero() || t.Before(at) {
			at = t
		}
	}
	return at
}

// boundaries closes the minibatches that have waited long enough. Where a group
// waits as long as that for company, what it has gathered has, and the boundary
// needs no commit of its own.
func (c *committer) boundaries(now time.Time) {
	for _, m := range c.models {
		waited := !m.since.IsZero() && now.Sub(m.since) >= m.Batch.MaxWait
		gathered := m.Batch.MaxWait > 0 && c.flush >= m.Batch.MaxWait &&
			slices.ContainsFunc(c.group.records, func(r online.Record) bool { return r.Model == m.Name && r.Kind == online.Observe })
		if waited || gathered {
			c.group.record(m, online.Event{Kind: online.Boundary})
		}
	}
}

func (c *committer) mark(m *modelState, bits uint64) {
	c.group.was = append(c.group.was, online.Mark{Model: m.Name, Bits: m.mark})
	m.mark = bits
	c.group.marks = append(c.group.marks, online.Mark{Model: m.Name, Bits: bits})
}

func (c *committer) add(it *item) {
	now := time.Now()
	c.group.items = append(c.group.items, it)
	repeated, records := c.unconfirmed.repeats(it.msg), len(c.group.records)
	if it.order != nil {
		c.obey(it.order, repeated)
	}
	if it.msg.QoS > 0 {
		c.group.unacked++
	}
	for i := range it.lessons {
		l := &it.lessons[i]
		if repeated {
			c.repeated(l)
			continue
		}
		if err := c.consider(it, l, now); err != nil {
			c.report.refuse(l.from, l.from.models, it.msg, codec.Refuse(codec.Fault, "%w", err))
		}
	}
	c.unconfirmed.take(it.msg, it.named(), repeated || len(c.group.records) > records)
	if c.durable() && c.group.due.IsZero() {
		c.group.due = now.Add(c.flush)
	}
}

// durable reports whether the group needs a commit.
func (c *committer) durable() bool { return c.group.durable() || c.unconfirmed.due }

// settle commits the group, acknowledges its messages in the order of receipt
// and hands its records over. If ctx ends before the journal works, nothing of
// it has happened, and the broker sends the messages again.
func (c *committer) settle(ctx context.Context) {
	g := &c.group
	durable := c.durable()
	if durable {
		commit := g.commit()
		commit.Taken = c.unconfirmed.commit()
		if !c.commit(ctx, commit) {
			return
		}
	}
	release := c.unconfirmed.hold(durable)
	for _, it := range g.items {
		it.msg.Ack()
		it.free()
	}
	c.unconfirmed.acknowledged(durable)
	release()
	for _, f := range g.done {
		f()
	}
	byModel := map[string][]online.Record{}
	for _, r := range g.records {
		byModel[r.Model] = append(byModel[r.Model], r)
	}
	now := time.Now()
	for _, m := range c.models {
		m.waiting.keep()
		m.settled.copy(&m.last)
		m.classes.keep()
		m.pending.Store(int64(m.waiting.len()))
		m.queries.prune(m.waiting)
		records := byModel[m.Name]
		if len(records) == 0 {
			continue
		}
		m.committed(records, now, c.counts)
		c.teach(ctx, m, records)
	}
	g.reset()
}

// teach hands committed records over. If ctx ends first, they are owed: the node
// that follows hands them over, or the journal does after the next start.
func (c *committer) teach(ctx context.Context, m *modelState, records []online.Record) {
	m.owed = nil
	if err := m.Model.Learn(ctx, records); err != nil {
		m.owed = records
		c.log.Warn("learning is postponed; the journal has the records", "model", m.Name, "records", len(records), "reason", err)
	}
}

// takeBack makes what is known of samples and messages what it was before a group
// that was not committed: the node that follows takes the group's messages anew
// when the broker sends them again.
func (c *committer) takeBack() {
	c.unconfirmed.undo()
	for _, m := range c.models {
		m.waiting.undo()
		m.last.copy(&m.settled)
		m.classes.undo()
		for _, mark := range slices.Backward(c.group.was) {
			if mark.Model == m.Name {
				m.mark = mark.Bits
			}
		}
	}
}

// committed follows the filling of the minibatch. The count may be off after a
// restart, or when the learner refuses a sample: so a Boundary always ends a
// pause in the stream, and closes nothing if the minibatch is empty.
func (m *modelState) committed(records []online.Record, now time.Time, counts *counters) {
	for _, r := range records {
		if r.Kind == online.Observe || r.Kind == online.Correct {
			m.learned.Add(1)
			counts.learned.Add(1)
		}
		if r.Kind != online.Observe { // which closes the minibatch
			m.open, m.since = 0, time.Time{}
			continue
		}
		m.open++
		full := m.open >= m.Batch.MaxSize
		if m.Batch.MaxWait > 0 && (m.open == 1 || full) {
			m.since = now
		}
		if full {
			m.open = 0
		}
	}
}

// commit tries until it succeeds. It reports false if ctx ended first.
func (c *committer) commit(ctx context.Context, commit *online.Commit) bool {
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		err := c.journal.Commit(commit)
		if err == nil {
			if c.counts.degraded.Swap(false) {
				c.log.Info("the journal works again")
				c.report.event("", "store_recovered", "")
			}
			return true
		}
		c.counts.commitFailures.Add(1)
		why := err.Error()
		c.counts.commitError.Store(&why)
		if !c.counts.degraded.Swap(true) {
			c.log.Error("the journal cannot be written; predictions go on, nothing is learnt or acknowledged until it works again", "error", err)
			c.report.event("", "store_degraded", why)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false
		}
	}
}
