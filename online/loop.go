package online

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"edge/model"
	"edge/online/conformal"
	"edge/online/drift"
	"edge/online/score"
)

// Checkpointer makes a learner's state durable; seq is that of the last record in it.
type Checkpointer interface {
	Checkpoint(model string, seq uint64, state []byte) error
}

// Notice is something about a model that a person may want to know.
type Notice struct {
	Model  string
	Kind   string
	Detail string
	Seq    uint64 // of the record that caused it
}

// Kinds of a Notice.
const (
	NoticeClassAdded       = "class_added"       // Detail: its name
	NoticeClassRemoved     = "class_removed"     // Detail: its name
	NoticeClassRenamed     = "class_renamed"     //
	NoticeCorrected        = "label_corrected"   //
	NoticeReset            = "model_reset"       //
	NoticeRolledBack       = "model_rolled_back" //
	NoticeWarning          = "drift_warning"     // Detail: what rose, from where to where
	NoticeDrift            = "drift"             // the same
	NoticeBuilt            = "model_built"       // from the warm-up buffer, the first time or again
	NoticeWarmedUp         = "warmed_up"         //
	NoticeStepRefused      = "step_refused"      // a minibatch could not be learnt
	NoticeEventRefused     = "event_refused"     // an event of the journal could not be carried out
	NoticeCheckpointFailed = "checkpoint_failed" //
)

// LoopOptions say how a Loop does its work.
type LoopOptions struct {
	Model        string        // name, for the Checkpointer and the log
	Seq          uint64        // of the last record in the learner's state
	Saved        uint64        // of the last record in the newest checkpoint: what lies between came from the journal
	Queue        int           // groups of records that may wait; a full queue makes Learn block; at least 1
	Checkpointer Checkpointer  // nil: none
	Every        time.Duration // between checkpoints; 0: never by time
	Samples      uint64        // between checkpoints; 0: never by count
	Bytes        uint64        // of records between checkpoints, about; 0: never by size
	Unsaved      uint64        // bytes of the records between Saved and Seq, about
	Linger       time.Duration // for what is queued when Run's ctx ends; the rest is left to the journal. 0: learn it all
	Log          *slog.Logger
	Notify       func(Notice)             // called from the loop's goroutine; nil: none
	Learnt       func(took time.Duration) // called from the loop's goroutine with the time of each step; nil: none
}

// Status is a Loop's state at one moment.
type Status struct {
	Model      string
	Seq        uint64 // last record learnt
	Learned    uint64 // samples in the model, warm-up included
	Open       int    // samples in the minibatch that is filling
	Scores     score.Scores
	Counters   Counters    // since the model began
	Drift      drift.Level // of the stream
	Drifts     uint64      // found since the model began
	Built      bool        // the Gaussian process answers; before, class frequencies do
	WarmedUp   bool        // the raw warm-up buffer has been dropped
	StateBytes int         // size of the last checkpoint
}

// Loop owns a Learner: only the goroutine inside Run touches it.
type Loop struct {
	learner     *Learner
	opts        LoopOptions
	in          chan []Record
	room        chan struct{}                   // has an element while MakeRoom is asked for
	errands     chan func()                     // for Run's goroutine
	snapshot    atomic.Pointer[model.Posterior] // replaced whole, never changed in place
	status      atomic.Pointer[Status]
	uncertainty atomic.Pointer[conformal.Uncertainty] // replaced whole, with every group of records
	start       time.Time
	beat        atomic.Int64 // nanoseconds from start to the last sign of life of Run

	mu      sync.Mutex // guards waiting and the condition that idle waits for
	waiting int        // groups handed over and not yet learnt
	drained *sync.Cond

	due        *time.Ticker // of checkpoints; Run's goroutine only, as all below
	seq        uint64       // of the last record learnt
	saved      uint64       // seq of the last checkpoint
	unsaved    uint64       // bytes of the records learnt since, about
	twice      bool         // and of the one before
	noRoom     time.Time    // when making room last failed
	stateBytes int
	stale      bool      // the status is older than the learner
	published  time.Time // when the snapshot was replaced last
	newer      bool      // the learner has stepped since
}

// statusEvery bounds how old the status may be while records keep coming.
const statusEvery = 500 * time.Millisecond

// snapshotEvery bounds how old the snapshot may be while more records wait: a
// learner that shares nothing with a snapshot need not copy what a step changes.
const snapshotEvery = 10 * time.Millisecond

