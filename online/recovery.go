package online

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrRecovering reports that a loop cannot do something before it has learnt the
// journal of an earlier run.
var ErrRecovering = errors.New("the model is recovering: it learns the journal of the earlier run; try again after the event model_recovered")

// Journal holds the records of models.
type Journal interface {
	// Records returns the records of a model after seq, in order, n at most. All of
	// them are in the journal.
	Records(model string, seq uint64, n int) ([]Record, error)
}

// Recovery makes a Loop learn the records of an earlier run, in Run, while its
// snapshots answer. All functions are called from the loop's goroutine.
type Recovery struct {
	Journal Journal
	Last    uint64 // newest record of the earlier run
	// Revive returns the learner of the newest checkpoint and the seq of the last
	// record in it.
	Revive  func() (*Learner, uint64, error)
	Refused func(Refused)  // called with each record that could not be learnt
	Ready   func(*Learner) // called with the learner that has learnt Last
}

const (
	readAhead   = 256                    // records that are read from the journal at once
	maxBehind   = 1 << 16                // records of this run that may wait in the journal; then Learn blocks
	nearlyThere = 1 << 10                // records for which Learn waits at the end of a recovery
	slice       = 20 * time.Millisecond  // between two looks at commands and at the end of Run's ctx
	renewal     = time.Second            // age at which a recovering loop replaces its snapshot
	journalWait = 500 * time.Millisecond // pause after an error of the journal
)

// recovery is the state of a Loop that learns its journal.
type recovery struct {
	Recovery
	again    chan struct{} // closed: Run has records to learn
	ended    chan struct{} // closed once all is learnt
	began    time.Time
	first    uint64            // record before the first one
	ready    bool              // Last is learnt
	target   uint64            // record at which the rest is looked at
	phase    uint64            // records to learn when target was set
	leftOut  map[uint64]*Panic // records with which the learner panics
	reported uint64            // newest record whose refusal was reported
	queue    []Record          // read from the journal
	failed   bool              // the journal could not be read
	over     bool              // all is learnt

	// The fields below are guarded by Loop.mu.
	newest uint64 // record to learn
	learnt uint64
	last   bool // Learn waits for the end
}

// newRecovery returns the state of a recovery after record seq, nil if the journal
// has no record after it.
func newRecovery(r *Recovery, seq uint64) *recovery {
	if r == nil || r.Last <= seq {
		return nil
	}
	again := make(chan struct{})
	close(again)
	return &recovery{
		Recovery: *r, again: again, ended: make(chan struct{}), began: time.Now(), first: seq, target: r.Last, phase: r.Last - seq,
		leftOut: map[uint64]*Panic{}, newest: r.Last, learnt: seq,
	}
}

// Recovered returns a channel that is closed once the journal of the earlier run is
// learnt. Any goroutine may call it.
func (lp *Loop) Recovered() <-chan struct{} { return lp.ended }

// recovering reports whether Run still learns the journal. Any goroutine may call it.
func (lp *Loop) recovering() bool {
	select {
	case <-lp.ended:
		return false
	default:
		return true
	}
}

// unlessRecovering is do for functions that need the state of all records.
func (lp *Loop) unlessRecovering(ctx context.Context, fn func()) error {
	recovering := false
	err := lp.do(ctx, func() {
		if recovering = lp.recovering(); !recovering {
			fn()
		}
	})
	if recovering {
		return ErrRecovering
	}
	return err
}

// leave leaves records to the recovery, which reads them from the journal. It
// reports false if the recovery has ended. It blocks while too many wait.
func (lp *Loop) leave(ctx context.Context, records []Record) (left bool, err error) {
	if !lp.recovering() || len(records) == 0 {
		return false, nil
	}
	defer context.AfterFunc(ctx, lp.wake)()
	lp.mu.Lock()
	defer lp.mu.Unlock()
	r := lp.recovery
	for lp.recovering() && (r.last || r.newest-r.learnt >= maxBehind) {
		if ctx.Err() != nil {
			return true, ctx.Err()
		}
		lp.drained.Wait()
	}
	if !lp.recovering() {
		return false, nil
	}
	r.newest = records[len(records)-1].Seq
	return true, nil
}

