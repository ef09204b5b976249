package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"edge/internal/config"
	"edge/internal/exit"
	"edge/internal/web"
	"edge/online"
	"edge/online/drift"
	"edge/persist"
	"edge/stream"
)

// LearnQueue is how many groups of committed records may wait for a learner.
// When it is full the journal waits, then acknowledgements, then the broker.
const LearnQueue = 64

// lingerWithin bounds how long what is queued for a learner is still learnt
// once the node has stopped; the node takes 4.5 s at most, so that a stop takes 5.
const lingerWithin = 500 * time.Millisecond

// Daemon is one edge node: its store, the loops that learn, and the node that
// speaks MQTT. `run` and `demo` have it in common. Store and loops outlive the
// node, which a new configuration may replace.
type Daemon struct {
	// Source reads the configuration again; nil: it stays as it is.
	Source func() (*config.Config, error)

	log   *slog.Logger
	store *persist.Store
	hook  func(*stream.Prediction)

	path    string       // of the store
	exports exports      // that requests write and go back to
	monitor *web.Monitor // of all of it
	at      atomic.Pointer[deployment]
	web     *web.Server        // nil: not served
	asks    chan chan<- reload // to reload the configuration, for Run's goroutine
	ruined  chan error         // why the store cannot be used any more, for Run's goroutine
}

// deployment is a daemon under one configuration. It is not changed, only replaced.
type deployment struct {
	*web.Deployment
	settings config.Settings  // the configuration, flat
	secrets  string           // digest of what proves who the node is
	work     map[string]*task // that runs a model's loop, by the model's name
	leftOut  []online.Notice  // of the start, about records of the journal
}

// New opens the store, recovers every model and wires the node; nothing
// runs yet. onPrediction, if not nil, is called with each prediction and must
// not wait. Close the daemon if it is not run.
func New(cfg *config.Config, log *slog.Logger, onPrediction func(*stream.Prediction)) (*Daemon, error) {
	store, err := persist.Open(cfg.StorePath(), persist.Options{MaxSize: int64(cfg.Store.MaxSize), Dedupe: cfg.Store.Dedupe, Log: log})
	if err != nil {
		return nil, exit.With(exit.Store, err)
	}
	d := &Daemon{log: log, store: store, hook: onPrediction, path: cfg.StorePath(), monitor: web.NewMonitor(), asks: make(chan chan<- reload), ruined: make(chan error, 1)}
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
	d.monitor.Follow(p.Deployment)
	d.at.Store(p)
}

// deploy makes the first deployment.
func (d *Daemon) deploy(cfg *config.Config) (err error) {
	p := &deployment{Deployment: &web.Deployment{Config: cfg}, settings: config.SettingsOf(cfg), work: map[string]*task{}}
	p.secrets, _ = cfg.MQTT.Credentials() // whoever connects says what is wrong with them
	for _, name := range slices.Sorted(maps.Keys(cfg.Models)) {
		m, leftOut, err := d.recover(cfg, name)
		if err != nil {
			return err
		}
		p.Models, p.leftOut = append(p.Models, m), append(p.leftOut, leftOut...)
	}
	if p.Node, err = d.newNode(p, nil); err != nil {
		return err
	}
	d.follow(p)
	for _, n := range p.leftOut {
		d.notify(n)
	}
	if cfg.HTTP.Listen != "" {
		d.web = web.NewServer(cfg.HTTP, d.monitor, d.log)
	}
	return nil
}

