package daemon

import (
	"edge/internal/config"
	"edge/internal/exit"
	"edge/internal/statefile"
	"edge/internal/web"
	"edge/model"
	"edge/online"
	"edge/online/fleet"
	"edge/stream"
	"edge/stream/field"
)

// deployment is a daemon under one configuration. It is never changed, only
// replaced.
type deployment struct {
	*web.Deployment                       // its configuration is the effective one
	settings        config.PackedSettings // of the configuration as it was read
	credentials     string                // digest of password and certificates
	tasks           map[string]*task      // of the models' loops, by the model's name
}

// newDeployment returns a deployment of a configuration as it was read, without
// models and node.
func newDeployment(cfg *config.Config) *deployment {
	return &deployment{Deployment: &web.Deployment{Config: cfg}, settings: cfg.Settings().Pack(), tasks: map[string]*task{}}
}

// current returns the deployment at work.
func (d *Daemon) current() *deployment { return d.deployed.Load() }

// setCurrent makes p the deployment at work.
func (d *Daemon) setCurrent(p *deployment) {
	d.monitor.Follow(p.Deployment)
	d.deployed.Store(p)
}

// deploy makes the first deployment.
func (d *Daemon) deploy(cfg *config.Config) (err error) {
	p := newDeployment(cfg)
	p.Config = statefile.Effective(d.store, cfg)
	p.credentials, _ = cfg.MQTT.Credentials() // connecting reports an error in them
	for _, name := range field.Names(p.Config.Models) {
		m, err := d.recoverModel(p.Config, name)
		if err != nil {
			return err
		}
		p.Models = append(p.Models, m)
	}
	for _, name := range statefile.Unused(d.store, cfg) {
		d.log.Warn("the state file also holds a model that the configuration does not name: call a model so to continue from it, or discard it with edge reset", "model", name)
	}
	if p.Node, err = d.newNode(p, nil); err != nil {
		return err
	}
	if r := d.store.Recovery(); r != nil {
		p.Node.Repaired(r.Describe())
	}
	d.setCurrent(p)
	if cfg.HTTP.Listen != "" {
		d.web = web.NewServer(cfg.HTTP, d.monitor, d.log)
	}
	return nil
}

// newNode wires the node of a deployment that is otherwise complete. after is the
// node that it replaces, nil at the start.
func (d *Daemon) newNode(p *deployment, after *stream.Node) (*stream.Node, error) {
	deps := stream.Deps{
		Readers: &d.readers,
		Journal: d.journal(), Log: d.log, Subscriptions: d.store,
		Build:    stream.Build{Version: d.monitor.Build.Version, Commit: d.monitor.Build.Commit},
		Settings: p.settings.Unpack().Digest(), After: after,
		Program: d.commands(),
		Health:  d.monitor.Health,
		OnEvent: d.monitor.OnEvent,
		OnLabel: d.monitor.Labelled,
		Courses: p.Config.HTTP.Listen != "",
		OnPrediction: func(p *stream.Prediction) {
			if d.current().Config.HTTP.Listen != "" { // the page and the metrics show it
				d.monitor.OnPrediction(p)
			}
			if d.onPrediction != nil {
				d.onPrediction(p)
			}
		},
	}
	var err error
	if deps.Taken, err = d.store.Taken(); err != nil {
		return nil, err
	}
	if deps.Windows, err = d.store.Windows(); err != nil {
		return nil, err
	}
	for _, m := range p.Models {
		deps.Models = append(deps.Models, followed(m))
	}
	node, err := stream.NewNode(p.Config.Stream(), deps)
	for _, m := range p.Models { // the node has them, and drops the samples one by one
		m.Feed.Waiting, m.Feed.Unlearnt = nil, nil
	}
	return node, exit.With(exit.Config, err)
}

// followed returns the feed of a model; that of a follower with the function that makes
// its posterior.
func followed(m *web.Model) stream.ModelConfig {
	feed := m.Feed
	if cfg := m.Config; feed.Fleet.Follows() {
		feed.Follow = func(member string, set *fleet.Set) (*model.Posterior, *fleet.Merge, error) {
			return online.Follow(cfg, member, set)
		}
	}
	return feed
}
