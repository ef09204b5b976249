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

// Model predicts and learns; *online.Loop implements it.
type Model interface {
	Snapshot() *model.Posterior // its Bank for the time until Leave of Deps.Readers
	Status() *online.Status
	Uncertainty() *conformal.Uncertainty
	Learn(ctx context.Context, records []online.Record) error
	Idle(ctx context.Context) error
	Busy() bool
}

// longCommit is the time of a commit after which the next one takes all that has come meanwhile. Below
// it the window of the broker bounds a group, and with it the samples that wait for the learner.
const longCommit = 500 * time.Millisecond

// committer is the only writer of the journal. It commits in groups, acknowledges in
// the order of receipt and hands the records to the models.
type committer struct {
	in      *commitQueue
	probe   chan struct{} // requests an empty commit; capacity 1
	journal Journal
	models  []*modelState
	window  int           // unacknowledged messages at which a group is committed at once
	flush   time.Duration // longest wait of a record for its commit
	relaxed bool          // messages are acknowledged before the commit
	report  *reporter
	counts  *counters
	turned  chan<- struct{} // receives an element when the journal has begun to fail, or to work again; capacity 1
	log     *slog.Logger
	serving context.Context // once it has ended, nothing waits for a learner that is behind

	announced bool                                         // Home Assistant is enabled
	onLabel   func(model string, seq uint64, label string) // may be nil

	unconfirmed unconfirmed
	group       group
	disk
	stages []*stage // of the worker, which has ended when clean is set
	clean  bool     // all that the stages made is committed
}

// run commits until its queue is closed, then commits the rest. If ctx ends first,
// uncommitted messages are not acknowledged, and their changes are undone. Once serving has
// ended, it commits without waiting for a learner that is behind.
func (c *committer) run(ctx, serving context.Context) {
	c.serving = serving
	c.group.reset()
	defer c.rollback()
	c.resume()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var due <-chan time.Time
		if at := c.due(); !at.IsZero() {
			timer.Reset(time.Until(at))
			due = timer.C
		}
		select {
		case it, ok := <-c.in.items:
			if !ok {
				c.commitGroup(ctx)
				c.storeWindows(ctx)
				return
			}
			c.in.taken(it)
			if c.awaitCursor(ctx, it) && c.add(ctx, it) && c.full(it) {
				c.commitGroup(ctx)
			}
		case <-due:
			c.closeMinibatches(time.Now())
			c.commitGroup(ctx)
		case <-c.probe:
			c.commitRetrying(ctx, &online.Commit{})
		}
		if ctx.Err() != nil {
			return
		}
		if len(c.in.items) == 0 && !c.needsCommit() { // what waited for a slow disk needed no commit
			c.endTrouble()
		}
	}
}

// awaitCursor prepares for the messages of another connection. It reports false if
// the connection ended before the broker's cursor was known: the message then comes
// again over the next connection.
func (c *committer) awaitCursor(ctx context.Context, it *item) bool {
	u, msg := &c.unconfirmed, it.msg
	if !u.isFirst(msg) {
		return true
	}
	c.commitGroup(ctx) // the messages of the previous connection
	if ctx.Err() != nil {
		return false
	}
	select {
	case <-msg.From.CursorKnown():
	case <-msg.From.Lost():
	case <-ctx.Done():
		return false
	}
	// If both are true, all messages of the connection are dropped, not this one alone,
	// which would then be learnt after its successors.
	select {
	case <-msg.From.Lost():
		msg.Ack()
		it.asked(true)
		if it.detached() {
			it.detach()
			return true
		}
		it.free()
		return false
	default:
	}
	u.beginConnection(msg, msg.From.Cursor())
	if len(u.messages) > 0 {
		c.log.Debug("some messages may come again although they were learnt", "messages", len(u.messages), "renewed_identifiers", u.renumbers)
	}
	return true
}

