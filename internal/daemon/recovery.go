package daemon

import (
	"fmt"
	"time"

	"edge/internal/config"
	"edge/internal/exit"
	"edge/internal/web"
	"edge/online"
	"edge/persist"
)

// recoverModel restores a model from its last checkpoint and the records that its
// journal holds after that, however the previous run ended. A record that makes
// the learner panic is left out. cfg is the effective configuration.
func (d *Daemon) recoverModel(cfg *config.Config, name string) (m *web.Model, leftOut []online.Notice, err error) {
	learnerConfig, err := cfg.Learner(name)
	if err != nil {
		return nil, nil, exit.With(exit.Config, err)
	}
	kept, err := d.store.Load(name, learnerConfig.Shape())
	if err != nil {
		return nil, nil, exit.With(exit.Store, err)
	}
	learner, refused, err := online.Replay(func() (*online.Learner, error) { return online.RestoreOrNew(learnerConfig, kept.State) }, kept.Records)
	if err != nil {
		return nil, nil, exit.With(exit.Store, fmt.Errorf("model %s: %w; `edge reset --model %s` gives its state up", name, err, name))
	}
	for _, r := range refused {
		if r.LeftOut != nil {
			d.log.Error("a record of the journal is left out: learning it panics, which is an error of this program",
				"model", name, "seq", r.Seq, "reason", r.Err, "stack", string(r.LeftOut.Stack))
			leftOut = append(leftOut, online.Notice{Model: name, Kind: online.NoticeEventRefused, Detail: "left out: " + r.Err.Error(), Seq: r.Seq})
			continue
		}
		d.log.Debug("learning refused, as it was before", "model", name, "seq", r.Seq, "reason", r.Err)
	}
	d.logRecovered(name, kept, learner)
	m = &web.Model{Name: name, Config: learnerConfig, Feed: cfg.Feed(name, learnerConfig)}
	m.Feed.Waiting, m.Feed.Mark = kept.Pending, kept.Mark
	m.Loop = d.newLoop(cfg, name, kept, learner)
	m.Feed.Model = m.Loop
	return m, leftOut, nil
}

// newLoop returns the loop of a recovered model.
func (d *Daemon) newLoop(cfg *config.Config, name string, kept *persist.Recovered, learner *online.Learner) *online.Loop {
	seq, unsaved := kept.Seq, uint64(0)
	for i := range kept.Records {
		seq, unsaved = kept.Records[i].Seq, unsaved+uint64(kept.Records[i].Size())
	}
	return online.NewLoop(learner, online.LoopOptions{
		Model: name, Seq: seq, Saved: kept.Seq, Queue: LearnQueue,
		Checkpointer: d.store, Every: cfg.Store.Checkpoint.Every, Samples: cfg.Store.Checkpoint.Samples,
		Bytes: uint64(cfg.Store.Checkpoint.Size), Unsaved: unsaved,
		Linger: lingerWithin,
		Log:    d.log, Notify: d.handleNotice,
		Learnt:  func(t time.Duration) { d.monitor.OnLearnt(name, t) },
		Changed: d.statusChanged,
	})
}

// logRecovered logs the state that a model continues from.
func (d *Daemon) logRecovered(name string, kept *persist.Recovered, learner *online.Learner) {
	restored := uint64(0)
	if kept.State != nil {
		restored = kept.Seq
	}
	if l := kept.Loss; l.Samples > 0 || l.Pending > 0 {
		d.log.Error("part of what the model had learnt is lost", "model", name, "samples", l.Samples, "pending", l.Pending)
	}
	scores := learner.Scores()
	d.log.Info("model ready", "model", name, "restored", restored, "replayed", len(kept.Records), "pending", len(kept.Pending),
		"samples", scores.N, "classes", len(scores.Classes), "digest", learner.Digest())
}
