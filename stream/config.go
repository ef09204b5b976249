package stream

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"edge/stream/codec"
	"edge/stream/field"
	"edge/stream/mqtt"
	"edge/stream/topic"
)

// Metrics says how often a model's scores are published.
type Metrics struct {
	// Every is the longest time between two publications. Default 30s, at least 1s.
	Every time.Duration `yaml:"every"`
	// Samples is the number of learnt samples after which they are published
	// sooner, once a second at most; so they are when the samples have doubled.
	// 0: never sooner. Default 1000.
	Samples uint64 `yaml:"samples"`
}

// DefaultMetrics returns the defaults that configs/edge.yaml documents.
func DefaultMetrics() Metrics { return Metrics{Every: 30 * time.Second, Samples: 1000} }

// Validate reports every field that is out of range, joined.
func (m Metrics) Validate() error {
	return field.Check(m.Every >= time.Second, "every", m.Every, "at least 1s")
}

// Pending bounds the samples of a model that wait for their label.
type Pending struct {
	// Max samples; the oldest makes room. Each takes 8 bytes a feature and a
	// class. 0: a label must come with its sample. Default 5000, range 0 to 1000000.
	Max int `yaml:"max"`
	// MaxBytes of all samples that are kept. Default 16MiB, at least 64KiB.
	MaxBytes codec.ByteSize `yaml:"max_bytes"`
	// TTL is how long a sample waits, in time that the node runs: neither a pause
	// nor a clock that is set ages it. Default 24h, at least 1s.
	TTL time.Duration `yaml:"ttl"`
	// Corrections is how many samples with an id are kept after they were taught
	// their label, so that another label for the id corrects it. 0: none. Default
	// 500, range 0 to 10000.
	Corrections int `yaml:"corrections"`
}

// DefaultPending returns the defaults that configs/edge.yaml documents.
func DefaultPending() Pending {
	return Pending{Max: 5000, MaxBytes: 16 * codec.MiB, TTL: 24 * time.Hour, Corrections: 500}
}

// Validate reports every field that is out of range, joined.
func (p Pending) Validate() error {
	return errors.Join(
		field.Check(p.Max >= 0 && p.Max <= 1e6, "max", p.Max, "0 to 1000000"),
		field.Check(p.MaxBytes >= 64*codec.KiB && p.MaxBytes <= 1<<30, "max_bytes", p.MaxBytes, "64KiB to 1GiB"),
		field.Check(p.TTL >= time.Second, "ttl", p.TTL, "at least 1s"),
		field.Check(p.Corrections >= 0 && p.Corrections <= 1e4, "corrections", p.Corrections, "0 to 10000"),
	)
}

// HomeAssistant says whether the node's models show themselves as devices of
// Home Assistant.
type HomeAssistant struct {
	// Enabled announces each model. Switched off again, the devices are removed.
	// Default false.
	Enabled bool `yaml:"enabled"`
	// DiscoveryPrefix is Home Assistant's own. Default homeassistant.
	DiscoveryPrefix string `yaml:"discovery_prefix"`
	// StatusTopic is where Home Assistant says that it has started. Default
	// homeassistant/status.
	StatusTopic string `yaml:"status_topic"`
	// ExpireAfter is how long a prediction is shown if no other follows; the class
	// is unavailable then. 0: until the next one, as for devices that report only
	// what changes. Whole seconds. Default 0.
	ExpireAfter time.Duration `yaml:"expire_after"`
}

// DefaultHomeAssistant returns the defaults that configs/edge.yaml documents.
func DefaultHomeAssistant() HomeAssistant {
	return HomeAssistant{DiscoveryPrefix: "homeassistant", StatusTopic: "homeassistant/status"}
}