// full reports whether the group is committed at once. With relaxed durability,
// messages other than requests are acknowledged at once, so that the broker sends more.
func (c *committer) full(it *item) bool {
	g := &c.group
	if c.relaxed && it.mutation == nil {
		it.msg.Ack()
		it.free()
		g.items, g.unacked = g.items[:len(g.items)-1], 0
		return len(g.records)+len(g.order) >= maxGroupRecords
	}
	more := c.took > longCommit && len(c.in.items) > 0 // they have waited for the disk, and share its next commit
	return c.relaxed || !c.needsCommit() || g.unacked >= c.window && !more ||
		len(g.items) >= maxGroupMessages || len(g.records) >= maxGroupRecords || g.bytes >= maxGroupBytes
}

// resume restores the pending samples, and starts the timer of a minibatch that was
// open when the node stopped. Without one it records nothing: a checkpoint of a program that
// learns nothing would only replace the older one.
func (c *committer) resume() {
	now := time.Now()
	for _, m := range c.models {
		if len(m.owed) > 0 {
			c.learn(m, nil)
		}
		var dropped []*pendingSample
		if m.pendingStore != nil { // inherited from the previous node
			dropped = m.pendingStore.setLimits(m.Pending)
		} else {
			m.pendingStore, dropped = newPendingStore(m.Pending, m.Waiting, now)
		}
		m.Waiting = nil
		m.pending.Store(int64(m.pendingStore.len()))
		c.forget(m, dropped, &c.counts.pendingEvicted)
		busy := m.Model.Busy() // if not, the status is that of all records
		status := m.Model.Status()
		m.labelCount = status.Learned + uint64(status.Open) + status.Behind
		if m.Batch.MaxWait > 0 && (busy || m.open > 0 || status.Open > 0) {
			m.since = now
		}
		if m.mark = m.Mark; c.announced && m.mark&markAnnounced == 0 {
			c.mark(m, m.mark|markAnnounced)
		}
		c.leaveFleet(m)
	}
	if c.needsCommit() {
		c.group.due = now
	}
}

