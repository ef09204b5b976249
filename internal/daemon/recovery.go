package daemon

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"edge/internal/config"
	"edge/internal/exit"
	"edge/internal/statefile"
	"edge/internal/web"
	"edge/online"
	"edge/persist"
)

// recoverModel restores a model from its last checkpoint. Its loop learns the records
// that the journal holds after that, however the previous run ended. cfg is the
// effective configuration.
func (d *Daemon) recoverModel(cfg *config.Config, name string) (*web.Model, error) {
	learnerConfig, err := cfg.Learner(name)
	if err != nil {
		return nil, exit.With(exit.Config, err)
	}
	kept, err := d.store.Load(name, learnerConfig.Shape())
	if errors.Is(err, persist.ErrShape) && statefile.Vacant(d.store, name, learnerConfig.Classes.Names) {
		stored, _ := d.store.Shape(name)
		d.log.Info("the model had learnt nothing, and begins anew", "model", name, "reason", online.ShapeChange(stored, learnerConfig.Shape()))
		if err = d.store.Reset(name); err == nil {
			kept, err = d.store.Load(name, learnerConfig.Shape())
		}
	}
	if err != nil {
		return nil, exit.With(exit.Store, err)
	}
	learner, err := statefile.Learner(d.path, name, learnerConfig, kept.State)
	if err != nil {
		return nil, exit.With(exit.Store, err)
	}
	if l := kept.Loss; l.State || l.Samples > 0 || l.Pending > 0 || l.More {
		d.log.Error("part of what the model had learnt is lost", "model", name, "state", l.State, "samples", l.Samples, "pending", l.Pending, "more", l.More)
	}
	m := &web.Model{Name: name, Config: learnerConfig, Feed: cfg.Feed(name, learnerConfig)}
	m.Feed.Waiting, m.Feed.Mark, m.Feed.Unlearnt = kept.Pending, kept.Mark, online.ClassRecords(learnerConfig, kept.Records)
	m.Loop = d.newLoop(cfg, name, kept, learner)
	m.Feed.Model = m.Loop
	return m, nil
}

// newLoop returns the loop of a model that is restored from its checkpoint.
func (d *Daemon) newLoop(cfg *config.Config, name string, kept *persist.Recovered, learner *online.Learner) *online.Loop {
	restored := uint64(0)
	if kept.State != nil {
		restored = kept.Seq
	}
	ready, lost := d.logReady(name, kept, restored), false
	opts := online.LoopOptions{
		Model: name, Seq: kept.Seq, Saved: kept.Seq, Queue: config.LearnQueue, QueueBytes: config.LearnQueueBytes,
		Checkpointer: d.store, Every: cfg.Store.Checkpoint.Every, Samples: cfg.Store.Checkpoint.Samples,
		Bytes:  uint64(cfg.Store.Checkpoint.Size),
		Linger: lingerWithin, Workspaces: d.steps, Readers: &d.readers,
		Log: d.log, Notify: d.handleNotice,
		Learnt:  func(t time.Duration) { d.monitor.OnLearnt(name, t) },
		Changed: d.statusChanged,
	}
	if n, seq := len(kept.Records), kept.Seq; n > 0 { // Revive has seq: kept would keep the records in memory
		d.log.Info("the model recovers: it learns its journal, and answers from its last checkpoint until then", "model", name, "restored", restored, "records", n)
		opts.Recovery = &online.Recovery{
			Journal: d.readable(), Last: kept.Records[n-1].Seq, Ready: ready, Refused: func(r online.Refused) { lost = d.refusedAgain(name, r, lost) },
			Revive: func() (*online.Learner, uint64, error) { return d.revive(learner.Config(), name, seq) },
		}
	} else {
		ready(learner)
	}
	return online.NewLoop(learner, opts)
}

// revive returns the learner of a model's newest checkpoint; without one that of the
// start, before the record first.
func (d *Daemon) revive(cfg online.Config, name string, first uint64) (*online.Learner, uint64, error) {
	state, seq, err := d.store.State(name, false)
	if errors.Is(err, persist.ErrCheckpoint) {
		seq, err = first, nil
	}
	if err != nil {
		return nil, 0, err
	}
	l, err := online.RestoreOrNew(cfg, state)
	return l, seq, err
}

// refusedAgain reports a record of the journal that could not be learnt. The first label that the
// classes of the configuration do not allow is reported to the operator; lost: one was before.
func (d *Daemon) refusedAgain(name string, r online.Refused, lost bool) bool {
	if r.LeftOut == nil {
		level, text := slog.LevelDebug, "learning refused, as it was before"
		if !lost && r.Kind == online.Observe && errors.Is(r.Err, online.ErrClass) {
			lost, level, text = true, slog.LevelWarn, "labels are lost that a crash had left in the journal: the classes of the configuration have changed; stop the daemon before such a change, so that it learns them"
		}
		d.log.Log(context.Background(), level, text, "model", name, "seq", r.Seq, "reason", r.Err)
		return lost
	}
	d.log.Error("a record of the journal is left out: learning it panics, which is an error of this program",
		"model", name, "seq", r.Seq, "reason", r.Err, "stack", string(r.LeftOut.Stack))
	d.handleNotice(online.Notice{Model: name, Kind: online.NoticeEventRefused, Detail: "left out: " + r.Err.Error(), Seq: r.Seq})
	return lost
}

// logReady returns the function that logs the state that a model continues from.
func (d *Daemon) logReady(name string, kept *persist.Recovered, restored uint64) func(*online.Learner) {
	replayed, pending := len(kept.Records), kept.Waiting()
	return func(l *online.Learner) {
		scores := l.Scores()
		d.log.Info("model ready", "model", name, "restored", restored, "replayed", replayed, "pending", pending,
			"learnt", l.Posterior().N, "samples", scores.N, "classes", len(scores.Classes), "digest", l.Digest())
		if more := l.Undeclared(); len(more) > 0 {
			d.log.Warn("the model has classes that its closed list, classes.names, lacks; they stay, and labels of them are learnt: request class_remove, or list them", "model", name, "classes", more)
		}
	}
}
