package daemon

import (
	"context"
	"errors"
	"time"

	"edge/internal/exit"
	"edge/internal/web"
	"edge/online"
	"edge/online/drift"
)

// lingerWithin bounds how long a loop still learns its queue once the node has
// stopped; the node takes 4.5 s at most, so that a stop takes 5.
const lingerWithin = 500 * time.Millisecond

// run is a running daemon: the state that only Run's goroutine reads and writes.
type run struct {
	*Daemon
	learning context.Context // of the tasks that outlive the node
	node     *task
	page     *task // nil: not served
}

// Run works until ctx ends, then stops in order: it takes no more messages;
// those that have arrived are answered, committed, acknowledged and learnt; the
// state is saved, and the node publishes that it is offline. While it runs it
// handles requests to reload the configuration. A state file that is damaged or
// replaced in the meantime ends it as well: the next start repairs the file, or
// continues with the new one.
func (d *Daemon) Run(ctx context.Context) error {
	r := &run{Daemon: d, learning: context.WithoutCancel(ctx)}
	for _, m := range d.current().Models {
		d.current().tasks[m.Name] = startTask(r.learning, m.Loop.Run)
	}
	trim := startTask(r.learning, func(ctx context.Context) error {
		trimMemory(ctx, d.learnt, func() { d.releaseWorkspaces(ctx) })
		return nil
	})
	watch := startTask(r.learning, func(ctx context.Context) error {
		d.monitor.Run(ctx, d.store, d.path)
		return nil
	})
	r.servePage()
	r.awaitRecovery(ctx)
	r.node = startTask(r.learning, d.current().Node.Run)
	storeErr := r.loop(ctx)
	page := r.page
	if page != nil {
		page.cancel(nil)
	}
	nodeErr := r.node.stop(nil)
	var failed []error
	for _, m := range d.current().Models {
		d.current().tasks[m.Name].cancel(nil)
	}
	for _, m := range d.current().Models {
		if err := d.current().tasks[m.Name].stop(nil); storeErr == nil { // else storeErr is its cause, and the loop has logged it
			failed = append(failed, err)
		}
	}
	watch.stop(nil)
	trim.stop(nil)
	page.stop(nil)
	for _, m := range d.current().Models {
		d.logFinalState(m)
	}
	return errors.Join(exit.With(exit.Store, storeErr), exit.With(exit.Runtime, nodeErr), exit.With(exit.Store, errors.Join(failed...)), d.Close())
}

// connectWithin bounds the time in which models may recover before the node connects
// and answers from their last checkpoints.
const connectWithin = 100 * time.Millisecond

// awaitRecovery waits until all models have recovered, for connectWithin at most.
func (r *run) awaitRecovery(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	for m := r.recovering(); m != nil; m = r.recovering() {
		select {
		case <-m.Loop.Recovered():
		case <-ctx.Done():
			return
		}
	}
}

// recovering returns a model that has yet to learn its journal, nil if there is none.
func (d *Daemon) recovering() *web.Model {
	for _, m := range d.current().Models {
		select {
		case <-m.Loop.Recovered():
		default:
			return m
		}
	}
	return nil
}

// loop handles requests to reload until ctx or the node ends, or the store
// fails; it returns the store's error. Requests to reload wait until all models have
// recovered: the journal is learnt under the configuration under which it began.
func (r *run) loop(ctx context.Context) (storeErr error) {
	for {
		reloads, recovered := r.reloads, (<-chan struct{})(nil)
		if m := r.recovering(); m != nil {
			reloads, recovered = nil, m.Loop.Recovered()
		}
		select {
		case <-recovered:
		case answer := <-reloads:
			r.reload(ctx, answer)
		case err := <-r.storeFailed:
			r.log.Error("the state file cannot be used any more: the daemon ends, its next start opens the file, and repairs it if necessary", "error", err)
			return err
		case <-r.node.done:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// servePage starts the page, if it is configured.
func (r *run) servePage() {
	if web := r.web; web != nil {
		r.page = startTask(r.learning, func(ctx context.Context) error {
			web.Run(ctx)
			return nil
		})
	}
}

// handleNotice passes a loop's notice on to the node, and rolls the model back on
// drift where that is configured. It never waits.
func (d *Daemon) handleNotice(n online.Notice) {
	p := d.current()
	p.Node.Notify(n)
	if m := p.Model(n.Model); m != nil && n.Kind == online.NoticeDrift && m.Config.Drift.Action == drift.ActionRollback {
		p.Node.RollBack(n.Model)
	}
}

// statusChanged passes on that a loop has a new status. It never waits.
func (d *Daemon) statusChanged() {
	d.monitor.OnStatus()
	select {
	case d.learnt <- struct{}{}:
	default:
	}
	if p := d.current(); p != nil { // not before the first deployment
		p.Node.Learnt()
	}
}

// releaseWorkspaces makes the models release the memory that only learning
// needs. The timeout covers a loop that a reload ends in the meantime.
func (d *Daemon) releaseWorkspaces(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, trimEvery)
	defer cancel()
	for _, m := range d.current().Models {
		m.Loop.Rest(ctx)
	}
	d.steps.Rest()
}

// logFinalState logs scores and digest of a model whose loop has ended.
func (d *Daemon) logFinalState(m *web.Model) {
	l := m.Loop.Learner()
	s := l.Scores()
	if kept, err := d.store.Info(m.Name); err == nil && kept.Last > m.Loop.Status().Seq { // an unreadable file is reported elsewhere
		d.log.Warn("the model has not learnt all labels; the state file has the rest, which the next start learns first", "model", m.Name, "records", kept.Last-m.Loop.Status().Seq)
	}
	d.log.Info("model stopped", "model", m.Name, "samples", s.N, "error", s.Error, "nll", s.NLL, "ece", s.ECE, "digest", l.Digest())
}
