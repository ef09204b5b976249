package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/lmittmann/tint"

	"edge/online"
	"edge/persist"
	"edge/stream"
)

// learnQueue is how many groups of committed records may wait for a learner.
// When it is full the journal waits, then acknowledgements, then the broker.
const learnQueue = 64

// lingerWithin bounds how long what is queued for a learner is still learnt
// once the node has stopped; the node takes 4.5 s at most, so that a stop takes 5.
const lingerWithin = 500 * time.Millisecond

// Daemon is one edge node: its store, the loops that learn, and the node that
// speaks MQTT. `run` and `demo` have it in common.
type Daemon struct {
	log    *slog.Logger
	store  *persist.Store
	models []*servedModel // in the order of their names
	node   *stream.Node

	path    string   // of the store
	exports exports  // that requests write and go back to
	monitor *monitor // of all of it
	web     *web     // nil: not served
}

// servedModel is one model of a daemon. The learner belongs to the loop while
// that runs.
type servedModel struct {
	name     string
	features []string
	config   online.Config
	learner  *online.Learner
	loop     *online.Loop
}

// NewDaemon opens the store, recovers every model and wires the node; nothing
// runs yet. onPrediction, if not nil, is called with each prediction and must
// not wait. Close the daemon if it is not run.
func NewDaemon(cfg *Config, log *slog.Logger, onPrediction func(*stream.Prediction)) (*Daemon, error) {
	store, err := persist.Open(cfg.StorePath(), persist.Options{MaxSize: int64(cfg.Store.MaxSize), Dedupe: cfg.Store.Dedupe, Log: log})
	if err != nil {
		return nil, coded(exitStore, err)
	}
	d := &Daemon{log: log, store: store, path: cfg.StorePath(), monitor: newMonitor(cfg)}
	d.exports = exports{store, filepath.Join(filepath.Dir(cfg.StorePath()), "exports")}
	if err := d.wire(cfg, onPrediction); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *Daemon) wire(cfg *Config, onPrediction func(*stream.Prediction)) error {
	deps := stream.Deps{
		Journal: timedJournal{d.journal(), d.monitor.onCommit}, Log: d.log, Subscriptions: d.store,
		Build:   stream.Build{Version: d.monitor.build.Version, Commit: d.monitor.build.Commit},
		Program: d.program(),
		Health:  d.monitor.healthOfStore,
		OnEvent: d.monitor.onEvent,
		OnPrediction: func(p *stream.Prediction) {
			d.monitor.onPrediction(p)
			if onPrediction != nil {
				onPrediction(p)
			}
		},
	}
	for _, name := range sortedKeys(cfg.Models) {
		m, kept, err := d.recover(cfg, name)
		if err != nil {
			return err
		}
		d.models = append(d.models, m)
		learner := m.learner.Config()
		deps.Models = append(deps.Models, stream.ModelConfig{
			Name: name, Model: m.loop, Streams: cfg.Models[name].Streams, Features: learner.Features,
			Classes: learner.Classes, Batch: learner.Batch, Pending: cfg.Models[name].Pending, Waiting: kept.Pending,
			Mark: kept.Mark, Output: cfg.Models[name].Output,
			Active: cfg.Models[name].Active, Seed: learner.Seed,
		})
	}
	node, err := stream.NewNode(cfg.Stream(), deps)
	if err != nil {
		return coded(exitConfig, err)
	}
	d.node, d.monitor.node, d.monitor.models = node, node, d.models
	if cfg.HTTP.Listen != "" {
		d.web = newWeb(cfg.HTTP, d.monitor, d.log)
	}
	return nil
}

// roomyJournal is a store that says when it is full.
type roomyJournal struct {
	*persist.Store
	full func()
}

func (j roomyJournal) Commit(c *online.Commit) error {
	err := j.Store.Commit(c)
	if errors.Is(err, persist.ErrFull) {
		j.full()
	}
	return err
}

// journal is the store as the node sees it. When it is full, checkpoints shorten
// the journals: none may be due for long, or ever while nothing can be committed.
func (d *Daemon) journal() stream.Journal {
	return roomyJournal{d.store, func() {
		for _, m := range d.models {
			m.loop.MakeRoom()
		}
	}}
}