// roomRetry is the pause after an attempt to make room that failed.
const roomRetry = time.Minute

// NewLoop returns a loop that owns l from now on.
func NewLoop(l *Learner, opts LoopOptions) *Loop {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	lp := &Loop{
		learner: l, opts: opts, in: make(chan []Record, max(opts.Queue, 1)), room: make(chan struct{}, 1), errands: make(chan func()),
		seq: opts.Seq, saved: opts.Saved, unsaved: opts.Unsaved, start: time.Now(),
	}
	lp.drained = sync.NewCond(&lp.mu)
	l.progress = lp.alive
	lp.snapshot.Store(l.Posterior())
	lp.publishUncertainty()
	lp.publishStatus()
	return lp
}

// Posterior returns the newest snapshot. Any goroutine may call it; it never waits.
func (lp *Loop) Posterior() *model.Posterior { return lp.snapshot.Load() }

// Uncertainty returns the present rules for the uncertainty of predictions. Any
// goroutine may call it; it never waits.
func (lp *Loop) Uncertainty() *conformal.Uncertainty { return lp.uncertainty.Load() }

func (lp *Loop) publishUncertainty() {
	u := lp.learner.Uncertainty()
	lp.uncertainty.Store(&u)
}

// Status returns the newest status, at most half a second old while records
// keep coming. Any goroutine may call it; it never waits.
func (lp *Loop) Status() *Status { return lp.status.Load() }

// Silence returns how long ago the loop gave its last sign of life, by the
// monotonic clock. While Run runs that is half a second, or the time of the minibatch
// or checkpoint at hand. Any goroutine may call it; it never waits.
func (lp *Loop) Silence() time.Duration { return time.Since(lp.start) - time.Duration(lp.beat.Load()) }

func (lp *Loop) alive() { lp.beat.Store(int64(time.Since(lp.start))) }

// Learn hands committed records over, in order. The loop keeps the slice. It
// blocks while the queue is full (that is the back-pressure) and returns
// ctx.Err() if ctx ends first; the records are then learnt from the journal
// after the next start.
func (lp *Loop) Learn(ctx context.Context, records []Record) error {
	lp.mu.Lock()
	lp.waiting++
	lp.mu.Unlock()
	select {
	case lp.in <- records:
		return nil
	case <-ctx.Done():
		lp.finished(1)
		return ctx.Err()
	}
}

// MakeRoom asks for checkpoints that are not due yet, because the journal is
// full: it drops what two of them hold. Any goroutine may call it; it never waits.
func (lp *Loop) MakeRoom() {
	select {
	case lp.room <- struct{}{}:
	default:
	}
}

// Checkpoint saves what has been learnt so far, unless the newest checkpoint has
// it already. It waits for Run to do it, or for ctx to end.
func (lp *Loop) Checkpoint(ctx context.Context) error {
	var err error
	if e := lp.do(ctx, func() { err = lp.checkpoint() }); e != nil {
		return fmt.Errorf("online: checkpoint %s: %w", lp.opts.Model, e)
	}
	return err
}

// State returns the encoded learner and the seq of the last record in it. It
// waits for Run to encode it, or for ctx to end.
func (lp *Loop) State(ctx context.Context) (seq uint64, state []byte, err error) {
	if err := lp.do(ctx, func() {
		seq = lp.seq
		state, _ = lp.learner.AppendBinary(nil)
	}); err != nil {
		return 0, nil, fmt.Errorf("online: state of %s: %w", lp.opts.Model, err)
	}
	return seq, state, nil
}

// Rest gives up the memory that only learning needs, until something is learnt
// again. It waits for Run to do it, or for ctx to end.
func (lp *Loop) Rest(ctx context.Context) error {
	return lp.do(ctx, lp.learner.Rest)
}

// Reconfigure lets the loop go on under another configuration of the same shape,
// and with other times of checkpoints. What has been learnt so far is saved
// first: a restart learns from the journal what came after it, under the new
// configuration, and ends in the same bytes. It waits for Run, or for ctx to end.
//
// Errors: those of Restore and of the Checkpointer. Nothing has changed then.
func (lp *Loop) Reconfigure(ctx context.Context, cfg Config, every time.Duration, samples, bytes uint64) error {
	var err error
	if e := lp.do(ctx, func() { err = lp.reconfigure(cfg, every, samples, bytes) }); e != nil {
		return fmt.Errorf("online: reconfigure %s: %w", lp.opts.Model, e)
	}
	return err
}

