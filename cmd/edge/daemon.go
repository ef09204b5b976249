package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

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
// speaks MQTT. `run` and `demo` have it in common. Store and loops outlive the
// node, which a new configuration may replace.
type Daemon struct {
	// Source reads the configuration again; nil: it stays as it is.
	Source func() (*Config, error)

	log   *slog.Logger
	store *persist.Store
	hook  func(*stream.Prediction)

	path    string   // of the store
	exports exports  // that requests write and go back to
	monitor *monitor // of all of it
	at      atomic.Pointer[deployment]
	web     *web               // nil: not served
	asks    chan chan<- reload // to reload the configuration, for Run's goroutine
	ruined  chan error         // why the store cannot be used any more, for Run's goroutine
}

// deployment is a daemon under one configuration. It is not changed, only replaced.
type deployment struct {
	*Deployment
	settings settings         // the configuration, flat
	secrets  string           // digest of what proves who the node is
	work     map[string]*task // that runs a model's loop, by the model's name
	leftOut  []online.Notice  // of the start, about records of the journal
}

// NewDaemon opens the store, recovers every model and wires the node; nothing
// runs yet. onPrediction, if not nil, is called with each prediction and must
// not wait. Close the daemon if it is not run.
func NewDaemon(cfg *Config, log *slog.Logger, onPrediction func(*stream.Prediction)) (*Daemon, error) {
	store, err := persist.Open(cfg.StorePath(), persist.Options{MaxSize: int64(cfg.Store.MaxSize), Dedupe: cfg.Store.Dedupe, Log: log})
	if err != nil {
		return nil, coded(exitStore, err)
	}
	d := &Daemon{log: log, store: store, hook: onPrediction, path: cfg.StorePath(), monitor: newMonitor(), asks: make(chan chan<- reload), ruined: make(chan error, 1)}
	d.exports = exports{store, filepath.Join(filepath.Dir(cfg.StorePath()), "exports")}
	if err := d.deploy(cfg); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// now returns what the daemon works as at this moment.
func (d *Daemon) now() *deployment { return d.at.Load() }

// follow takes p for the present deployment.
func (d *Daemon) follow(p *deployment) {
	d.monitor.follow(p.Deployment)
	d.at.Store(p)
}

// deploy makes the first deployment.
func (d *Daemon) deploy(cfg *Config) (err error) {
	p := &deployment{Deployment: &Deployment{cfg: cfg}, settings: settingsOf(cfg), work: map[string]*task{}}
	p.secrets, _ = cfg.MQTT.Credentials() // whoever connects says what is wrong with them
	for _, name := range slices.Sorted(maps.Keys(cfg.Models)) {
		m, leftOut, err := d.recover(cfg, name)
		if err != nil {
			return err
		}
		p.models, p.leftOut = append(p.models, m), append(p.leftOut, leftOut...)
	}
	if p.node, err = d.newNode(p, nil); err != nil {
		return err
	}
	d.follow(p)
	for _, n := range p.leftOut {
		d.notify(n)
	}
	if cfg.HTTP.Listen != "" {
		d.web = newWeb(cfg.HTTP, d.monitor, d.log)
	}
	return nil
}

// newNode wires a node for a deployment that has everything else.
func (d *Daemon) newNode(p *deployment, after *stream.Node) (*stream.Node, error) {
	deps := stream.Deps{
		Journal: timedJournal{d.journal(), d.monitor.onCommit}, Log: d.log, Subscriptions: d.store,
		Build:    stream.Build{Version: d.monitor.build.Version, Commit: d.monitor.build.Commit},
		Settings: p.settings.digest(), After: after,
		Program: d.program(),
		Health:  d.monitor.healthOfStore,
		OnEvent: d.monitor.onEvent,
		OnLabel: d.monitor.labelled,
		OnPrediction: func(p *stream.Prediction) {
			d.monitor.onPrediction(p)
			if d.hook != nil {
				d.hook(p)
			}
		},
	}
	var err error
	if deps.Taken, err = d.store.Taken(); err != nil {
		return nil, err
	}
	for _, m := range p.models {
		deps.Models = append(deps.Models, m.feed)
	}
	node, err := stream.NewNode(p.cfg.Stream(), deps)
	return node, coded(exitConfig, err)
}

// roomyJournal is a store that reports when it is full, and when it is damaged
// or replaced.
type roomyJournal struct {
	*persist.Store
	full   func()
	ruined func(error)
}

func (j roomyJournal) Commit(c *online.Commit) error {
	err := j.Store.Commit(c)
	switch {
	case errors.Is(err, persist.ErrFull):
		j.full()
	case errors.Is(err, persist.ErrDamaged), errors.Is(err, persist.ErrReplaced):
		j.ruined(err)
	}
	return err
}

// journal is the store as the node sees it. When it is full, checkpoints shorten
// the journals: none may be due for long, or ever while nothing can be committed.
// A damaged one is repaired when it is opened, and one that another file has
// replaced must not be written over it, so the daemon ends.
func (d *Daemon) journal() stream.Journal {
	return roomyJournal{d.store, func() {
		for _, m := range d.now().models {
			m.loop.MakeRoom()
		}
	}, func(err error) {
		select {
		case d.ruined <- err:
		default:
		}
	}}
}

// recover brings a model to where it was when the daemon ended, however it
// ended: its last checkpoint, and what its journal holds after that, without the
// records that are left out.
func (d *Daemon) recover(cfg *Config, name string) (m *servedModel, leftOut []online.Notice, err error) {
	if info, err := d.store.Info(name); err == nil {
		cfg.Adopt(name, info.Shape)
	}
	learnerConfig, err := cfg.Learner(name)
	if err != nil {
		return nil, nil, coded(exitConfig, err)
	}
	kept, err := d.store.Load(name, learnerConfig.Shape())
	if err != nil {
		return nil, nil, coded(exitStore, err)
	}
	learner, refused, err := online.Replay(func() (*online.Learner, error) { return online.RestoreOrNew(learnerConfig, kept.State) }, kept.Records)
	if err != nil {
		return nil, nil, coded(exitStore, fmt.Errorf("model %s: %w; `edge reset --model %s` gives its state up", name, err, name))
	}
	restored := uint64(0)
	if kept.State != nil {
		restored = kept.Seq
	}
	seq, unsaved := kept.Seq, uint64(0)
	for i := range kept.Records {
		seq, unsaved = kept.Records[i].Seq, unsaved+uint64(kept.Records[i].Size())
	}
	m = &servedModel{name: name, config: learnerConfig, feed: cfg.Feed(name, learnerConfig)}
	for _, r := range refused {
		if r.LeftOut != nil {
			d.log.Error("a record of the journal is left out: learning it panics, which is an error of this program",
				"model", name, "seq", r.Seq, "reason", r.Err, "stack", string(r.LeftOut.Stack))
			leftOut = append(leftOut, online.Notice{Model: name, Kind: online.NoticeEventRefused, Detail: "left out: " + r.Err.Error(), Seq: r.Seq})
			continue
		}
		d.log.Debug("learning refused, as it was before", "model", name, "seq", r.Seq, "reason", r.Err)
	}
	if l := kept.Loss; l.Samples > 0 || l.Pending > 0 {
		d.log.Error("part of what the model had learnt is lost", "model", name, "samples", l.Samples, "pending", l.Pending)
	}
	scores := learner.Scores()
	d.log.Info("model ready", "model", name, "restored", restored, "replayed", len(kept.Records), "pending", len(kept.Pending),
		"samples", scores.N, "classes", len(scores.Classes), "digest", learner.Digest())
	m.feed.Waiting, m.feed.Mark = kept.Pending, kept.Mark
	m.loop = online.NewLoop(learner, online.LoopOptions{
		Model: name, Seq: seq, Saved: kept.Seq, Queue: learnQueue,
		Checkpointer: d.store, Every: cfg.Store.Checkpoint.Every, Samples: cfg.Store.Checkpoint.Samples,
		Bytes: uint64(cfg.Store.Checkpoint.Size), Unsaved: unsaved,
		Linger: lingerWithin,
		Log:    d.log, Notify: d.notify,
		Learnt: func(t time.Duration) { d.monitor.onLearnt(name, t) },
	})
	m.feed.Model = m.loop
	return m, leftOut, nil
}

// notify tells the node what a loop has to say. It never waits.
func (d *Daemon) notify(n online.Notice) {
	p := d.now()
	p.node.Notify(n)
	if m := p.model(n.Model); m != nil && n.Kind == online.NoticeDrift && m.config.Drift.Action == online.ActionRollback {
		p.node.RollBack(n.Model)
	}
}

// task is a goroutine that can be ended and waited for.
type task struct {
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when it has ended
	err    error         // valid once done is closed
}

// begin starts a task.
func begin(ctx context.Context, run func(context.Context) error) *task {
	t := &task{done: make(chan struct{})}
	ctx, t.cancel = context.WithCancelCause(ctx)
	go func() {
		defer close(t.done)
		defer t.cancel(nil)
		t.err = run(ctx)
	}()
	return t
}

// end returns how the task ended; nil is a task that never began.
func (t *task) end(why error) error {
	if t == nil {
		return nil
	}
	t.cancel(why)
	<-t.done
	return t.err
}

// Run works until ctx ends, then stops in order: no more intake, what has
// arrived is answered, committed, acknowledged and learnt, the state is saved,
// the node says that it is offline. Meanwhile it reloads the configuration when
// it is asked to. A state file that was damaged or replaced meanwhile ends it, too:
// the next start repairs the file, or goes on with the other one.
func (d *Daemon) Run(ctx context.Context) error {
	r := &run{Daemon: d, learning: context.WithoutCancel(ctx)}
	for _, m := range d.now().models {
		d.now().work[m.name] = begin(r.learning, m.loop.Run)
	}
	trim := begin(r.learning, func(ctx context.Context) error {
		trimMemory(ctx, func() { d.rest(ctx) })
		return nil
	})
	watch := begin(r.learning, func(ctx context.Context) error {
		d.monitor.run(ctx, d.store, d.path)
		return nil
	})
	r.serve()
	r.node = begin(r.learning, d.now().node.Run)
	var ruin error
	for working := true; working; {
		select {
		case answer := <-d.asks:
			r.reload(ctx, answer)
		case ruin = <-d.ruined:
			d.log.Error("the state file cannot be used any more: the daemon ends, its next start opens what is there, and repairs it if need be", "error", ruin)
			working = false
		case <-r.node.done:
			working = false
		case <-ctx.Done():
			working = false
		}
	}
	page := r.page
	if page != nil {
		page.cancel(nil)
	}
	nodeErr := r.node.end(nil)
	var failed []error
	for _, m := range d.now().models {
		d.now().work[m.name].cancel(nil)
	}
	for _, m := range d.now().models {
		if err := d.now().work[m.name].end(nil); ruin == nil { // which would be the reason, and the loop has logged it
			failed = append(failed, err)
		}
	}
	watch.end(nil)
	trim.end(nil)
	page.end(nil)
	for _, m := range d.now().models {
		d.farewell(m)
	}
	return errors.Join(coded(exitStore, ruin), coded(exitRuntime, nodeErr), coded(exitStore, errors.Join(failed...)), d.Close())
}

// rest makes the models give up the memory that only learning needs. A loop that
// a reload ends meanwhile needs none.
func (d *Daemon) rest(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, trimEvery)
	defer cancel()
	for _, m := range d.now().models {
		m.loop.Rest(ctx)
	}
}

