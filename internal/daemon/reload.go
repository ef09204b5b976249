package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"edge/internal/config"
	"edge/internal/terminal"
	"edge/internal/web"
	"edge/online"
	"edge/stream"
)

// reload is the answer to whoever asked for one.
type reload struct {
	changed []string
	err     error
}

// Reload reads the configuration again, and lets the daemon work under it
// without forgetting, losing or learning twice anything. It returns the keys that
// have changed; a node that has to connect anew may still be on its way then. An
// error says why the daemon goes on under the old configuration.
func (d *Daemon) Reload(ctx context.Context) (changed []string, err error) {
	if d.Source == nil {
		return nil, errors.New("this program has no configuration that it could read again")
	}
	answer := make(chan reload, 1)
	select {
	case d.asks <- answer:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case r := <-answer:
		return r.changed, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// run is a daemon that runs: what only Run's goroutine knows.
type run struct {
	*Daemon
	learning context.Context // of all that has to outlive the node
	node     *task
	page     *task // nil: not served
}

// serve starts the page, if there is one.
func (r *run) serve() {
	if web := r.web; web != nil {
		r.page = begin(r.learning, func(ctx context.Context) error {
			web.Run(ctx)
			return nil
		})
	}
}

// reload works under the configuration of Source, or says why it does not. The
// answer comes before the old node is stopped: it may have asked itself.
func (r *run) reload(ctx context.Context, answer chan<- reload) {
	old := r.now()
	next, changed, err := r.prepare(ctx, old)
	answer <- reload{changed, err}
	switch {
	case err != nil:
		r.log.Error("the configuration is not taken over; the old one goes on", "error", err)
		old.Node.Refused(err.Error())
		return
	case next == nil:
		r.log.Info("the configuration was read again; nothing has changed")
		return
	}
	if old.Node != next.Node {
		r.replace(old, next)
	} else {
		r.follow(next)
	}
	r.log.Info("configuration reloaded", "changed", config.Joined(changed), "config", next.settings.Digest(), "reconnect", old.Node != next.Node)
	next.Node.Reconfigured(next.settings.Digest(), config.Joined(changed))
}

// replace stops a node and lets another carry on.
func (r *run) replace(old, next *deployment) {
	var why error
	if next.Config.Stream().Replaces(old.Config.Stream()) {
		why = stream.ErrReplaced
	}
	if err := r.node.end(why); err != nil {
		r.log.Warn("not all was done when the node was replaced", "error", err)
	}
	next.Node.Inherit()
	for _, m := range next.Models {
		if next.work[m.Name] == nil {
			next.work[m.Name] = begin(r.learning, m.Loop.Run)
		}
	}
	r.follow(next)
	r.node = begin(r.learning, next.Node.Run)
	for _, m := range old.Models {
		if next.Model(m.Name) == nil { // its state stays in the store
			if err := old.work[m.Name].end(nil); err != nil {
				r.log.Error("the last checkpoint of a model that is not served any more failed; the journal has what it would have held", "model", m.Name, "error", err)
			}
			r.farewell(m)
		}
	}
}

// prepare does all that may fail, and nothing that cannot be taken back. A nil
// deployment says that nothing has changed.
func (r *run) prepare(ctx context.Context, old *deployment) (next *deployment, changed []string, err error) {
	cfg, err := r.Source()
	if err != nil {
		return nil, nil, err
	}
	next = &deployment{Deployment: &web.Deployment{Config: cfg, Node: old.Node}, settings: config.SettingsOf(cfg), work: map[string]*task{}}
	if next.secrets, err = cfg.MQTT.Credentials(); err != nil {
		return nil, nil, err
	}
	changed = old.settings.Changes(next.settings)
	if next.secrets != old.secrets {
		changed = append(changed, "mqtt.password or mqtt.tls renewed")
	}
	if len(changed) == 0 {
		return nil, nil, nil
	}
	for _, was := range old.Models {
		cfg.Adopt(was.Name, was.Config.Shape())
	}
	if err := r.refusal(old, next, changed); err != nil {
		return nil, nil, err
	}
	rebuild := next.secrets != old.secrets || !reflect.DeepEqual(old.Config.Stream(), cfg.Stream())
	for _, name := range slices.Sorted(maps.Keys(cfg.Models)) {
		m, same, err := r.carryOver(old, cfg, name)
		if err != nil {
			return nil, nil, err
		}
		rebuild = rebuild || !same
		next.Models = append(next.Models, m)
		if w := old.work[name]; w != nil {
			next.work[name] = w
		}
	}
	rebuild = rebuild || len(old.Models) != len(next.Models)
	if rebuild {
		if next.Node, err = r.newNode(next, old.Node); err != nil {
			return nil, nil, err
		}
	}
	takeBack, err := r.reconfigure(ctx, old, next)
	if err != nil {
		return nil, nil, err
	}
	if !reflect.DeepEqual(old.Config.HTTP, cfg.HTTP) {
		if err := r.move(cfg.HTTP); err != nil {
			return nil, nil, errors.Join(err, takeBack())
		}
	}
	if level, ok := r.log.Handler().(terminal.AdjustableHandler); ok && old.Config.Log.Level != cfg.Log.Level {
		level.Level.Set(cfg.Log.Level)
	}
	r.store.SetMaxSize(int64(cfg.Store.MaxSize))
	return next, changed, nil
}

// carryOver returns a model under a configuration: with the loop that it has, or
// recovered from the store if it is new. Same says that the node is to feed it as
// before.
func (r *run) carryOver(old *deployment, cfg *config.Config, name string) (m *web.Model, same bool, err error) {
	was := old.Model(name)
	if was == nil {
		m, _, err = r.recover(cfg, name)
		return m, false, err
	}
	learner, err := cfg.Learner(name)
	if err != nil {
		return nil, false, err
	}
	m = &web.Model{Name: name, Config: learner, Feed: cfg.Feed(name, learner)}
	m.Loop = was.Loop
	m.Feed.Model, m.Feed.Mark = was.Loop, was.Feed.Mark
	before := was.Feed
	before.Waiting = nil
	return m, reflect.DeepEqual(before, m.Feed), nil
}

// reconfigure tells the loops; takeBack tells them otherwise.
func (r *run) reconfigure(ctx context.Context, old, next *deployment) (takeBack func() error, err error) {
	var done []*web.Model
	takeBack = func() error {
		var failed []error
		for _, m := range done {
			failed = append(failed, tell(ctx, m, old.Config.Store.Checkpoint))
		}
		return errors.Join(failed...)
	}
	for _, m := range next.Models {
		was := old.Model(m.Name)
		if was == nil || reflect.DeepEqual(was.Config, m.Config) && old.Config.Store.Checkpoint == next.Config.Store.Checkpoint {
			continue
		}
		if err := tell(ctx, m, next.Config.Store.Checkpoint); err != nil {
			return nil, errors.Join(fmt.Errorf("models.%s: %w", m.Name, err), takeBack())
		}
		done = append(done, was)
	}
	return takeBack, nil
}

// tell lets a model's loop go on under the model's configuration.
func tell(ctx context.Context, m *web.Model, c config.Checkpoint) error {
	return m.Loop.Reconfigure(ctx, m.Config, c.Every, c.Samples, uint64(c.Size))
}

// move serves the page elsewhere, or as something else.
func (r *run) move(to config.HTTP) error {
	var page *web.Server
	if to.Listen != "" {
		if err := to.Readable(); err != nil {
			return err
		}
	}
	elsewhere := r.web == nil || r.web.Config.Listen != to.Listen
	if to.Listen != "" && elsewhere {
		if page = web.NewServer(to, r.monitor, r.log); !page.Listening() {
			return fmt.Errorf("http.listen %s: cannot be had; the log says why", to.Listen)
		}
	}
	if err := r.page.end(nil); err != nil {
		return err
	}
	r.page = nil
	if to.Listen != "" && !elsewhere {
		page = web.NewServer(to, r.monitor, r.log)
	}
	r.web = page
	r.serve()
	return nil
}

// fixed are the keys that only a start reads, and why.
var fixed = map[string]string{
	"store.path":   "what was learnt is in the old file: stop the daemon, move the file, start it again",
	"store.dedupe": "the messages that are remembered are counted from the start: start the daemon again",
	"memory_limit": "it is measured against what the system gives at the start: start the daemon again",
	"log.format":   "it is chosen at the start: start the daemon again",
}

// refusal returns why a daemon cannot go on from one deployment to the other
// with all that it knows: each key and the way out.
func (r *run) refusal(old, next *deployment, changed []string) error {
	var errs []error
	for _, key := range changed {
		if why, ok := fixed[key]; ok {
			errs = append(errs, fmt.Errorf("%s: %q cannot become %q while the daemon runs: %s", key, old.settings[key], next.settings[key], why))
		}
	}
	for _, was := range old.Models {
		if _, stays := next.Config.Models[was.Name]; !stays {
			continue
		}
		to, err := next.Config.Learner(was.Name)
		if err != nil {
			return err
		}
		errs = append(errs, config.Prefixed("models."+was.Name, reinterpretation(&was.Config, &to, was.Loop.Posterior().Classes())))
	}
	return errors.Join(errs...)
}

// reinterpretation returns why a state that was learnt under one configuration
// does not mean the same under another, with each key that differs.
func reinterpretation(from, to *online.Config, classes []string) error {
	var errs []error
	differ := func(key string, from, to any) {
		if !reflect.DeepEqual(from, to) {
			errs = append(errs, fmt.Errorf("%s: what was learnt has %v and cannot become %v: restore it, or give the model another name; or stop, and give up what was learnt with `edge reset`", key, from, to))
		}
	}
	differ("features", strings.Join(from.Features, ","), strings.Join(to.Features, ","))
	differ("inducing", from.Inducing, to.Inducing)
	differ("horizons", fmt.Sprint(from.Horizons), fmt.Sprint(to.Horizons))
	differ("window", from.Window, to.Window)
	differ("kernel", from.Kernel, to.Kernel)
	if len(errs) == 0 && from.Shape() != to.Shape() {
		differ("shape", from.Shape(), to.Shape())
	}
	last := -1
	for _, name := range from.Classes.Names {
		at := slices.Index(to.Classes.Names, name)
		switch {
		case at < 0 && slices.Contains(classes, name):
			errs = append(errs, fmt.Errorf("classes.names: %q is a class that the model has: ask for class_remove or class_rename first, or put it back", name))
		case at >= 0 && at < last:
			errs = append(errs, fmt.Errorf("classes.names: %q has another place: the model has learnt the classes in the old order; new names go to the end", name))
		}
		last = max(last, at)
	}
	if len(classes) > to.Classes.Max && to.Classes.Max < from.Classes.Max {
		errs = append(errs, fmt.Errorf("classes.max: the model has %d classes, which are more than %d", len(classes), to.Classes.Max))
	}
	return errors.Join(errs...)
}
