package online

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"edge/online/conformal"
	"edge/online/drift"
	"edge/online/score"
	"edge/online/sep"
)

// Notice reports an event of a model to its operator.
type Notice struct {
	Model  string
	Kind   string
	Detail string
	Seq    uint64 // of the record that caused it
}

// Kinds of a Notice.
const (
	NoticeClassAdded       = "class_added"         // Detail: its name
	NoticeClassRemoved     = "class_removed"       // Detail: its name
	NoticeClassRenamed     = "class_renamed"       //
	NoticeCorrected        = "label_corrected"     //
	NoticeReset            = "model_reset"         //
	NoticeRolledBack       = "model_rolled_back"   //
	NoticeMerged           = "fleet_merged"        // Detail: how many members it is of
	NoticeWarning          = "drift_warning"       // Detail: the signal, before and after
	NoticeDrift            = "drift"               // the same
	NoticeBuilt            = "model_built"         // from the warm-up buffer, the first time or again; Detail: the observations, the scaling, the time
	NoticeWarmedUp         = "warmed_up"           //
	NoticeCalibrated       = "features_calibrated" // features that had moved are brought to the units of the model; Detail: which, gain, offset
	NoticeRecovered        = "model_recovered"     // the journal of the earlier run is learnt; Detail: the records, the time
	NoticeStepRefused      = "step_refused"        // a minibatch could not be learnt
	NoticeEventRefused     = "event_refused"       // an event of the journal could not be carried out
	NoticeCheckpointFailed = "checkpoint_failed"   //
)

// LoopOptions configure a Loop.
type LoopOptions struct {
	Model        string        // name, for the Checkpointer and the log
	Seq          uint64        // of the last record in the learner's state
	Saved        uint64        // of the last record in the newest checkpoint; the records after it, up to Seq, came from the journal
	Queue        int           // groups of records that may wait; a full queue makes Learn block; at least 1
	QueueBytes   int           // memory of these records, about; one group is taken whatever its size. 0: no bound
	Checkpointer Checkpointer  // nil: none
	Every        time.Duration // between checkpoints; 0: never by time
	Samples      uint64        // between checkpoints; 0: never by count
	Bytes        uint64        // of records between checkpoints, about; 0: never by size
	Unsaved      uint64        // bytes of the records between Saved and Seq, about
	Recovery     *Recovery     // of the records after Seq; nil: there are none
	Workspaces   *Workspaces   // lends the memory of a step; nil: the learner has its own
	Readers      *Readers      // counts those who call Snapshot; nil: the memory of a snapshot is not used again
	Linger       time.Duration // to learn queued records after Run's ctx has ended; the rest is left to the journal. 0: no limit
	Log          *slog.Logger
	Notify       func(Notice)             // called from the loop's goroutine; nil: none
	Learnt       func(took time.Duration) // called from the loop's goroutine with the time of each step; nil: none
	Changed      func()                   // called from the loop's goroutine after each new Status; nil: none
}

// Status is the state of a Loop at one moment.
type Status struct {
	Seq        uint64  // last record learnt
	Learned    uint64  // samples in the model, warm-up included
	Open       int     // samples in the minibatch that is filling
	OpenNLL    float64 // sum of −log p(label) of those that came since the program started
	Scores     score.Scores
	Counters   Counters    // since the model began
	Drift      drift.Level // of the stream
	Drifts     uint64      // found since the model began
	Built      bool        // the Gaussian process answers; before, class frequencies do
	WarmedUp   bool        // the raw warm-up buffer has been dropped
	StateBytes int         // size of the last checkpoint
	Recovering bool        // the journal of an earlier run is being learnt; false: Posterior, read after the status, knows all of it
	Behind     uint64      // records of the journal to be learnt while Recovering
	Unfactored uint64      // sums of the fleet that did not factor and were dropped, since the program started
	Classes    *ClassList  // after record Seq
}