// recover brings a model to where it was when the daemon ended, however it
// ended: its last checkpoint, and what its journal holds after that.
func (d *Daemon) recover(cfg *Config, name string) (*servedModel, *persist.Recovered, error) {
	learnerConfig, err := cfg.Learner(name)
	if err != nil {
		return nil, nil, coded(exitConfig, err)
	}
	kept, err := d.store.Load(name, learnerConfig.Shape())
	if err != nil {
		return nil, nil, coded(exitStore, err)
	}
	learner, err := revive(learnerConfig, kept.State)
	if err != nil {
		return nil, nil, coded(exitStore, fmt.Errorf("model %s: %w; `edge reset --model %s` gives its state up", name, err, name))
	}
	seq := kept.Seq
	for i := range kept.Records {
		r := &kept.Records[i]
		if out := learner.Add(&r.Event); out.Refused != nil {
			d.log.Debug("learning refused, as it was before", "model", name, "seq", r.Seq, "reason", out.Refused)
		}
		seq = r.Seq
	}
	if l := kept.Loss; l.Samples > 0 || l.Pending > 0 {
		d.log.Error("part of what the model had learnt is lost", "model", name, "samples", l.Samples, "pending", l.Pending)
	}
	scores := learner.Scores()
	d.log.Info("model ready", "model", name, "restored", kept.Seq, "replayed", len(kept.Records), "pending", len(kept.Pending),
		"samples", scores.N, "classes", len(scores.Classes), "digest", learner.Digest())
	m := &servedModel{name: name, features: learner.Config().Features, config: learnerConfig, learner: learner}
	m.loop = online.NewLoop(learner, online.LoopOptions{
		Model: name, Seq: seq, Saved: kept.Seq, Queue: learnQueue,
		Checkpointer: d.store, Every: cfg.Store.Checkpoint.Every, Samples: cfg.Store.Checkpoint.Samples,
		Linger: lingerWithin,
		Log:    d.log, Notify: func(n online.Notice) {
			d.node.Notify(n)
			if n.Kind == online.NoticeDrift && learnerConfig.Drift.Action == online.ActionRollback {
				d.node.RollBack(n.Model)
			}
		},
		Learnt: func(t time.Duration) { d.monitor.onLearnt(name, t) },
	})
	return m, kept, nil
}

// revive restores a learner from a state, or makes a new one if there is none.
func revive(cfg online.Config, state []byte) (*online.Learner, error) {
	if state == nil {
		return online.NewLearner(cfg)
	}
	return online.Restore(cfg, state)
}

// Run works until ctx ends, then stops in order: no more intake, what has
// arrived is answered, committed, acknowledged and learnt, the state is saved,
// the node says that it is offline.
func (d *Daemon) Run(ctx context.Context) error {
	learning, stopLearning := context.WithCancel(context.WithoutCancel(ctx))
	defer stopLearning()
	var loops sync.WaitGroup
	failed := make([]error, len(d.models))
	for i, m := range d.models {
		loops.Go(func() { failed[i] = m.loop.Run(learning) })
	}
	var watchers sync.WaitGroup
	watchers.Go(func() { d.monitor.run(learning, d.store, d.path) })
	if d.web != nil {
		watchers.Go(func() { d.web.run(ctx) })
	}
	nodeErr := d.node.Run(ctx)
	stopLearning()
	loops.Wait()
	watchers.Wait()
	for _, m := range d.models {
		s := m.learner.Scores()
		d.log.Info("model stopped", "model", m.name, "samples", s.N, "error", s.Error, "nll", s.NLL, "ece", s.ECE, "digest", m.learner.Digest())
	}
	return errors.Join(coded(exitRuntime, nodeErr), coded(exitStore, errors.Join(failed...)), d.Close())
}

// Close releases the store.
func (d *Daemon) Close() error {
	d.web.close()
	return coded(exitStore, d.store.Close())
}

// newLogger makes the log that cfg asks for.
func newLogger(cfg Log, w io.Writer) *slog.Logger {
	level := new(slog.LevelVar)
	level.Set(cfg.Level)
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewTextHandler(w, options)
	switch {
	case cfg.Format == "json":
		handler = slog.NewJSONHandler(w, options)
	case cfg.Format == "auto" && isTerminal(w):
		handler = tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly})
	}
	return slog.New(adjustable{handler, level})
}

// adjustable is a log's handler whose level can be set while it is in use.
type adjustable struct {
	slog.Handler
	level *slog.LevelVar
}

// set takes debug, info, warn or error, as the configuration does.
func (a adjustable) set(name string) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(name)); err != nil {
		return fmt.Errorf("level %.40q: want debug, info, warn or error", name)
	}
	a.level.Set(level)
	return nil
}
