package simulation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"edge/online"
	"edge/persist"
	"edge/stream"
)

const (
	nodeID     = "sim" // of the first node
	learnQueue = 64
	linger     = 500 * time.Millisecond

	recoveryPause   = 37 * time.Millisecond
	recoveryRecords = 8
)

// process is one run of the daemon from start to end: store, learners and node,
// connected as in the daemon.
type process struct {
	world *world
	store *persist.Store
	loops []*online.Loop
	feeds []stream.ModelConfig
	node  *stream.Node

	number  int // 1, 2, 3, …
	answers *answers
	ring    int // capacity of the node's queue, in messages

	killed bool // its operations have no effect any more; guarded by world.mu

	cancelLearners context.CancelFunc
	cancelNode     context.CancelCauseFunc
	learners       sync.WaitGroup
	nodeResult     chan error // result of the node's Run
}

// start opens the state file, compares it with the truth, and starts the node.
func (w *world) start() *process {
	d := w.disk
	d.failSync.Store(false)
	if d.restart != nil {
		if err := os.WriteFile(d.path, d.restart, 0o600); err != nil {
			w.fail("%v", err)
		}
		d.restart = nil
	}
	l := &process{world: w, number: w.runs, answers: newAnswers(w), nodeResult: make(chan error, 1)}
	var err error
	if l.store, err = persist.Open(d.path, persist.Options{Dedupe: w.plan.dedupe, Fault: d.step}); err != nil {
		w.fail("%v", err)
		return nil
	}
	if r := l.store.Recovery(); r != nil {
		w.fail("the state file was damaged: %+v", r)
	}
	for i := range w.plan.models {
		if err := l.load(&w.plan.models[i]); err != nil {
			w.fail("%v", err)
			return nil
		}
	}
	l.node = l.newNode(nil)
	if l.node == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancelLearners = cancel
	for _, loop := range l.loops {
		l.learners.Go(func() {
			if err := loop.Run(ctx); err != nil {
				w.lockAndLog("the last checkpoint: %v", err)
			}
		})
	}
	l.serve()
	w.lockAndLog("started")
	return l
}

// load restores a model from its checkpoint and journal.
func (l *process) load(m *modelPlan) error {
	w := l.world
	kept, err := l.store.Load(m.name, m.learner.Shape())
	if err != nil {
		return err
	}
	learner, err := online.RestoreOrNew(m.learner, kept.State)
	if err != nil {
		return err
	}
	seq := kept.Seq + uint64(len(kept.Records))
	want, err := w.truth.recovered(m.name, seq)
	if err != nil {
		return err
	}
	ready := func(learner *online.Learner) {
		if digest := learner.Digest(); digest != want && !l.isKilled() {
			w.fail("after %d records the digest of %s is %s, that of the reference learner %s", seq, m.name, digest, want)
		}
	}
	recovery := &online.Recovery{Journal: slowly{l.store}, Last: seq, Ready: ready, Revive: func() (*online.Learner, uint64, error) {
		return nil, 0, errors.New("a record of the journal makes the learner panic")
	}}
	if len(kept.Records) == 0 {
		ready(learner)
	}
	loop := online.NewLoop(learner, online.LoopOptions{
		Model: m.name, Seq: kept.Seq, Saved: kept.Seq, Queue: learnQueue, Checkpointer: journal{l},
		Every: w.plan.every, Samples: w.plan.samples, Recovery: recovery, Linger: linger, Notify: l.notify,
	})
	l.loops = append(l.loops, loop)
	l.feeds = append(l.feeds, stream.ModelConfig{
		Name: m.name, Model: loop, Streams: m.streams, Features: m.learner.Features, Classes: m.learner.Classes, Batch: m.learner.Batch,
		Pending: w.plan.pending, Waiting: kept.Pending, Mark: kept.Mark, Seed: m.learner.Seed,
		Unlearnt: online.ClassRecords(m.learner, kept.Records), Fleet: m.fleet,
	})
	return nil
}

// slowly reads few records of a journal at once, and takes time for it: other events
// happen while a model recovers.
type slowly struct{ *persist.Store }

func (j slowly) Records(model string, seq uint64, n int) ([]online.Record, error) {
	time.Sleep(recoveryPause)
	return j.Store.Records(model, seq, min(n, recoveryRecords))
}

func (l *process) notify(n online.Notice) {
	if n.Kind == online.NoticeStepRefused || n.Kind == online.NoticeEventRefused {
		l.world.fail("%s refuses %d: %s", n.Model, n.Seq, n.Detail)
	}
	l.world.mu.Lock()
	node := l.node
	l.world.mu.Unlock()
	node.Notify(n)
}