func (lp *Loop) reconfigure(cfg Config, every time.Duration, samples, bytes uint64) error {
	if !reflect.DeepEqual(cfg, lp.learner.Config()) {
		state, _ := lp.learner.AppendBinary(nil)
		learner, err := Restore(cfg, state)
		if err != nil {
			return err
		}
		if lp.opts.Checkpointer != nil {
			if err := lp.save(); err != nil {
				return err
			}
		}
		lp.learner = learner
		learner.progress = lp.alive
		lp.snapshot.Store(learner.Posterior())
		lp.publishStatus()
	}
	lp.opts.Every, lp.opts.Samples, lp.opts.Bytes = every, samples, bytes
	lp.schedule()
	return nil
}

// schedule lets checkpoints by time begin anew.
func (lp *Loop) schedule() {
	lp.due.Stop()
	if lp.opts.Every > 0 {
		lp.due.Reset(lp.opts.Every)
	}
}

// Learner returns what the loop owns; nobody but Run may use it until Run has
// returned.
func (lp *Loop) Learner() *Learner { return lp.learner }

// do has fn called by Run's goroutine.
func (lp *Loop) do(ctx context.Context, fn func()) error {
	done := make(chan struct{})
	select {
	case lp.errands <- func() { fn(); close(done) }:
		<-done
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (lp *Loop) finished(groups int) {
	lp.mu.Lock()
	lp.waiting -= groups
	if lp.waiting == 0 {
		lp.drained.Broadcast()
	}
	lp.mu.Unlock()
}

// Idle blocks until everything handed over so far has been learnt, or ctx ends.
func (lp *Loop) Idle(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		lp.mu.Lock()
		defer lp.mu.Unlock()
		lp.drained.Broadcast()
	})
	defer stop()
	lp.mu.Lock()
	defer lp.mu.Unlock()
	for lp.waiting > 0 && ctx.Err() == nil {
		lp.drained.Wait()
	}
	return ctx.Err()
}

// Run learns until ctx ends, then learns what is in its queue (as far as
// Linger lets it), writes a last checkpoint and returns; the error is that of
// the last checkpoint. Nobody may call Learn once ctx has ended. An earlier
// checkpoint that fails is reported and tried again later: the journal keeps
// what it would have held.
func (lp *Loop) Run(ctx context.Context) error {
	patience, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	if lp.opts.Linger > 0 {
		defer context.AfterFunc(ctx, func() { time.AfterFunc(lp.opts.Linger, giveUp) })()
	}
	lp.due = time.NewTicker(time.Hour)
	defer lp.due.Stop()
	lp.schedule()
	status := time.NewTicker(statusEvery)
	defer status.Stop()
	lp.checkpointIfDue() // a daemon that never lives long must not replay an ever longer journal
	for {
		lp.alive()
		select {
		case records := <-lp.in:
			lp.learn(patience, records)
		case <-lp.due.C:
			lp.checkpoint()
		case <-lp.room:
			lp.makeRoom()
		case do := <-lp.errands:
			do()
		case <-status.C:
			if lp.stale {
				lp.publishStatus()
			}
		case <-ctx.Done():
			for {
				select {
				case records := <-lp.in:
					lp.learn(patience, records)
					continue
				default:
				}
				err := lp.checkpoint()
				lp.publishStatus()
				return err
			}
		}
	}
}