// newNode wires a node for a deployment that has everything else.
func (d *Daemon) newNode(p *deployment, after *stream.Node) (*stream.Node, error) {
	deps := stream.Deps{
		Journal: web.TimedJournal{Journal: d.journal(), Took: d.monitor.OnCommit}, Log: d.log, Subscriptions: d.store,
		Build:    stream.Build{Version: d.monitor.Build.Version, Commit: d.monitor.Build.Commit},
		Settings: p.settings.Digest(), After: after,
		Program: d.program(),
		Health:  d.monitor.HealthOfStore,
		OnEvent: d.monitor.OnEvent,
		OnLabel: d.monitor.Labelled,
		OnPrediction: func(p *stream.Prediction) {
			d.monitor.OnPrediction(p)
			if d.hook != nil {
				d.hook(p)
			}
		},
	}
	var err error
	if deps.Taken, err = d.store.Taken(); err != nil {
		return nil, err
	}
	for _, m := range p.Models {
		deps.Models = append(deps.Models, m.Feed)
	}
	node, err := stream.NewNode(p.Config.Stream(), deps)
	return node, exit.With(exit.Config, err)
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
		for _, m := range d.now().Models {
			m.Loop.MakeRoom()
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
func (d *Daemon) recover(cfg *config.Config, name string) (m *web.Model, leftOut []online.Notice, err error) {
	if info, err := d.store.Info(name); err == nil {
		cfg.Adopt(name, info.Shape)
	}
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
	restored := uint64(0)
	if kept.State != nil {
		restored = kept.Seq
	}
	seq, unsaved := kept.Seq, uint64(0)
	for i := range kept.Records {
		seq, unsaved = kept.Records[i].Seq, unsaved+uint64(kept.Records[i].Size())
	}
	m = &web.Model{Name: name, Config: learnerConfig, Feed: cfg.Feed(name, learnerConfig)}
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
	m.Feed.Waiting, m.Feed.Mark = kept.Pending, kept.Mark
	m.Loop = online.NewLoop(learner, online.LoopOptions{
		Model: name, Seq: seq, Saved: kept.Seq, Queue: LearnQueue,
		Checkpointer: d.store, Every: cfg.Store.Checkpoint.Every, Samples: cfg.Store.Checkpoint.Samples,
		Bytes: uint64(cfg.Store.Checkpoint.Size), Unsaved: unsaved,
		Linger: lingerWithin,
		Log:    d.log, Notify: d.notify,
		Learnt: func(t time.Duration) { d.monitor.OnLearnt(name, t) },
	})
	m.Feed.Model = m.Loop
	return m, leftOut, nil
}

// notify tells the node what a loop has to say. It never waits.
func (d *Daemon) notify(n online.Notice) {
	p := d.now()
	p.Node.Notify(n)
	if m := p.Model(n.Model); m != nil && n.Kind == online.NoticeDrift && m.Config.Drift.Action == drift.ActionRollback {
		p.Node.RollBack(n.Model)
	}
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
	for _, m := range d.now().Models {
		d.now().work[m.Name] = begin(r.learning, m.Loop.Run)
	}
	trim := begin(r.learning, func(ctx context.Context) error {
		trimMemory(ctx, func() { d.rest(ctx) })
		return nil
	})
	watch := begin(r.learning, func(ctx context.Context) error {
		d.monitor.Run(ctx, d.store, d.path)
		return nil
	})
	r.serve()
	r.node = begin(r.learning, d.now().Node.Run)
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
	for _, m := range d.now().Models {
		d.now().work[m.Name].cancel(nil)
	}
	for _, m := range d.now().Models {
		if err := d.now().work[m.Name].end(nil); ruin == nil { // which would be the reason, and the loop has logged it
			failed = append(failed, err)
		}
	}
	watch.end(nil)
	trim.end(nil)
	page.end(nil)
	for _, m := range d.now().Models {
		d.farewell(m)
	}
	return errors.Join(exit.With(exit.Store, ruin), exit.With(exit.Runtime, nodeErr), exit.With(exit.Store, errors.Join(failed...)), d.Close())
}

// rest makes the models give up the memory that only learning needs. A loop that
// a reload ends meanwhile needs none.
func (d *Daemon) rest(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, trimEvery)
	defer cancel()
	for _, m := range d.now().Models {
		m.Loop.Rest(ctx)
	}
}

// farewell logs what a model has learnt. Its loop has ended.
func (d *Daemon) farewell(m *web.Model) {
	l := m.Loop.Learner()
	s := l.Scores()
	d.log.Info("model stopped", "model", m.Name, "samples", s.N, "error", s.Error, "nll", s.NLL, "ece", s.ECE, "digest", l.Digest())
}

// Close releases the store.
func (d *Daemon) Close() error {
	d.web.Close()
	return exit.With(exit.Store, d.store.Close())
}

// Loop returns the loop of a model, nil if the daemon does not serve it.
func (d *Daemon) Loop(model string) *online.Loop {
	if m := d.now().Model(model); m != nil {
		return m.Loop
	}
	return nil
}

// PageURL returns the address of the page, "" if it is not served.
func (d *Daemon) PageURL() string { return d.web.URL() }

// Recovery returns what opening the store had to repair, nil if nothing.
func (d *Daemon) Recovery() *persist.Recovery { return d.store.Recovery() }