// wake wakes the goroutines that wait for learning.
func (lp *Loop) wake() {
	lp.mu.Lock()
	defer lp.mu.Unlock()
	lp.drained.Broadcast()
}

// more returns a channel that is ready while there are records of the journal to learn.
func (lp *Loop) more() <-chan struct{} {
	if lp.recovering() {
		return lp.recovery.again
	}
	return nil
}

// replay learns records of the journal for the time of a slice. A record with which
// the learner panics outside of a step is left out, and the learner begins again at
// the newest checkpoint: the effect of the panic on it is not known.
func (lp *Loop) replay(ctx context.Context) {
	r := lp.recovery
	lp.checkpoints.made.Store(false)
	if err := lp.read(ctx); err != nil {
		return
	}
	for began := time.Now(); len(r.queue) > 0 && ctx.Err() == nil && time.Since(began) < slice; {
		lp.heartbeat()
		lp.learner.expect(r.queue)
		at := &r.queue[0]
		r.queue = r.queue[1:]
		if p := lp.relearn(at); p != nil {
			r.leftOut[at.Seq] = p
			lp.revive(ctx)
			return
		}
	}
	lp.newer = true
	now := time.Now()
	if now.Sub(lp.published) >= renewal {
		lp.publish()
		lp.publishUncertainty()
		lp.published = now
	}
	if now.Sub(lp.reported) >= statusEvery {
		lp.publishStatus()
		lp.reported = now
	}
	lp.checkpointIfDue()
	lp.mu.Lock()
	r.learnt = lp.seq
	lp.drained.Broadcast()
	lp.mu.Unlock()
	if lp.seq == r.target {
		lp.reached()
	}
}

// relearn learns one record of the journal. Those of this run are reported as new
// ones are; those of the earlier run were reported then.
func (lp *Loop) relearn(rec *Record) *Panic {
	r := lp.recovery
	fresh := rec.Seq > r.Last
	if p := r.leftOut[rec.Seq]; p != nil {
		lp.learner.counters.StepsRefused++
		lp.refused(Refused{rec.Seq, rec.Kind, p, p})
	} else {
		wasWarm, began := lp.learner.WarmedUp(), time.Now()
		out, p := lp.learner.try(&rec.Event)
		switch {
		case p != nil:
			return p
		case fresh:
			lp.seq = max(lp.seq, rec.Seq)
			lp.report(rec, &out, wasWarm, began)
		case out.Refused != nil:
			lp.refused(Refused{rec.Seq, rec.Kind, out.Refused, nil})
		}
	}
	if rec.Kind == Observe {
		lp.label = rec.Seq
	}
	lp.checkpoints.unsaved += uint64(rec.Size())
	lp.seq = max(lp.seq, rec.Seq)
	return nil
}

// refused reports a refused record once, also if it is learnt again.
func (lp *Loop) refused(f Refused) {
	if r := lp.recovery; f.Seq > r.reported && r.Recovery.Refused != nil {
		r.reported = f.Seq
		r.Recovery.Refused(f)
	}
}

// read reads records of the journal unless some are left. After an error it waits:
// the daemon ends if the file is damaged.
func (lp *Loop) read(ctx context.Context) error {
	r := lp.recovery
	if len(r.queue) > 0 {
		return nil
	}
	var err error
	if r.queue, err = r.Journal.Records(lp.opts.Model, lp.seq, int(min(readAhead, r.target-lp.seq))); err == nil && len(r.queue) == 0 {
		err = fmt.Errorf("online: the journal of %s ends at record %d, before %d: %w", lp.opts.Model, lp.seq, r.target, ErrState)
	}
	if err != nil {
		lp.pause(ctx, err)
		return err
	}
	r.failed = false
	return nil
}