// learn teaches the learner the records. If patience ends first, the rest is
// left to the journal, and so is whatever is still queued: the state is that of
// an earlier moment.
func (lp *Loop) learn(patience context.Context, records []Record) {
	stepped := false
	for i := range records {
		r := &records[i]
		if patience.Err() != nil {
			break
		}
		lp.alive()
		wasWarm, began := lp.learner.WarmedUp(), time.Now()
		out := lp.learner.Add(&r.Event)
		lp.seq = r.Seq
		lp.unsaved += uint64(r.Size())
		if out.Change != "" {
			lp.snapshot.Store(lp.learner.Posterior()) // who hears of it finds it done
		}
		if out.Stepped || out.ClassAdded != "" {
			stepped = true
		}
		if out.Stepped {
			if lp.opts.Learnt != nil {
				lp.opts.Learnt(time.Since(began))
			}
		}
		if out.ClassAdded != "" {
			lp.notify(NoticeClassAdded, out.ClassAdded, r.Seq)
		}
		switch out.Change {
		case "":
		case NoticeDrift, NoticeWarning:
			lp.opts.Log.Warn(out.Change, "model", lp.opts.Model, "seq", r.Seq, "detail", out.Detail, "action", lp.learner.cfg.Drift.Action)
			fallthrough
		default:
			lp.notify(out.Change, out.Detail, r.Seq)
		}
		if out.Built {
			lp.notify(NoticeBuilt, "", r.Seq)
		}
		if !wasWarm && lp.learner.WarmedUp() {
			lp.notify(NoticeWarmedUp, "", r.Seq)
		}
		if out.Refused != nil {
			kind := NoticeEventRefused
			if out.Closed {
				kind = NoticeStepRefused
			}
			lp.opts.Log.Warn("learning refused", "model", lp.opts.Model, "seq", r.Seq, "reason", out.Refused)
			if p := (*Panic)(nil); errors.As(out.Refused, &p) {
				lp.opts.Log.Error("learning panicked, which is an error of this program", "model", lp.opts.Model, "stack", string(p.Stack))
			}
			lp.notify(kind, out.Refused.Error(), r.Seq)
		}
	}
	lp.newer = lp.newer || stepped
	lp.mu.Lock()
	idle := lp.waiting == 1
	lp.mu.Unlock()
	if now := time.Now(); lp.newer && (idle || now.Sub(lp.published) >= snapshotEvery) {
		lp.snapshot.Store(lp.learner.Posterior())
		lp.published, lp.newer = now, false
	}
	lp.publishUncertainty()
	lp.stale = true
	lp.checkpointIfDue()
	if idle { // whoever waits for Idle reads the status next
		lp.publishStatus()
	}
	lp.finished(1)
}

func (lp *Loop) notify(kind, detail string, seq uint64) {
	if lp.opts.Notify != nil {
		lp.opts.Notify(Notice{Model: lp.opts.Model, Kind: kind, Detail: detail, Seq: seq})
	}
}

func (lp *Loop) checkpointIfDue() {
	if lp.opts.Samples > 0 && lp.seq-lp.saved >= lp.opts.Samples || lp.opts.Bytes > 0 && lp.unsaved >= lp.opts.Bytes {
		lp.checkpoint()
	}
}

// checkpoint saves the state if anything has been learnt since the last one.
func (lp *Loop) checkpoint() error {
	if lp.opts.Checkpointer == nil || lp.seq == lp.saved {
		return nil
	}
	return lp.save()
}

// makeRoom saves the state in both generations, unless they have it already.
func (lp *Loop) makeRoom() {
	if lp.opts.Checkpointer == nil || lp.seq == 0 || !lp.noRoom.IsZero() && time.Since(lp.noRoom) < roomRetry {
		return
	}
	lp.noRoom = time.Time{}
	for lp.seq != lp.saved || !lp.twice {
		if lp.save() != nil {
			lp.noRoom = time.Now()
			return
		}
	}
}

func (lp *Loop) save() error {
	const more = 1 << 12 // than the last one: a state hardly grows once the warm-up is over
	state, _ := lp.learner.AppendBinary(make([]byte, 0, lp.stateBytes+more))
	if err := lp.opts.Checkpointer.Checkpoint(lp.opts.Model, lp.seq, state); err != nil {
		lp.opts.Log.Error("checkpoint failed; the journal keeps what it would have held", "model", lp.opts.Model, "seq", lp.seq, "error", err)
		lp.notify(NoticeCheckpointFailed, err.Error(), lp.seq)
		return err
	}
	lp.twice = lp.saved == lp.seq
	lp.saved, lp.unsaved, lp.stateBytes = lp.seq, 0, len(state)
	return nil
}

func (lp *Loop) publishStatus() {
	l := lp.learner
	lp.status.Store(&Status{
		Model: lp.opts.Model, Seq: lp.seq, Learned: l.view.N, Open: l.Pending(), Scores: l.Scores(), Counters: l.Counters(),
		Drift: l.drift.Level(), Drifts: l.drift.Drifts(), Built: l.view.Built(), WarmedUp: l.WarmedUp(), StateBytes: lp.stateBytes,
	})
	lp.stale = false
}