// Validate reports every field that is out of range, joined.
func (h HomeAssistant) Validate() error {
	return errors.Join(
		field.Check(topic.Check(h.DiscoveryPrefix) == nil, "discovery_prefix", fmt.Sprintf("%q", h.DiscoveryPrefix), "a topic"),
		field.Check(topic.Check(h.StatusTopic) == nil, "status_topic", fmt.Sprintf("%q", h.StatusTopic), "a topic"),
		field.Check(h.ExpireAfter >= 0 && h.ExpireAfter%time.Second == 0, "expire_after", h.ExpireAfter, "0s or whole seconds"),
	)
}

// Control says whether the node does what others ask it to.
type Control struct {
	// Enabled lets everybody who may publish on <base>/<node>/request/# change
	// what the node does, and everybody who reaches the page give labels on it.
	// Default false.
	Enabled bool `yaml:"enabled"`
}

// Config is everything that a Node is told, apart from its models.
type Config struct {
	// Node is the node's name, a level of its topics: [a-z0-9_-].
	Node string
	// MQTT says how to reach the broker.
	MQTT mqtt.Config
	// Outbox bounds what waits to be published.
	Outbox mqtt.OutboxConfig
	// Streams by name: [a-z0-9_-].
	Streams map[string]codec.Stream
	// Labels that come on topics of their own.
	Labels []codec.Labels
	// Metrics says how often scores are published.
	Metrics Metrics
	// HomeAssistant says whether the models show themselves there.
	HomeAssistant HomeAssistant
	// Control says whether requests are answered.
	Control Control
	// JournalFlush is the longest that a labelled message waits for others to be
	// committed with it, unless InflightWindow of them wait already. Default
	// 50ms, range 0 to 10s.
	JournalFlush time.Duration
	// LossWindow, unless it is 0, lets messages be acknowledged before what they
	// teach is durable: it is committed once in so long, and a crash or a power
	// cut loses what came since. Range 0 to 1h.
	LossWindow time.Duration
}

// DefaultConfig returns the defaults; Streams is empty.
func DefaultConfig() Config {
	return Config{
		Node: "edge", MQTT: mqtt.DefaultConfig(), Outbox: mqtt.DefaultOutboxConfig(), Streams: map[string]codec.Stream{},
		Metrics: DefaultMetrics(), HomeAssistant: DefaultHomeAssistant(), JournalFlush: 50 * time.Millisecond,
	}
}

// prefix begins the topics of the node: <base>/<node>/.
func (c Config) prefix() string { return c.MQTT.BaseTopic + "/" + c.Node + "/" }

// Validate reports every field that is out of range, joined, each with its key.
func (c Config) Validate() error {
	errs := []error{
		field.Check(topic.IsName(c.Node), "node", c.Node, "[a-z0-9_-]"),
		field.Within("mqtt", c.MQTT.Validate()),
		field.Within("outbox", c.Outbox.Validate()),
		field.Within("metrics", c.Metrics.Validate()),
		field.Within("homeassistant", c.HomeAssistant.Validate()),
		field.Check(c.JournalFlush >= 0 && c.JournalFlush <= 10*time.Second, "journal_flush", c.JournalFlush, "0s to 10s"),
		field.Check(c.LossWindow >= 0 && c.LossWindow <= time.Hour, "loss_window", c.LossWindow, "0s to 1h"),
	}
	for _, name := range slices.Sorted(maps.Keys(c.Streams)) {
		errs = append(errs,
			field.Check(topic.IsName(name), "streams", name, "names of [a-z0-9_-]"),
			field.Within("streams."+name, c.Streams[name].Validate()))
	}
	for i, l := range c.Labels {
		errs = append(errs, field.Within(fmt.Sprintf("labels[%d]", i), l.Validate()))
	}
	return errors.Join(errs...)
}

// NodeName turns a host name into a name for a node: lower case, and - for
// every character that a topic should not have. Empty becomes "edge".
func NodeName(host string) string {
	name := strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && topic.IsName(string(r)) {
			return r
		}
		return '-'
	}, strings.ToLower(host))
	if name = strings.Trim(name, "-"); name == "" {
		return "edge"
	}
	return name
}