// pause logs the first of several errors of the journal, and waits.
func (lp *Loop) pause(ctx context.Context, err error) {
	if r := lp.recovery; !r.failed {
		r.failed = true
		lp.opts.Log.Error("the journal cannot be read; the model answers from an earlier state, and tries again", "model", lp.opts.Model, "error", err)
	}
	select {
	case <-time.After(journalWait):
	case <-ctx.Done():
	}
}

// revive begins again at the newest checkpoint.
func (lp *Loop) revive(ctx context.Context) {
	for ctx.Err() == nil {
		l, seq, err := lp.recovery.Revive()
		if err != nil {
			lp.pause(ctx, err)
			continue
		}
		lp.learner.attach(host{})
		lp.learner, lp.seq, lp.recovery.queue = l, seq, nil
		l.attach(lp.host())
		return
	}
	// The learner is not valid: its state must not be saved.
	lp.opts.Checkpointer = nil
}

// reached decides about the records that came since the target was set: they are the
// next target, until they are few, or no fewer than half of those before. Learn then
// waits, as for a full queue.
func (lp *Loop) reached() {
	r := lp.recovery
	if !r.ready {
		r.ready = true
		r.Ready(lp.learner)
	}
	lp.mu.Lock()
	left := r.newest - lp.seq
	r.last = r.last || left <= nearlyThere || left > r.phase/2
	r.target, r.phase = r.newest, left
	lp.mu.Unlock()
	if left == 0 {
		lp.recovered()
	}
}

// recovered ends the recovery: the snapshot, and then the status, are those of all records.
func (lp *Loop) recovered() {
	r := lp.recovery
	lp.newer = true
	lp.publish()
	lp.publishUncertainty()
	r.queue, r.leftOut, r.over = nil, nil, true
	lp.publishStatus()
	lp.mu.Lock()
	close(lp.ended)
	lp.drained.Broadcast()
	lp.mu.Unlock()
	lp.opts.Log.Info("the model has recovered", "model", lp.opts.Model, "seq", lp.seq)
	lp.notify(Notice{Kind: NoticeRecovered, Detail: fmt.Sprintf("%d records of the journal in %v", lp.seq-r.first, time.Since(r.began).Round(time.Millisecond)), Seq: lp.seq})
}

// behind returns whether the journal is being learnt, and the number of its records
// that are left.
func (lp *Loop) behind() (recovering bool, left uint64) {
	r := lp.recovery
	if r == nil || r.over {
		return false, 0
	}
	lp.mu.Lock()
	defer lp.mu.Unlock()
	return true, r.newest - min(lp.seq, r.newest)
}

// ClassRecords returns what may change the classes of a model in records: of each label one,
// in the place of the first since the last such record, with the Seq of the latest. Of these
// records Seq, Kind, Label and Name count; the classes of a Replace follow as ClassAdd, or as
// Merge if a merge had brought them, each former name as a ClassRename to it and one back. The
// classes that a merge brings, and those that it drops, are known once the learner has learnt it.
func ClassRecords(cfg Config, records []Record) (changes []Record) {
	seen := map[string]int{}
	add := func(r *Record, kind Kind, label, name string) {
		changes = append(changes, Record{Model: r.Model, Seq: r.Seq, Event: Event{Kind: kind, Label: label, Name: name}})
	}
	for i := range records {
		r := &records[i]
		switch r.Kind {
		case Observe, Correct:
			if at, again := seen[r.Label]; again {
				changes[at].Seq = r.Seq
				continue
			}
			seen[r.Label] = len(changes)
			add(r, Observe, r.Label, "")
		case ClassAdd, ClassRemove, ClassRename, Reset:
			clear(seen)
			add(r, r.Kind, r.Label, r.Name)
		case Replace:
			l, err := Restore(cfg, r.State)
			if err != nil { // the learner refuses it as well
				continue
			}
			clear(seen)
			add(r, Replace, "", "")
			for k, name := range l.classes.names {
				if l.imported(k) {
					add(r, Merge, name, "")
				} else {
					add(r, ClassAdd, name, "")
				}
			}
			for former, name := range l.classes.aliases() {
				add(r, ClassRename, name, former)
				add(r, ClassRename, former, name)
			}
		}
	}
	return changes
}
