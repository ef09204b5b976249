package config

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"edge/online"
	"edge/stream"
	"edge/stream/field"
)

// Stream returns the configuration of a stream.Node. It is not inlined: its large result would be
// made anew in each of its callers.
//
//go:noinline
func (c *Config) Stream() stream.Config {
	var window time.Duration
	if c.Store.Durability == "relaxed" {
		window = c.Store.LossWindow
	}
	return stream.Config{
		LossWindow: window,
		Node:       c.Node, MQTT: c.MQTT, Outbox: c.Outbox, Streams: c.Streams, Labels: c.Labels,
		Metrics: c.Metrics, HomeAssistant: c.HomeAssistant, Control: c.Control, JournalFlush: c.Store.JournalFlush,
	}
}

// ModelName returns the name of a model of the configuration; "" stands for the only one.
func (c *Config) ModelName(name string) (string, error) {
	names := field.Names(c.Models)
	switch {
	case name == "" && len(names) == 1:
		return names[0], nil
	case name == "":
		return "", fmt.Errorf("models: the configuration has %d of them: name one of %s", len(names), strings.Join(names, ", "))
	case !slices.Contains(names, name):
		return "", fmt.Errorf("models: no model is called %q; the configuration has %s", name, strings.Join(names, ", "))
	}
	return name, nil
}

// Learner returns the configuration of one model's learner, with the features of
// its streams; "" names the only model.
func (c *Config) Learner(name string) (online.Config, error) {
	name, err := c.ModelName(name)
	if err != nil {
		return online.Config{}, err
	}
	m, key := c.Models[name], "models."+name+".streams"
	if len(m.Streams) == 0 {
		return online.Config{}, fmt.Errorf("%s: want the name of at least one stream", key)
	}
	cfg := m.Learner
	cfg.ApplyDefaults(m.Active)
	cfg.Fleet = m.Fleet.Learner()
	cfg.Features = slices.Clone(m.Features)
	var meanings []string
	for _, s := range m.Streams {
		from, ok := c.Streams[s]
		if !ok {
			return online.Config{}, fmt.Errorf("%s: no stream is called %q; the configuration has %s", key, s, cmp.Or(strings.Join(field.Names(c.Streams), ", "), "none"))
		}
		if meaning := from.Meaning(); meaning != "" && !slices.Contains(meanings, meaning) {
			meanings = append(meanings, meaning)
		}
		names := from.FeatureNames()
		if len(cfg.Features) == 0 {
			cfg.Features = names
		}
		known := make(map[string]bool, len(names))
		for _, f := range names {
			known[f] = true
		}
		for _, f := range cfg.Features {
			if len(names) > 0 && !known[f] { // without any, the stream has an error
				return online.Config{}, fmt.Errorf("%s: stream %s has no feature %q", key, s, f)
			}
		}
	}
	slices.Sort(meanings)
	cfg.Signals = strings.Join(meanings, "+")
	return cfg, nil
}

// Effective returns the configuration that applies to models with learnt states
// of these shapes (online.Config.Shape, by the model's name). A model without a
// configured number of inducing points keeps the number of its state, so that
// active learning can be enabled and disabled without discarding the state; its
// default differs between the two. c is not changed.
func (c *Config) Effective(shapes map[string]string) *Config {
	e := *c
	e.Models = maps.Clone(c.Models)
	for name, m := range e.Models {
		shape, ok := shapes[name]
		if !ok || m.Learner.Inducing != 0 {
			continue
		}
		if learnt, err := online.ConfigOfShape(shape); err == nil {
			m.Learner.Inducing = learnt.Inducing
			e.Models[name] = m
		}
	}
	return &e
}

// StorePath returns store.path with environment variables expanded. The error names a
// variable that is not set: without it the path would be another one.
func (c *Config) StorePath() (string, error) {
	if name := FirstUnset(c.Store.Path); name != "" {
		return "", fmt.Errorf("store.path: ${%s} is not set here; set it as the service of the daemon does: %[1]s=/var/lib/edge", name)
	}
	return os.ExpandEnv(c.Store.Path), nil
}

// FirstUnset returns the first environment variable of a path that is not set, "" if
// all are set.
func FirstUnset(path string) (name string) {
	os.Expand(path, func(variable string) string {
		if _, ok := os.LookupEnv(variable); !ok && name == "" {
			name = variable
		}
		return ""
	})
	return name
}

// Feed returns a node's configuration of a model whose learner has the
// configuration learner, without the model itself.
func (c *Config) Feed(name string, learner online.Config) stream.ModelConfig {
	of := c.Models[name]
	return stream.ModelConfig{
		Name: name, Streams: of.Streams, Features: learner.Features, Classes: learner.Classes, Batch: learner.Batch,
		Pending: of.Pending, Output: of.Output, Active: of.Active, Seed: learner.Seed, Fleet: of.Fleet,
	}
}
