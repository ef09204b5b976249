package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"edge/online"
	"edge/stream"
	"edge/stream/codec"
	"edge/stream/field"
	"edge/stream/topic"
)

// problems are the errors of a configuration.
type problems []error

// add adds the error of a key. It is not inlined: there are some twenty calls.
//
//go:noinline
func (p *problems) add(key, format string, args ...any) {
	*p = append(*p, fmt.Errorf("%s: %s", key, fmt.Sprintf(format, args...)))
}

// Validate returns every error of the configuration, joined, each with its key.
func (c *Config) Validate() error {
	node := c.Stream()
	node.JournalFlush, node.LossWindow = 0, 0 // checked below, under their keys
	errs := problems{node.Validate()}
	if len(c.Streams) == 0 {
		errs.add("streams", "want at least one, with topics and features")
	}
	for _, name := range field.Names(c.Streams) {
		if stage := c.Streams[name].StageConfig(); stage.Set() && len(name) > stream.MaxName {
			errs.add("streams."+name, "the name has %d bytes, and the state file takes %d of a stream with signals", len(name), stream.MaxName)
		}
	}
	if len(c.Models) == 0 {
		errs.add("models", "want at least one, with its streams")
	}
	for _, name := range field.Names(c.Models) {
		errs = append(errs, c.checkModel(name))
	}
	for i, l := range c.Labels {
		if _, ok := c.Models[l.Model]; l.Model != "" && !ok {
			errs.add(fmt.Sprintf("labels[%d].model", i), "%s: there is no such model", l.Model)
		}
	}
	s := c.Store
	if s.Path == "" {
		errs.add("store.path", "want the path of a file")
	}
	for _, of := range [...]struct{ key, path string }{
		{"store.path", s.Path}, {"mqtt.password.file", c.MQTT.Password.File}, {"mqtt.tls.ca", c.MQTT.TLS.CA}, {"mqtt.tls.cert", c.MQTT.TLS.Cert}, {"mqtt.tls.key", c.MQTT.TLS.Key},
		{"http.password.file", c.HTTP.Password.File}, {"http.tls.cert", c.HTTP.TLS.Cert}, {"http.tls.key", c.HTTP.TLS.Key},
	} {
		if rest, home := strings.CutPrefix(of.path, "~/"); home {
			errs.add(of.key, "%s: only a shell knows ~: want ${HOME}/%s", of.path, rest)
		}
	}
	if s.MaxSize < field.MiB {
		errs.add("store.max_size", "%v: want at least 1MiB", s.MaxSize)
	}
	if s.Dedupe < 1 || s.Dedupe > 1e6 {
		errs.add("store.dedupe", "%d: want 1 to 1000000 messages", s.Dedupe)
	}
	if c.MemoryLimit != 0 && c.MemoryLimit < 8*field.MiB {
		errs.add("memory_limit", "%v: want 0 or at least 8MiB", c.MemoryLimit)
	}
	if s.Durability != "strict" && s.Durability != "relaxed" {
		errs.add("store.durability", "%s: want strict or relaxed", s.Durability)
	}
	if s.JournalFlush < 0 || s.JournalFlush > 10*time.Second {
		errs.add("store.journal_flush", "%v: want 0s to 10s", s.JournalFlush)
	}
	if s.LossWindow < 100*time.Millisecond || s.LossWindow > time.Hour {
		errs.add("store.loss_window", "%v: want 100ms to 1h", s.LossWindow)
	}
	if s.Checkpoint.Every < 0 || s.Checkpoint.Every > 0 && s.Checkpoint.Every < time.Second {
		errs.add("store.checkpoint.every", "%v: want 0 (never by time) or at least 1s", s.Checkpoint.Every)
	}
	if s.Checkpoint.Every == 0 && s.Checkpoint.Samples == 0 && s.Checkpoint.Size == 0 {
		errs.add("store.checkpoint", "every, samples and size are all 0: the journal would grow until the store is full")
	}
	errs = append(errs, c.HTTP.Validate(c.Control.Enabled))
	if !slices.Contains([]string{"auto", "text", "json"}, c.Log.Format) {
		errs.add("log.format", "%s: want auto, text or json", c.Log.Format)
	}
	if err := field.Join(errs...); err != nil {
		return err
	}
	return c.checkNode()
}

// checkModel returns the errors of a model, each with its key.
func (c *Config) checkModel(name string) error {
	var errs problems
	key, m := "models."+name, c.Models[name]
	if !topic.IsName(name) {
		errs.add(key, "the name is a level of topics: want [a-z0-9_-]")
	}
	if len(name) > stream.MaxName {
		errs.add(key, "the name has %d bytes, and the state file takes %d", len(name), stream.MaxName)
	}
	learner, err := c.Learner(name)
	if err != nil {
		errs = append(errs, err)
	} else {
		if len(learner.Features) == 0 { // because of an error of its stream, which is reported
			learner.Features = []string{""}
		}
		if n := len(learner.Classes.Names); n > learner.Classes.Max && learner.Classes.Max != online.DefaultConfig().Classes.Max {
			errs.add(key+".classes.max", "%d: want at least the %d of classes.names", learner.Classes.Max, n)
		}
		for _, class := range learner.Classes.Names {
			if codec.HasControl(class) { // such a label is refused
				errs.add(key+".classes.names", "%q has a control character", class)
			}
		}
		errs = append(errs, field.Within(key, learner.Validate()), field.Within(key+".fleet", m.Fleet.Fits(&learner)))
	}
	seen := make(map[string]bool, len(m.Features))
	for _, f := range m.Features {
		if seen[f] {
			errs.add(key+".features", "%s occurs twice", f)
		}
		seen[f] = true
	}
	errs = append(errs, field.Within(key+".pending", m.Pending.Validate()), field.Within(key+".active", m.Active.Validate()), field.Within(key+".fleet", m.Fleet.Validate()))
	if m.Active.Enabled() && m.Pending.Max == 0 {
		errs.add(key+".active", "queries are for samples that wait for a label: give pending.max above 0")
	}
	if err := stream.CheckOutput(m.Output); err != nil {
		errs.add(key+".output", "%v", err)
	}
	return field.Join(errs...)
}

// checkNode returns the errors that a node would report for a configuration whose
// sections are each valid.
func (c *Config) checkNode() error {
	var feeds []stream.ModelConfig
	for _, name := range field.Names(c.Models) {
		learner, err := c.Learner(name)
		if err != nil {
			return err
		}
		feeds = append(feeds, c.Feed(name, learner))
	}
	return stream.Check(c.Stream(), feeds)
}
