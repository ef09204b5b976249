package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"

	"edge/internal/config"
	"edge/internal/statefile"
	"edge/internal/terminal"
	"edge/internal/web"
	"edge/stream"
	"edge/stream/field"
)

// reloaded is the outcome of a request to reload.
type reloaded struct {
	changed []string
	err     error
}

// Reload reads the configuration again and puts it into effect; no sample is lost or learnt twice.
// It waits until all models have recovered. It returns the keys that have changed; a node that has
// to connect again may still be connecting then. On an error the daemon keeps the old
// configuration.
func (d *Daemon) Reload(ctx context.Context) (changed []string, err error) {
	if d.Source == nil {
		return nil, errors.New("this program has no configuration that it could read again")
	}
	answer := make(chan reloaded, 1)
	select {
	case d.reloads <- answer:
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

// reload puts the configuration of Source into effect, or keeps the old one. The
// answer is sent before the old node is stopped: the request may be one of its
// own.
func (r *run) reload(ctx context.Context, answer chan<- reloaded) {
	old := r.current()
	next, changed, err := r.prepare(ctx, old)
	answer <- reloaded{changed, err}
	switch {
	case err != nil:
		r.log.Error("the new configuration is refused; the old one stays in effect", "error", err)
		old.Node.Refused(err.Error())
		return
	case next == nil:
		r.log.Info("the configuration was read again; nothing has changed")
		return
	}
	if old.Node != next.Node {
		r.replace(old, next)
	} else {
		r.setCurrent(next)
	}
	digest := next.settings.Unpack().Digest()
	keys := field.Listed(changed)
	r.log.Info("configuration reloaded", "changed", keys, "config", digest, "reconnect", old.Node != next.Node)
	next.Node.Reconfigured(digest, keys)
}

// replace stops the node of the old deployment and starts that of the next one,
// together with the loops of new models; it stops those of removed models.
func (r *run) replace(old, next *deployment) {
	var cause error
	if next.Config.Stream().Replaces(old.Config.Stream()) {
		cause = stream.ErrReplaced
	}
	if err := r.node.stop(cause); err != nil {
		r.log.Warn("not all was done when the node was replaced", "error", err)
	}
	next.Node.Inherit()
	r.setCurrent(next) // before loops start, which report to the monitor and the node
	for _, m := range next.Models {
		if next.tasks[m.Name] == nil {
			next.tasks[m.Name] = startTask(r.learning, m.Loop.Run)
		}
	}
	r.node = startTask(r.learning, next.Node.Run)
	for _, m := range old.Models {
		if next.Model(m.Name) == nil { // its state stays in the store
			if err := old.tasks[m.Name].stop(nil); err != nil {
				r.log.Error("the last checkpoint of a removed model failed; the journal keeps the records after the previous one", "model", m.Name, "error", err)
			}
			r.logFinalState(m)
		}
	}
}

// prepare takes every step that can fail, and none that cannot be undone. It
// returns a nil deployment if nothing has changed.
func (r *run) prepare(ctx context.Context, old *deployment) (next *deployment, changed []string, err error) {
	cfg, err := r.Source()
	if err != nil {
		return nil, nil, err
	}
	next = newDeployment(cfg)
	next.Node = old.Node
	if next.credentials, err = cfg.MQTT.Credentials(); err != nil {
		return nil, nil, err
	}
	was, is := old.settings.Unpack(), next.settings.Unpack()
	changed = was.Changes(is)
	if next.credentials != old.credentials {
		changed = append(changed, "mqtt.password or mqtt.tls renewed")
	}
	if len(changed) == 0 {
		return nil, nil, nil
	}
	next.Config = r.effective(old, cfg)
	if err := refusal(old, next, was, is, changed); err != nil {
		return nil, nil, err
	}
	if err := r.prepareModels(old, next); err != nil {
		return nil, nil, err
	}
	undo, err := reconfigure(ctx, old, next)
	if err != nil {
		return nil, nil, err
	}
	if !reflect.DeepEqual(old.Config.HTTP, cfg.HTTP) {
		if err := r.movePage(cfg.HTTP); err != nil {
			return nil, nil, errors.Join(err, undo())
		}
	}
	if level, ok := r.log.Handler().(terminal.AdjustableHandler); ok && old.Config.Log.Level != cfg.Log.Level {
		level.Level.Set(cfg.Log.Level)
	}
	r.store.SetMaxSize(int64(cfg.Store.MaxSize))
	return next, changed, nil
}

// effective returns a configuration as it applies to the running models and, for
// new ones, to the states that the store holds.
func (r *run) effective(old *deployment, cfg *config.Config) *config.Config {
	shapes := map[string]string{}
	for _, m := range old.Models {
		shapes[m.Name] = m.Config.Shape()
	}
	return statefile.Effective(r.store, cfg.Effective(shapes))
}

// prepareModels fills in the models of the next deployment, and a node of its own
// where the old node cannot serve it.
func (r *run) prepareModels(old, next *deployment) (err error) {
	rebuild := next.credentials != old.credentials || !reflect.DeepEqual(old.Config.Stream(), next.Config.Stream()) ||
		(old.Config.HTTP.Listen == "") != (next.Config.HTTP.Listen == "") || // the page has courses of signals
		old.Config.Store.MaxSize != next.Config.Store.MaxSize // a full store has lowered the bounds of pending samples
	for _, name := range field.Names(next.Config.Models) {
		m, same, err := r.carryOver(old, next.Config, name)
		if err != nil {
			return err
		}
		rebuild = rebuild || !same
		next.Models = append(next.Models, m)
		if t := old.tasks[name]; t != nil {
			next.tasks[name] = t
		}
	}
	if rebuild || len(old.Models) != len(next.Models) {
		next.Node, err = r.newNode(next, old.Node)
	}
	return err
}

// carryOver returns a model under a configuration: with its running loop, or
// recovered from the store if it is new. same reports whether the node feeds it
// as before.
func (r *run) carryOver(old *deployment, cfg *config.Config, name string) (m *web.Model, same bool, err error) {
	was := old.Model(name)
	if was == nil {
		m, err = r.recoverModel(cfg, name)
		return m, false, err
	}
	learner, err := cfg.Learner(name)
	if err != nil {
		return nil, false, err
	}
	m = &web.Model{Name: name, Config: learner, Feed: cfg.Feed(name, learner)}
	m.Loop = was.Loop
	m.Feed.Model, m.Feed.Mark = was.Loop, was.Feed.Mark
	return m, reflect.DeepEqual(was.Feed, m.Feed), nil
}

// reconfigure gives the running loops their new configuration. undo gives them
// the old one again.
func reconfigure(ctx context.Context, old, next *deployment) (undo func() error, err error) {
	apply := func(m *web.Model, c config.Checkpoint) error {
		return m.Loop.Reconfigure(ctx, m.Config, c.Every, c.Samples, uint64(c.Size))
	}
	var done []*web.Model
	undo = func() error {
		var failed []error
		for _, m := range done {
			failed = append(failed, apply(m, old.Config.Store.Checkpoint))
		}
		return errors.Join(failed...)
	}
	for _, m := range next.Models {
		was := old.Model(m.Name)
		if was == nil || reflect.DeepEqual(was.Config, m.Config) && old.Config.Store.Checkpoint == next.Config.Store.Checkpoint {
			continue
		}
		if err := apply(m, next.Config.Store.Checkpoint); err != nil {
			return nil, errors.Join(fmt.Errorf("models.%s: %w", m.Name, err), undo())
		}
		done = append(done, was)
	}
	return undo, nil
}

// movePage serves the page under another configuration. On an error it stays as
// it is.
func (r *run) movePage(to config.HTTP) error {
	was, page := r.web, (*web.Server)(nil)
	if to.Listen != "" {
		if err := to.Readable(); err != nil {
			return err
		}
	}
	refused := func() error { return fmt.Errorf("http.listen %s: %w", to.Listen, page.Failure()) }
	samePort := was != nil && portOf(was.Config.Listen) == portOf(to.Listen) // the old page may hold it
	if to.Listen != "" && !samePort {
		if page = web.NewServer(to, r.monitor, r.log); page.Failure() != nil {
			return refused()
		}
	}
	if err := r.page.stop(nil); err != nil {
		return err
	}
	r.page = nil
	var err error
	if to.Listen != "" && samePort {
		page = web.NewServer(to, r.monitor, r.log)
		if page.Failure() != nil && was.Config.Listen != to.Listen {
			err = refused()
			page = web.NewServer(was.Config, r.monitor, r.log)
		}
	}
	r.web = page
	r.servePage()
	return err
}

// portOf returns the port of an address, "" without one.
func portOf(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}
