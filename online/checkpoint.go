package online

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// checkpoints is the state of a Loop's checkpoints.
type checkpoints struct {
	room     chan struct{} // holds an element while MakeRoom is requested
	due      *time.Ticker
	saved    uint64      // seq of the newest checkpoint
	unsaved  uint64      // approximate bytes of the records learnt since
	twice    bool        // the checkpoint before has the same seq
	failed   time.Time   // when the newest attempt failed
	failures int         // since a checkpoint was made
	noRoom   time.Time   // when making room last failed
	size     int         // bytes of the newest checkpoint
	made     atomic.Bool // room was made, as far as possible, since the last record
}

// Checkpointer makes a learner's state durable; seq is that of the last record in it. It
// may use the capacity of state until it returns.
type Checkpointer interface {
	Checkpoint(model string, seq uint64, state []byte) error
}

// checkpointRetry is the pause after a failed attempt to make room, and after the second failed
// checkpoint by samples or size: each minibatch would repeat it.
const checkpointRetry = time.Minute

// MakeRoom requests checkpoints that are not due yet, because the journal is full:
// it drops the records that two of them hold. It reports whether that had been done, or
// tried, before this request, for all records that were handed over. Any goroutine may
// call it; it never waits.
func (lp *Loop) MakeRoom() (done bool) {
	lp.mu.Lock()
	waiting := lp.waiting.groups
	lp.mu.Unlock()
	done = waiting == 0 && !lp.recovering() && lp.checkpoints.made.Load()
	select {
	case lp.checkpoints.room <- struct{}{}:
	default:
	}
	return done
}

// Checkpoint saves the state, unless the newest checkpoint has it. It waits for Run
// to do it, or for ctx to end. Errors: that of ctx, those of the Checkpointer.
func (lp *Loop) Checkpoint(ctx context.Context) error {
	var err error
	if e := lp.do(ctx, func() { err = lp.checkpoint() }); e != nil {
		return fmt.Errorf("online: checkpoint %s: %w", lp.opts.Model, e)
	}
	return err
}

// schedule restarts the interval of checkpoints by time.
func (lp *Loop) schedule() {
	lp.checkpoints.due.Stop()
	if lp.opts.Every > 0 {
		lp.checkpoints.due.Reset(lp.opts.Every)
	}
}

func (lp *Loop) checkpointIfDue() {
	due := lp.opts.Samples > 0 && lp.seq-lp.checkpoints.saved >= lp.opts.Samples || lp.opts.Bytes > 0 && lp.checkpoints.unsaved >= lp.opts.Bytes
	if due && (lp.checkpoints.failures < 2 || time.Since(lp.checkpoints.failed) >= checkpointRetry) {
		lp.checkpoint()
	}
}

// checkpoint saves the state if a record has been learnt since the last one.
func (lp *Loop) checkpoint() error {
	if lp.opts.Checkpointer == nil || lp.seq == lp.checkpoints.saved {
		return nil
	}
	return lp.save()
}

// makeRoom saves the state in both generations, unless they have it.
func (lp *Loop) makeRoom() {
	defer lp.checkpoints.made.Store(true)
	if lp.opts.Checkpointer == nil || lp.seq == 0 || time.Since(lp.checkpoints.noRoom) < checkpointRetry {
		return
	}
	lp.checkpoints.noRoom = time.Time{}
	for lp.seq != lp.checkpoints.saved || !lp.checkpoints.twice {
		if lp.save() != nil {
			lp.checkpoints.noRoom = time.Now()
			return
		}
	}
}

// releaseStep makes room for a state, which is in memory twice while it is stored: the next
// step allocates its memory anew.
func (lp *Loop) releaseStep() {
	lp.learner.rest()
	if lp.opts.Workspaces != nil {
		lp.opts.Workspaces.Rest()
	}
}

func (lp *Loop) save() error {
	const seal = 1 << 16 // bytes that the Checkpointer adds to a state, at most
	lp.releaseStep()
	state, _ := lp.learner.AppendBinary(make([]byte, 0, lp.learner.encodedSize()+seal))
	lp.beat.Store(resting) // a loop that waits for a slow disk is not stuck: a restart would wait as well
	err := lp.opts.Checkpointer.Checkpoint(lp.opts.Model, lp.seq, state)
	lp.heartbeat()
	if err != nil {
		lp.checkpoints.failed = time.Now()
		lp.checkpoints.failures++
		lp.opts.Log.Error("checkpoint failed; the journal keeps its records", "model", lp.opts.Model, "seq", lp.seq, "error", err)
		lp.notify(Notice{Kind: NoticeCheckpointFailed, Detail: err.Error(), Seq: lp.seq})
		return err
	}
	lp.checkpoints.failures = 0
	lp.checkpoints.twice = lp.checkpoints.saved == lp.seq
	lp.checkpoints.saved, lp.checkpoints.unsaved, lp.checkpoints.size = lp.seq, 0, len(state)
	return nil
}
