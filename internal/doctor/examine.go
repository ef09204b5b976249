package doctor

import (
	"context"
	"time"

	"edge/internal/config"
	"edge/internal/doctor/diagnosis"
	"edge/internal/doctor/probe"
	"edge/stream/field"
	"edge/stream/mqtt"
)

// limits are the longest durations of the examinations.
type limits struct {
	all     time.Duration // everything
	speed   time.Duration // one model
	stage   time.Duration // the stage of one stream
	writing time.Duration // commits of the scratch store
	broker  probe.Limits
}

// patient returns the usual limits multiplied by times.
func patient(times int) limits {
	n := time.Duration(times)
	return limits{all: n * 2 * time.Minute, speed: n * 4 * time.Second, stage: n * 500 * time.Millisecond, writing: n * 3 * time.Second, broker: probe.Patient(times)}
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
func Examine(ctx context.Context, cfg *config.Config, o Options) *diagnosis.Diagnosis {
	began := time.Now()
	d, within := diagnosis.New(), patient(o.Patience)
	ctx, cancel := context.WithTimeout(ctx, within.all)
	defer cancel()
	examine(ctx, d, cfg, newHost(), o, within)
	d.Seconds = time.Since(began).Seconds()
	return d
}

// ExamineDelivery tests what a broker grants, and whether it delivers (probe.Delivery).
func ExamineDelivery(ctx context.Context, cfg *config.Config) *diagnosis.Diagnosis {
	d, within := diagnosis.New(), patient(1)
	ctx, cancel := context.WithTimeout(ctx, within.all)
	defer cancel()
	probe.Delivery(ctx, d, cfg, within.broker)
	return d
}

// examine adds the findings of all checks to d.
func examine(ctx context.Context, d *diagnosis.Diagnosis, cfg *config.Config, h host, o Options, within limits) {
	o.Progress("files …")
	examineRights(d, cfg, o.Path)
	examineDisk(d, cfg, h)
	examineState(d, cfg)
	o.Progress("machine …")
	examineMachine(d, cfg, h)
	o.Progress("speed …")
	for _, name := range field.Names(cfg.Streams) {
		if s := cfg.Streams[name].StageConfig(); s.Set() {
			examineStage(ctx, d, cfg, name, within.stage)
		}
	}
	for _, name := range field.Names(cfg.Models) {
		examineSpeed(ctx, d, cfg, name, within.speed)
	}
	o.Progress("writing …")
	examineEndurance(ctx, d, cfg, o.Rate, h, within.writing)
	if !o.Offline {
		o.Progress("broker …")
		probe.All(ctx, d, cfg, within.broker)
	}
	o.Progress("")
}

// examineRights examines the access rights of secrets, state and configuration.
func examineRights(d *diagnosis.Diagnosis, cfg *config.Config, path string) {
	const name = "rights"
	found := cfg.Exposures(path)
	for _, e := range found {
		d.Warn(name, e.Path+": "+e.Reason, e.Advice)
	}
	opts, err := cfg.MQTT.ClientOptions("edge-doctor")
	if err != nil {
		d.Fail(name, err.Error(), "run doctor as the daemon's user, with its environment; then check mqtt.password and mqtt.tls")
	} else if len(found) == 0 {
		d.OK(name, "other users can neither read secrets or state nor change the configuration")
	}
	if err == nil && len(opts.TLSConfig.Certificates) > 0 {
		d.Certificate("own certificate", "the certificate in mqtt.tls.cert is valid", opts.TLSConfig.Certificates[0].Leaf)
	}
	if err := cfg.HTTP.Readable(); cfg.HTTP.Listen != "" && err != nil {
		d.Fail("page", err.Error(), "run doctor as the daemon's user, with its environment; then check http.password and http.tls")
	}
	if pair, err := cfg.HTTP.TLS.Load(); cfg.HTTP.Listen != "" && cfg.HTTP.TLS.Enabled() && err == nil {
		d.Certificate("page's certificate", "the certificate in http.tls.cert is valid", pair.Leaf)
	}
	for _, e := range cfg.HTTP.Exposures(cfg.Control.Enabled) {
		d.Warn("page", e.Path+": "+e.Reason, e.Advice)
	}
	for _, s := range cfg.MQTT.Servers {
		if cfg.MQTT.Username != "" && !mqtt.Encrypted(s) && !loopbackServer(s) {
			d.Warn("broker", "the password goes to "+s+" unencrypted", "use mqtts:// and, if the broker's certificate is your own, mqtt.tls.ca")
		}
	}
}