// newNode makes a node, which takes over from after unless after is nil.
func (l *process) newNode(after *stream.Node) *stream.Node {
	taken, err := l.store.Taken()
	if err != nil {
		l.world.fail("%v", err)
	}
	windows, err := l.store.Windows()
	if err != nil {
		l.world.fail("%v", err)
	}
	node, err := stream.NewNode(l.world.plan.node, stream.Deps{
		Models: slices.Clone(l.feeds), Windows: windows, Journal: journal{l}, Subscriptions: journal{l}, Dial: l.world.net.dialer(l), After: after, Taken: taken,
		Program:      stream.Program{Checkpoint: l.checkpoint},
		OnPrediction: l.predicted,
	})
	if err != nil {
		l.world.fail("%v", err)
		return nil
	}
	l.world.mu.Lock()
	defer l.world.mu.Unlock()
	l.ring = max(l.ring, l.world.plan.node.MQTT.Ring.MaxMessages)
	return node
}

// predicted receives the node's predictions.
func (l *process) predicted(p *stream.Prediction) {
	l.world.mu.Lock()
	defer l.world.mu.Unlock()
	if !l.killed {
		l.answers.predicted(p)
	}
}

// checkQueues checks the bounds of the node's queues.
func (l *process) checkQueues() {
	w := l.world
	w.mu.Lock()
	node, ring := l.node, l.ring
	w.mu.Unlock()
	if node == nil {
		return
	}
	s, cfg := node.Stats(), &w.plan.node
	for _, q := range []struct {
		what     string
		n, bound int
	}{
		{"messages wait for an answer", s.Ring, ring},
		{"messages wait for a commit", s.Commit, ring + 64},
		{"publications wait", s.Outbox, cfg.Outbox.MaxMessages},
		{"messages may come again", s.Unconfirmed, 4096},
	} {
		if q.n > q.bound {
			w.fail("%d %s, bound %d", q.n, q.what, q.bound)
		}
	}
	if window := w.broker.window; !w.broker.unbounded && s.Unacked > int64(window) {
		w.fail("%d messages are not acknowledged, window %d", s.Unacked, window)
	}
	for name, m := range s.Models {
		if m.Pending > w.plan.pending.Max {
			w.fail("%d samples of %s wait for their label, bound %d", m.Pending, name, w.plan.pending.Max)
		}
	}
}

// checkpoint handles a request for a checkpoint.
func (l *process) checkpoint(ctx context.Context, model string) error {
	for i, loop := range l.loops {
		if l.feeds[i].Name == model {
			return loop.Checkpoint(ctx)
		}
	}
	return fmt.Errorf("no model %s", model)
}

// serve runs the node.
func (l *process) serve() {
	ctx, cancel := context.WithCancelCause(context.Background())
	l.cancelNode = cancel
	node := l.node
	go func() { l.nodeResult <- node.Run(ctx) }()
}

// reload replaces the node by one with another configuration.
func (l *process) reload() {
	next := l.newNode(l.node)
	if next == nil {
		return
	}
	l.cancelNode(stream.ErrReplaced)
	l.world.ended(<-l.nodeResult)
	next.Inherit()
	l.world.mu.Lock()
	l.node = next
	l.world.mu.Unlock()
	l.serve()
	l.world.lockAndLog("reloaded")
}

func (l *process) isKilled() bool {
	l.world.mu.Lock()
	defer l.world.mu.Unlock()
	return l.killed
}

// kill ends the process at this instant, as SIGKILL does. The kernel still sends the
// buffered bytes, as far as the network delivers them. The caller holds world.mu.
func (l *process) kill(how string, args ...any) {
	if l.killed {
		return
	}
	l.world.log("killed "+how, args...)
	l.killed = true
	if d := l.world.disk; d.restart == nil {
		d.restart = d.read() // closing the store writes to the file
	}
	l.world.deaths <- l.world
	for _, k := range l.world.links() {
		k.cut()
	}
}

// stop stops the process in good order, unless it was killed, and waits for its end.
func (l *process) stop() error {
	l.cancelNode(nil)
	err := <-l.nodeResult
	l.world.ended(err)
	l.cancelLearners()
	l.learners.Wait()
	if e := l.store.Close(); e != nil {
		l.world.fail("%v", e)
	}
	l.world.lockAndLog("ended")
	return err
}
