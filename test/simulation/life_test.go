package simulation

import (
	"context"
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
	nodeID      = "sim"
	cursorTopic = "edge/" + nodeID + "/cursor"
	learnQueue  = 64
	linger      = 500 * time.Millisecond
)

// life is a node from a start to its end: store, learners, node, wired as the
// daemon does it.
type life struct {
	world *world
	store *persist.Store
	loops []*online.Loop
	feeds []stream.ModelConfig
	node  *stream.Node

	number  int // from 1 on
	answers *answers
	ring    int // messages that fit into the node's queue

	dead bool          // killed: nothing that it does has an effect any more; world.mu
	died chan struct{} // closed when it was

	learning context.CancelFunc
	serving  context.CancelCauseFunc
	learners sync.WaitGroup
	served   chan error // what Run of the node has returned
}

// start opens the state file and begins to work. What the file knows is held
// against the truth.
func (w *world) start() *life {
	d := w.disk
	d.unsynced = false
	if d.image != nil {
		if err := os.WriteFile(d.path, d.image, 0o600); err != nil {
			w.fail("%v", err)
		}
		d.image = nil
	}
	l := &life{world: w, number: w.lives, answers: newAnswers(w), died: make(chan struct{}), served: make(chan error, 1)}
	var err error
	if l.store, err = persist.Open(d.path, persist.Options{Dedupe: w.plan.dedupe, Fault: d.step}); err != nil {
		w.fail("%v", err)
		return nil
	}
	if r := l.store.Recovery(); r != nil {
		w.fail("the state file was damaged: %+v", r)
	}
	for i := range w.plan.models {
		if err := l.recover(&w.plan.models[i]); err != nil {
			w.fail("%v", err)
			return nil
		}
	}
	l.node = l.newNode(nil)
	if l.node == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.learning = cancel
	for _, loop := range l.loops {
		l.learners.Go(func() {
			if err := loop.Run(ctx); err != nil {
				w.note("the last checkpoint: %v", err)
			}
		})
	}
	l.serve()
	w.note("started")
	return l
}

// recover brings a model to where it was.
func (l *life) recover(m *modelPlan) error {
	w := l.world
	kept, err := l.store.Load(m.name, m.learner.Shape())
	if err != nil {
		return err
	}
	revive := func() (*online.Learner, error) {
		if kept.State == nil {
			return online.NewLearner(m.learner)
		}
		return online.Restore(m.learner, kept.State)
	}
	learner, _, err := online.Replay(revive, kept.Records)
	if err != nil {
		return err
	}
	seq, unsaved := kept.Seq, uint64(0)
	for i := range kept.Records {
		seq, unsaved = kept.Records[i].Seq, unsaved+uint64(kept.Records[i].Size())
	}
	if err := w.truth.recovered(m.name, seq, learner.Digest()); err != nil {
		return err
	}
	loop := online.NewLoop(learner, online.LoopOptions{
		Model: m.name, Seq: seq, Saved: kept.Seq, Queue: learnQueue, Checkpointer: journal{l},
		Every: w.plan.every, Samples: w.plan.samples, Unsaved: unsaved, Linger: linger, Notify: l.notify,
	})
	l.loops = append(l.loops, loop)
	l.feeds = append(l.feeds, stream.ModelConfig{
		Name: m.name, Model: loop, Streams: m.streams, Features: m.learner.Features, Classes: m.learner.Classes, Batch: m.learner.Batch,
		Pending: w.plan.pending, Waiting: kept.Pending, Mark: kept.Mark, Seed: m.learner.Seed,
	})
	return nil
}

func (l *life) notify(n online.Notice) {
	if n.Kind == online.NoticeStepRefused || n.Kind == online.NoticeEventRefused {
		l.world.fail("%s refuses %d: %s", n.Model, n.Seq, n.Detail)
	}
	l.world.mu.Lock()
	node := l.node
	l.world.mu.Unlock()
	node.Notify(n)
}

// newNode wires a node.
func (l *life) newNode(after *stream.Node) *stream.Node {
	taken, err := l.store.Taken()
	if err != nil {
		l.world.fail("%v", err)
	}
	node, err := stream.NewNode(l.world.plan.node, stream.Deps{
		Models: slices.Clone(l.feeds), Journal: journal{l}, Subscriptions: journal{l}, Dial: l.world.net.dial(l), After: after, Taken: taken,
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

// predicted is called by the node.
func (l *life) predicted(p *stream.Prediction) {
	l.world.mu.Lock()
	defer l.world.mu.Unlock()
	if !l.dead {
		l.answers.predicted(p)
	}
}

// bounded checks the bounds of the node's queues.
func (l *life) bounded() {
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
		w.fail("%d messages are not acknowledged, in a window of %d", s.Unacked, window)
	}
	for name, m := range s.Models {
		if m.Pending > w.plan.pending.Max {
			w.fail("%d samples of %s wait for their label, bound %d", m.Pending, name, w.plan.pending.Max)
		}
	}
}

// checkpoint is what a request asks for.
func (l *life) checkpoint(ctx context.Context, model string) error {
	for i, loop := range l.loops {
		if l.feeds[i].Name == model {
			return loop.Checkpoint(ctx)
		}
	}
	return fmt.Errorf("no model %s", model)
}

// serve runs the node.
func (l *life) serve() {
	ctx, cancel := context.WithCancelCause(context.Background())
	l.serving = cancel
	node := l.node
	go func() { l.served <- node.Run(ctx) }()
}

// reload lets another node of another configuration take over.
func (l *life) reload() {
	next := l.newNode(l.node)
	if next == nil {
		return
	}
	l.serving(stream.ErrReplaced)
	<-l.served
	next.Inherit()
	l.world.mu.Lock()
	l.node = next
	l.world.mu.Unlock()
	l.serve()
	l.world.note("reloaded")
}

func (l *life) isDead() bool {
	l.world.mu.Lock()
	defer l.world.mu.Unlock()
	return l.dead
}

// die ends the life at this instant, as SIGKILL does. The kernel still sends
// what it was given, as far as the network goes. The caller holds world.mu.
func (l *life) die(how string, args ...any) {
	if l.dead {
		return
	}
	l.world.log("killed "+how, args...)
	l.dead = true
	close(l.died)
	for _, k := range slices.Clone(l.world.net.links) {
		k.cut()
	}
}

// end waits until nothing of a life is left. One that was not killed stops in
// good order.
func (l *life) end() error {
	l.serving(nil)
	err := <-l.served
	l.learning()
	l.learners.Wait()
	if e := l.store.Close(); e != nil {
		l.world.fail("%v", e)
	}
	l.world.note("ended")
	return err
}