// Loop owns a Learner: only the goroutine inside Run touches it.
type Loop struct {
	learner     *Learner
	opts        LoopOptions
	in          chan []Record
	commands    chan func() // for Run's goroutine
	snapshot    snapshot
	status      atomic.Pointer[Status]
	uncertainty atomic.Pointer[conformal.Uncertainty] // replaced whole, with every group of records
	start       time.Time
	beat        atomic.Int64 // nanoseconds from start to the latest heartbeat of Run

	mu      sync.Mutex // guards waiting and drained
	waiting backlog    // groups handed over and not yet learnt
	drained *sync.Cond

	// The goroutine inside Run alone uses the fields below.
	seq         uint64 // of the last record learnt
	checkpoints checkpoints
	published   time.Time     // when the snapshot was replaced last
	reported    time.Time     // when the status was
	newer       bool          // the learner has stepped since
	label       uint64        // record of the latest label
	recovery    *recovery     // nil: nothing to recover
	ended       chan struct{} // closed: nothing to recover any more
}

// statusEvery is the shortest time between two statuses while more records wait.
const statusEvery = 500 * time.Millisecond

// snapshotEvery bounds the age of the snapshot while more records wait: a learner
// that shares no memory with a snapshot need not copy before a step.
const snapshotEvery = 10 * time.Millisecond

// NewLoop returns a loop that owns l from now on.
func NewLoop(l *Learner, opts LoopOptions) *Loop {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	lp := &Loop{
		learner: l, opts: opts, in: make(chan []Record, max(opts.Queue, 1)), commands: make(chan func()),
		seq: opts.Seq, checkpoints: checkpoints{room: make(chan struct{}, 1), saved: opts.Saved, unsaved: opts.Unsaved}, start: time.Now(),
	}
	lp.drained = sync.NewCond(&lp.mu)
	if lp.recovery = newRecovery(opts.Recovery, opts.Seq); lp.recovery != nil {
		lp.ended = lp.recovery.ended
	} else {
		lp.ended = make(chan struct{})
		close(lp.ended)
	}
	l.attach(lp.host())
	lp.publish()
	lp.publishUncertainty()
	lp.publishStatus()
	return lp
}

// Uncertainty returns the present rules for the uncertainty of predictions. Any
// goroutine may call it; it never waits.
func (lp *Loop) Uncertainty() *conformal.Uncertainty { return lp.uncertainty.Load() }

func (lp *Loop) publishUncertainty() {
	u := lp.learner.Uncertainty()
	lp.uncertainty.Store(&u)
}

// Status returns the newest status, at most half a second old while records
// arrive. Any goroutine may call it; it never waits.
func (lp *Loop) Status() *Status { return lp.status.Load() }

// Silence returns the time since the loop's latest heartbeat, by the monotonic
// clock. While Run runs it is 0, or the time of the present minibatch; the time in which the
// disk takes a checkpoint does not count.
// Any goroutine may call it; it never waits.
func (lp *Loop) Silence() time.Duration {
	beat := lp.beat.Load()
	if beat == resting {
		return 0
	}
	return time.Since(lp.start) - time.Duration(beat)
}

// resting is the heartbeat of a loop that has nothing to do.
const resting = math.MaxInt64

// Workspaces lends the memory that only a step needs to the loops that have it in
// their options: as many of them learn at a time as it has workspaces.
type Workspaces = sep.Pool

// NewWorkspaces returns that many workspaces, made when they are needed.
func NewWorkspaces(n int) *Workspaces { return sep.NewPool(n) }

func (lp *Loop) host() host {
	to := host{progress: lp.heartbeat, pool: lp.opts.Workspaces}
	if lp.opts.Readers != nil {
		to.unread = lp.unread
	}
	return to
}

func (lp *Loop) heartbeat() { lp.beat.Store(int64(time.Since(lp.start))) }

// State returns the encoded learner and the seq of the last record in it. It
// waits for Run to encode it, or for ctx to end. ErrRecovering: the state is one of
// an earlier moment.
func (lp *Loop) State(ctx context.Context) (seq uint64, state []byte, err error) {
	if err := lp.unlessRecovering(ctx, func() {
		seq = lp.seq
		state, _ = lp.learner.AppendBinary(nil)
	}); err != nil {
		return 0, nil, fmt.Errorf("online: state of %s: %w", lp.opts.Model, err)
	}
	return seq, state, nil
}

// Rest releases the memory that only learning needs, until the next record. It
// waits for Run to do it, or for ctx to end, whose error it returns.
func (lp *Loop) Rest(ctx context.Context) error {
	return lp.do(ctx, func() { lp.learner.rest() }) // Reconfigure replaces the learner
}