// due returns the time of the next action without a message; zero for never.
func (c *committer) due() time.Time {
	at := c.group.due
	if c.told == slow && (at.IsZero() || c.calm.Before(at)) {
		at = c.calm
	}
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

// closeMinibatches closes the minibatches whose wait has ended. The boundaries become
// durable with the next commit: a crash before it undoes the steps, and the next start
// closes the minibatches anew. If a group waits as long as a minibatch does, the minibatch
// ends with the group. That of a model which is behind stays open: larger minibatches take
// less time for each sample.
func (c *committer) closeMinibatches(now time.Time) {
	for _, m := range c.models {
		waited := !m.since.IsZero() && now.Sub(m.since) >= m.Batch.MaxWait
		gathered := m.Batch.MaxWait > 0 && c.flush >= m.Batch.MaxWait &&
			slices.ContainsFunc(c.group.records, func(r online.Record) bool { return r.Model == m.Name && r.Kind == online.Observe })
		switch {
		case !waited && !gathered:
		case m.Model.Busy():
			if waited {
				m.since = now
			}
		default:
			c.group.record(m, online.Event{Kind: online.Boundary})
		}
	}
}

func (c *committer) mark(m *modelState, bits uint64) {
	c.group.previousMarks = append(c.group.previousMarks, online.Mark{Model: m.Name, Bits: m.mark})
	m.mark = bits
	c.group.marks = append(c.group.marks, online.Mark{Model: m.Name, Bits: bits})
}

// add adds a message to the group. It reports false if ctx ended while a part of the
// message was committed.
func (c *committer) add(ctx context.Context, it *item) bool {
	now := time.Now()
	c.group.add(it)
	repeated, records := c.unconfirmed.isRepetition(it.msg), c.group.recorded
	if it.mutation != nil {
		c.apply(it.mutation, repeated)
	}
	for i := range it.examples {
		e := &it.examples[i]
		if repeated && !e.detached {
			c.countRepetitions(e)
			continue
		}
		more, err := c.process(it, e, now)
		for ; more && err == nil; more, err = c.process(it, e, now) {
			if !c.commitPart(ctx) {
				return false
			}
		}
		if err != nil {
			c.report.refuse(e.from, e.from.models, it.msg, codec.Refuse(codec.Fault, "%w", err))
		}
	}
	it.asked(false)
	if it.stale {
		for _, m := range c.models {
			m.last.none = true
		}
	}
	c.unconfirmed.add(it.msg, it.labelsByID(), repeated || c.group.recorded > records)
	if c.needsCommit() && c.group.due.IsZero() {
		c.group.due = now.Add(c.flush)
	}
	return true
}

// commitPart commits the group without acknowledging its last message, whose samples are too
// many for one commit. If the rest is not committed, the message comes again, and finds the
// rest. It reports false if ctx ended.
func (c *committer) commitPart(ctx context.Context) bool {
	last := len(c.group.items) - 1
	it := c.group.items[last]
	c.group.items = c.group.items[:last]
	c.commitGroup(ctx)
	c.group.items = append(c.group.items, it)
	return ctx.Err() == nil
}

// needsCommit reports whether the group, or the set of unconfirmed messages, has to be committed.
func (c *committer) needsCommit() bool { return c.group.needsCommit() || c.unconfirmed.needsCommit }

// commitGroup commits the group, acknowledges its messages in the order of receipt and
// hands its records to the models. If ctx ends before the journal can be written,
// nothing of the group has happened, and the broker sends the messages again.
func (c *committer) commitGroup(ctx context.Context) {
	g := &c.group
	durable := c.needsCommit()
	if durable {
		commit := g.commit()
		if commit.Later = g.closesOnly() && !c.unconfirmed.needsCommit; commit.Later {
			durable = false
		} else {
			commit.Taken = c.unconfirmed.commit()
		}
		if !c.commitRetrying(ctx, commit) {
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
	for _, f := range g.afterCommit {
		f()
	}
	g.observeLags()
	byModel := map[string][]online.Record{}
	for _, r := range g.records {
		byModel[r.Model] = append(byModel[r.Model], r)
	}
	now := time.Now()
	for _, m := range c.models {
		m.pendingStore.commit()
		m.committedLast.copyFrom(&m.last)
		m.classes.commit(g.records)
		m.pending.Store(int64(m.pendingStore.len()))
		m.queries.prune(m.pendingStore)
		records := byModel[m.Name]
		if len(records) == 0 {
			continue
		}
		m.countMinibatch(records, now, c.counts)
		c.learn(m, records)
	}
	g.reset()
}

// learn hands committed records to the model, after those that it is owed. If the model has no room
// for them and serving has ended, the next node hands them over, or the journal does after the next start.
func (c *committer) learn(m *modelState, records []online.Record) {
	records, m.owed = append(m.owed, records...), nil
	if err := m.Model.Learn(c.serving, records); err != nil {
		m.owed = records
	}
}

// rollback undoes the changes of an uncommitted group: the next node receives its
// messages again from the broker.
func (c *committer) rollback() {
	c.unconfirmed.rollback()
	for _, m := range c.models {
		m.pendingStore.rollback()
		m.last.copyFrom(&m.committedLast)
		m.classes.rollback()
		for _, mark := range slices.Backward(c.group.previousMarks) {
			if mark.Model == m.Name {
				m.mark = mark.Bits
			}
		}
	}
}

// countMinibatch counts the observations of the open minibatch. The count may be wrong
// after a restart, or when the learner refuses a sample: therefore a Boundary always
// follows a pause in the stream; it has no effect on an empty minibatch.
func (m *modelState) countMinibatch(records []online.Record, now time.Time, counts *counters) {
	for _, r := range records {
		if r.Kind == online.Observe || r.Kind == online.Correct {
			m.learned.Add(1)
			counts.learned.Add(1)
		}
		if r.Kind == online.Merge { // may leave it open
			continue
		}
		if r.Kind != online.Observe { // a correction or request closes the minibatch
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

// wake makes sure that a channel of capacity 1 has an element. It is not inlined: it has many callers.
//
//go:noinline
func wake(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
