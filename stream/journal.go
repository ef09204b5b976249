package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"edge/online"
	"edge/stream/field"
)

// Journal makes records durable. Only the committer's goroutine calls it.
type Journal interface {
	// Commit makes everything in c durable at once, or nothing, with c.Later as late as the
	// next commit. It sets the sequence numbers of c.Records. An empty commit reports whether the journal can
	// be written.
	Commit(c *online.Commit) error
	// Seen reports whether a record of the model with this key was committed, within
	// the memory of the journal.
	Seen(model string, key uint64) bool
}

const (
	firstPause = 100 * time.Millisecond // first pause after a failed commit; doubled
	longPause  = 5 * time.Second
	// slowCommit is the time after which a commit that goes on counts as a failure of the journal: the
	// broker's window is full by then.
	slowCommit = 2 * time.Second
	// calmAfter is the time without a slow commit after which the journal counts as working again: on a slow
	// disk each label would be reported twice otherwise.
	calmAfter = 10 * time.Minute
	// evictPause is the pause after which a journal at its limit is relieved of pending samples,
	// three seconds after the first error.
	evictPause = 1600 * time.Millisecond
)

// commitRetrying commits until it succeeds. It reports false if ctx ended first.
func (c *committer) commitRetrying(ctx context.Context, commit *online.Commit) bool {
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		err := c.commitWatched(commit)
		if err == nil {
			if c.took <= slowCommit || len(c.in.items) == 0 {
				c.endTrouble()
			}
			return true
		}
		c.counts.commitFailures.Add(1)
		c.degrade(failing, err.Error(), "the journal cannot be written; predictions go on, nothing is learnt or acknowledged until it works again")
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false
		}
		if pause >= evictPause && errors.Is(err, online.ErrLimit) {
			c.makeRoom(commit)
		}
	}
}

// commitWatched commits, and reports a disk that takes too long while it does.
func (c *committer) commitWatched(commit *online.Commit) error {
	told := make(chan struct{})
	alarm := time.AfterFunc(slowCommit, func() {
		defer close(told)
		c.degrade(slow, fmt.Sprintf("the disk is slow: a commit has not ended within %v", slowCommit),
			"the disk is slow; predictions go on, learning and acknowledgements wait for it")
	})
	began := time.Now()
	err := c.journal.Commit(commit)
	if c.took = time.Since(began); !alarm.Stop() {
		<-told
		c.calm = time.Now().Add(calmAfter)
	}
	return err
}

// trouble of the journal; a later one is worse.
type trouble int

const (
	none trouble = iota
	slow
	failing
)

// disk is the state of the journal's disk, as the committer knows it.
type disk struct {
	took time.Duration // for the last commit
	told trouble       // as last reported
	calm time.Time     // calmAfter the last slow commit
}

// degrade notes that the journal fails, or takes too long, and reports it unless that is known.
func (c *committer) degrade(as trouble, why, message string) {
	c.counts.commitError.Store(&why)
	if !c.counts.degraded.Swap(true) {
		wake(c.turned)
	}
	if as > c.told {
		c.told = as
		c.log.Error(message, "error", why)
		c.report.event("", "store_degraded", why)
	}
}

// endTrouble notes that nothing waits for the journal any more. It reports that after a failure, and where
// commits were slow, once none has been for calmAfter.
func (c *committer) endTrouble() {
	if c.counts.degraded.Swap(false) {
		wake(c.turned)
	}
	if c.told == failing || c.told == slow && !time.Now().Before(c.calm) {
		c.told = none
		c.log.Info("the journal works again")
		c.report.event("", "store_recovered", "")
	}
}

// makeRoom drops the oldest eighth of the pending samples of the model whose samples take up
// most. Until the node is replaced, new ones then make room for themselves. Without pending
// samples the journal is full of something else.
func (c *committer) makeRoom(commit *online.Commit) {
	m := slices.MaxFunc(c.models, func(a, b *modelState) int { return cmp.Compare(a.pendingStore.bytes, b.pendingStore.bytes) })
	w := m.pendingStore
	if w.bytes == 0 {
		return
	}
	drop, gone := online.Commit{}, w.oldest(w.bytes/8+1, func(p *pendingSample) bool {
		_, changed := c.group.pending[recordKey{m.Name, p.sample.Key}]
		return p.stored && !changed
	})
	for _, p := range gone {
		drop.Forget = append(drop.Forget, online.Pending{Model: m.Name, Key: p.sample.Key})
	}
	limit := w.bytes - w.bytes/8
	if len(gone) > 0 { // in a commit of their own: only the next one can use their room
		if err := c.journal.Commit(&drop); err != nil {
			c.log.Warn("no pending samples could be dropped", "model", m.Name, "error", err)
			return
		}
		w.drop(gone)
	}
	w.limits.MaxBytes = field.ByteSize(limit)
	gone = append(gone, w.shrink()...)
	c.forget(m, gone, &c.counts.pendingEvicted)
	changed := c.group.commit()
	commit.Wait, commit.Forget = changed.Wait, changed.Forget
	c.log.Warn("the journal is full of pending samples: the oldest were dropped; raise store.max_size, or lower pending.max_bytes", "model", m.Name, "samples", len(gone), "bytes_left", w.bytes)
}