// Reconfigure changes the configuration, to another of the same shape, and the
// intervals of checkpoints. The present state is saved first: a restart learns the
// records after it from the journal, under the new configuration, and ends in the
// same bytes. It waits for Run, or for ctx to end.
//
// Errors: ErrRecovering, those of Restore and of the Checkpointer. Nothing has changed
// then.
func (lp *Loop) Reconfigure(ctx context.Context, cfg Config, every time.Duration, samples, bytes uint64) error {
	var err error
	if e := lp.unlessRecovering(ctx, func() { err = lp.reconfigure(cfg, every, samples, bytes) }); e != nil {
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
		lp.learner.attach(host{})
		lp.learner = learner
		learner.attach(lp.host())
		lp.newer = true
		lp.publish()
		lp.publishUncertainty()
		lp.publishStatus()
	}
	lp.opts.Every, lp.opts.Samples, lp.opts.Bytes = every, samples, bytes
	lp.schedule()
	return nil
}

// Learner returns the learner that the loop owns. The caller may use it only after
// Run has returned.
func (lp *Loop) Learner() *Learner { return lp.learner }

// do calls fn in Run's goroutine.
func (lp *Loop) do(ctx context.Context, fn func()) error {
	done := make(chan struct{})
	select {
	case lp.commands <- func() { fn(); close(done) }:
		<-done
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run learns until ctx ends, then learns the queued records (for Linger at most),
// writes a last checkpoint and returns; the error is that of the last checkpoint.
// Learn must not be called once ctx has ended. An earlier checkpoint that fails is
// reported and tried again later: the journal keeps its records.
func (lp *Loop) Run(ctx context.Context) error {
	patience, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	if lp.opts.Linger > 0 {
		defer context.AfterFunc(ctx, func() { time.AfterFunc(lp.opts.Linger, giveUp) })()
	}
	lp.checkpoints.due = time.NewTicker(time.Hour)
	defer lp.checkpoints.due.Stop()
	lp.schedule()
	lp.checkpointIfDue() // a daemon that restarts often must not replay an ever longer journal
	for {
		lp.beat.Store(resting)
		select {
		case records := <-lp.in:
			lp.learn(patience, records)
		case <-lp.checkpoints.due.C:
			lp.heartbeat()
			lp.checkpoint()
		case <-lp.checkpoints.room:
			lp.heartbeat()
			lp.makeRoom()
		case do := <-lp.commands:
			lp.heartbeat()
			do()
		case <-lp.more():
			lp.heartbeat()
			lp.replay(ctx)
		case <-ctx.Done():
			lp.heartbeat()
			return lp.close(patience)
		}
	}
}

// close learns the queued records, as long as patience lasts, and writes the last checkpoint.
func (lp *Loop) close(patience context.Context) error {
	for {
		select {
		case records := <-lp.in:
			lp.learn(patience, records)
		default:
			err := lp.checkpoint()
			lp.publishStatus()
			return err
		}
	}
}

// learn learns the records. If patience ends first, the rest is left to the
// journal, and with it the queue: the state is that of an earlier moment.
func (lp *Loop) learn(patience context.Context, records []Record) {
	stepped, size := false, memoryOf(records)
	lp.checkpoints.made.Store(false)
	for i := range records {
		r := &records[i]
		if patience.Err() != nil {
			break
		}
		lp.heartbeat()
		wasWarm, began := lp.learner.WarmedUp(), time.Now()
		lp.learner.expect(records[i:])
		out := lp.learner.Add(&r.Event)
		lp.seq = r.Seq
		if r.Kind == Observe {
			lp.label = r.Seq
		}
		lp.checkpoints.unsaved += uint64(r.Size())
		lp.report(r, &out, wasWarm, began)
		stepped = stepped || out.Stepped || out.ClassAdded != ""
	}
	lp.newer = lp.newer || stepped
	lp.mu.Lock()
	idle := lp.waiting.groups == 1
	lp.mu.Unlock()
	now := time.Now()
	if idle || now.Sub(lp.published) >= snapshotEvery {
		lp.publish()
		lp.published = now
	}
	lp.publishUncertainty()
	lp.checkpointIfDue()
	if idle || now.Sub(lp.reported) >= statusEvery { // a caller of Idle reads the status next
		lp.publishStatus()
		lp.reported = now
	}
	lp.finished(size)
}

// report publishes the changes that a record has made, and then sends the notices about them.
func (lp *Loop) report(r *Record, out *Outcome, wasWarm bool, began time.Time) {
	if out.Change != "" || out.Calibrated != "" {
		lp.newer = true
		lp.publish() // the reader of the notice finds the change done
	}
	if out.Change != "" || out.ClassAdded != "" || len(out.Dropped) > 0 || out.Refused != nil {
		lp.publishStatus() // with the classes
	}
	if out.Stepped && lp.opts.Learnt != nil {
		lp.opts.Learnt(time.Since(began))
	}
	if out.ClassAdded != "" {
		lp.notify(Notice{Kind: NoticeClassAdded, Detail: out.ClassAdded, Seq: r.Seq})
	}
	for _, name := range out.Imported {
		lp.notify(Notice{Kind: NoticeClassAdded, Detail: name, Seq: r.Seq})
	}
	for _, name := range out.Dropped {
		lp.notify(Notice{Kind: NoticeClassRemoved, Detail: name, Seq: r.Seq})
	}
	switch out.Change {
	case "":
	case NoticeDrift, NoticeWarning:
		lp.opts.Log.Warn(out.Change, "model", lp.opts.Model, "seq", r.Seq, "detail", out.Detail, "action", lp.learner.cfg.Drift.Action)
		fallthrough
	default:
		lp.notify(Notice{Kind: out.Change, Detail: out.Detail, Seq: r.Seq})
	}
	if out.Calibrated != "" {
		lp.opts.Log.Warn("features have moved and are calibrated", "model", lp.opts.Model, "seq", r.Seq, "features", out.Calibrated)
		lp.notify(Notice{Kind: NoticeCalibrated, Detail: out.Calibrated, Seq: r.Seq})
	}
	if out.Built {
		detail := fmt.Sprintf("%s, in %v", lp.learner.describeBuild(), time.Since(began).Round(time.Millisecond))
		lp.opts.Log.Info("model built", "model", lp.opts.Model, "seq", r.Seq, "detail", detail)
		lp.notify(Notice{Kind: NoticeBuilt, Detail: detail, Seq: r.Seq})
	}
	if !wasWarm && lp.learner.WarmedUp() {
		lp.notify(Notice{Kind: NoticeWarmedUp, Seq: r.Seq})
	}
	if out.Refused != nil {
		kind := NoticeEventRefused
		if out.Closed {
			kind = NoticeStepRefused
		}
		lp.opts.Log.Warn("learning refused", "model", lp.opts.Model, "seq", r.Seq, "reason", out.Refused)
		if p, ok := errors.AsType[*Panic](out.Refused); ok {
			lp.opts.Log.Error("learning panicked, which is an error of this program", "model", lp.opts.Model, "stack", string(p.Stack))
		}
		lp.notify(Notice{Kind: kind, Detail: out.Refused.Error(), Seq: r.Seq})
	}
}

// publish replaces the snapshot: by that of a learner which has stepped, or by the same
// one with the labels that have come since.
func (lp *Loop) publish() {
	post := lp.snapshot.Load()
	switch {
	case lp.newer || post == nil:
		post = lp.learner.Posterior()
	case post.Record != lp.label:
		post = lp.learner.Ordered(post)
	default:
		return
	}
	post.Record, lp.newer = lp.label, false
	lp.snapshot.replace(post, lp.opts.Readers)
}

// notify completes and passes on a notice.
func (lp *Loop) notify(n Notice) {
	if lp.opts.Notify != nil {
		n.Model = lp.opts.Model
		lp.opts.Notify(n)
	}
}

func (lp *Loop) publishStatus() {
	l := lp.learner
	recovering, left := lp.behind()
	lp.status.Store(&Status{
		Seq: lp.seq, Learned: l.view.N, Open: l.Pending(), OpenNLL: l.batch.nll, Scores: l.Scores(), Counters: l.Counters(),
		Drift: l.drift.Level(), Drifts: l.drift.Drifts(), Built: l.view.Built(), WarmedUp: l.WarmedUp(), StateBytes: lp.checkpoints.size,
		Recovering: recovering, Behind: left,
		Unfactored: uint64(l.bank.Counts.JoinedDropped), Classes: l.ClassList(),
	})
	if lp.opts.Changed != nil {
		lp.opts.Changed()
	}
}
