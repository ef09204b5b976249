package doctor

import (
	"context"
	"time"

	"edge/internal/config"
	"edge/stream/field"
	"edge/stream/mqtt"
)

// limits are the longest durations of the examinations.
type limits struct {
	all     time.Duration // everything
	speed   time.Duration // one model
	stage   time.Duration // the stage of one stream
	writing time.Duration // commits of the scratch store
	step    time.Duration // one answer of the broker
	answer  time.Duration // a message back, once the broker has acknowledged it
	quiet   time.Duration // without another message: no more will arrive
	sending time.Duration // probeQueue messages
}

// patient returns the usual limits multiplied by times.
func patient(times int) limits {
	n := time.Duration(times)
	return limits{
		all: n * 2 * time.Minute, speed: n * 4 * time.Second, stage: n * 500 * time.Millisecond, writing: n * 3 * time.Second,
		step: n * 5 * time.Second, answer: n * 2 * time.Second, quiet: n * 500 * time.Millisecond, sending: n * 8 * time.Second,
	}
}

// Options are the choices of `edge doctor`.
type Options struct {
	Path     string       // file of the configuration
	Rate     float64      // labelled messages a second of each stream
	Offline  bool         // leave the broker out
	Patience int          // factor of the longest durations
	Progress func(string) // called with a description of each step
}

// Examine runs all checks of a configuration and of this machine.
func Examine(ctx context.Context, cfg *config.Config, o Options) *Diagnosis {
	began := time.Now()
	d := &Diagnosis{V: 1, Grade: OK, within: patient(o.Patience)}
	ctx, cancel := context.WithTimeout(ctx, d.within.all)
	defer cancel()
	d.examine(ctx, cfg, newHost(), o)
	d.Seconds = time.Since(began).Seconds()
	return d
}

// examine adds the findings of all checks.
func (d *Diagnosis) examine(ctx context.Context, cfg *config.Config, h host, o Options) {
	o.Progress("files …")
	examineRights(d, cfg, o.Path)
	examineDisk(d, cfg, h)
	examineState(d, cfg)
	o.Progress("machine …")
	examineMachine(d, cfg, h)
	o.Progress("speed …")
	for _, name := range field.Names(cfg.Streams) {
		if s := cfg.Streams[name].StageConfig(); s.Set() {
			examineStage(ctx, d, cfg, name)
		}
	}
	for _, name := range field.Names(cfg.Models) {
		examineSpeed(ctx, d, cfg, name)
	}
	o.Progress("writing …")
	examineEndurance(ctx, d, cfg, o.Rate, h)
	if !o.Offline {
		o.Progress("broker …")
		examineBroker(ctx, d, cfg)
	}
	o.Progress("")
}

// examineRights examines the access rights of secrets, state and configuration.
func examineRights(d *Diagnosis, cfg *config.Config, path string) {
	const name = "rights"
	found := cfg.Exposures(path)
	for _, e := range found {
		d.warn(name, e.Path+": "+e.Reason, e.Advice)
	}
	opts, err := cfg.MQTT.ClientOptions("edge-doctor")
	if err != nil {
		d.fail(name, err.Error(), "run doctor as the daemon's user, with its environment; then check mqtt.password and mqtt.tls")
	} else if len(found) == 0 {
		d.ok(name, "other users can neither read secrets or state nor change the configuration")
	}
	if err == nil && len(opts.TLSConfig.Certificates) > 0 {
		d.validity("own certificate", "the certificate in mqtt.tls.cert is valid", opts.TLSConfig.Certificates[0].Leaf)
	}
	if err := cfg.HTTP.Readable(); cfg.HTTP.Listen != "" && err != nil {
		d.fail("page", err.Error(), "run doctor as the daemon's user, with its environment; then check http.password and http.tls")
	}
	if pair, err := cfg.HTTP.TLS.Load(); cfg.HTTP.Listen != "" && cfg.HTTP.TLS.Enabled() && err == nil {
		d.validity("page's certificate", "the certificate in http.tls.cert is valid", pair.Leaf)
	}
	for _, e := range cfg.HTTP.Exposures(cfg.Control.Enabled) {
		d.warn("page", e.Path+": "+e.Reason, e.Advice)
	}
	for _, s := range cfg.MQTT.Servers {
		if cfg.MQTT.Username != "" && !mqtt.Encrypted(s) && !loopbackServer(s) {
			d.warn("broker", "the password goes to "+s+" unencrypted", "use mqtts:// and, if the broker's certificate is your own, mqtt.tls.ca")
		}
	}
}