// farewell logs what a model has learnt. Its loop has ended.
func (d *Daemon) farewell(m *servedModel) {
	l := m.loop.Learner()
	s := l.Scores()
	d.log.Info("model stopped", "model", m.name, "samples", s.N, "error", s.Error, "nll", s.NLL, "ece", s.ECE, "digest", l.Digest())
}

// Close releases the store.
func (d *Daemon) Close() error {
	d.web.close()
	return coded(exitStore, d.store.Close())
}

// newLogger returns a log of this level and format: text, json or auto.
func newLogger(at slog.Level, format string, w io.Writer) *slog.Logger {
	level := new(slog.LevelVar)
	level.Set(at)
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewTextHandler(textWriter{w}, options)
	switch {
	case format == "json":
		handler = slog.NewJSONHandler(textWriter{w}, options)
	case format == "auto" && isTerminal(w):
		handler = newTerminalHandler(w, level)
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

// loop returns the loop of a model, nil if the daemon does not serve it.
func (d *Daemon) loop(model string) *online.Loop {
	if m := d.now().model(model); m != nil {
		return m.loop
	}
	return nil
}

// pageURL returns the address of the page, "" if it is not served.
func (d *Daemon) pageURL() string { return d.web.url() }

// recovery returns what opening the store had to repair, nil if nothing.
func (d *Daemon) recovery() *persist.Recovery { return d.store.Recovery() }
