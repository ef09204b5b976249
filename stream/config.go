package stream

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"edge/stream/codec"
	"edge/stream/field"
	"edge/stream/homeassistant"
	"edge/stream/membership"
	"edge/stream/mqtt"
	"edge/stream/topic"
)

// Metrics configures how often a model's scores are published.
type Metrics struct {
	// Every is the longest time between two publications. Default 30s, at least 1s.
	Every time.Duration `yaml:"every"`
	// Samples is the number of learnt samples after which the scores are published
	// early, at most once a second; they are also published when the number of samples
	// has doubled. 0: never early. Default 1000.
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
	// Max is the number of samples; the oldest makes room. Each takes 8 bytes a feature
	// and a class. 0: a label must come with its sample. Default 5000, range 0 to
	// 1000000.
	Max int `yaml:"max"`
	// MaxBytes bounds the memory of all samples. Default 16MiB, at least 64KiB.
	MaxBytes field.ByteSize `yaml:"max_bytes"`
	// TTL is the longest wait of a sample, in running time of the node: neither an
	// interruption nor a change of the clock counts. Default 24h, at least 1s.
	TTL time.Duration `yaml:"ttl"`
	// Corrections is the number of labelled samples with an id that are kept, so that
	// another label for the id corrects the first. 0: none. Default 500, range 0 to
	// 10000.
	Corrections int `yaml:"corrections"`
}

// DefaultPending returns the defaults that configs/edge.yaml documents.
func DefaultPending() Pending {
	return Pending{Max: 5000, MaxBytes: 16 * field.MiB, TTL: 24 * time.Hour, Corrections: 500}
}

// Validate reports every field that is out of range, joined.
func (p Pending) Validate() error {
	return field.Join(
		field.Check(p.Max >= 0 && p.Max <= 1e6, "max", p.Max, "0 to 1000000"),
		field.Check(p.MaxBytes >= 64*field.KiB && p.MaxBytes <= 1<<30, "max_bytes", p.MaxBytes, "64KiB to 1GiB"),
		field.Check(p.TTL >= time.Second, "ttl", p.TTL, "at least 1s"),
		field.Check(p.Corrections >= 0 && p.Corrections <= 1e4, "corrections", p.Corrections, "0 to 10000"),
	)
}

// Control configures whether requests are carried out.
type Control struct {
	// Enabled lets every client that may publish on <base>/<node>/request/# change the
	// node, and every visitor of the page give labels. Default false.
	Enabled bool `yaml:"enabled"`
}

// Config is the configuration of a Node, apart from its models.
type Config struct {
	// Node is the name of the node, a level of its topics: [a-z0-9_-].
	Node string
	// MQTT configures the connection to the broker.
	MQTT mqtt.Config
	// Outbox bounds the publications that wait.
	Outbox mqtt.OutboxConfig
	// Streams by name: [a-z0-9_-].
	Streams map[string]codec.Stream
	// Labels are the topics of labels without samples.
	Labels []codec.Labels
	// Metrics configures how often scores are published.
	Metrics Metrics
	// HomeAssistant configures the devices in Home Assistant.
	HomeAssistant homeassistant.Config
	// Control configures whether requests are carried out.
	Control Control
	// JournalFlush is the longest wait of a labelled message for others of the same
	// commit; InflightWindow messages are committed at once. Default 70ms, range 0 to
	// 10s.
	JournalFlush time.Duration
	// LossWindow, if not 0, acknowledges messages before they are durable, and is the
	// longest time between two commits: a crash or a power cut loses the labels and
	// samples of that time. Range 0 to 1h.
	LossWindow time.Duration
}

// DefaultConfig returns the defaults; Streams is empty.
func DefaultConfig() Config {
	return Config{
		Node: "edge", MQTT: mqtt.DefaultConfig(), Outbox: mqtt.DefaultOutboxConfig(), Streams: map[string]codec.Stream{},
		Metrics: DefaultMetrics(), HomeAssistant: homeassistant.DefaultConfig(), JournalFlush: 70 * time.Millisecond,
	}
}

// prefix returns the prefix of the node's topics, <base>/<node>/.
func (c Config) prefix() string { return c.MQTT.BaseTopic + "/" + c.Node + "/" }

// Validate reports every field that is out of range, joined, each with its key.
func (c Config) Validate() error {
	errs := []error{
		field.Check(topic.IsName(c.Node) && c.Node != membership.Level, "node", c.Node, "[a-z0-9_-], and not "+membership.Level),
		field.Within("mqtt", c.MQTT.Validate()),
		field.Within("outbox", c.Outbox.Validate()),
		field.Within("metrics", c.Metrics.Validate()),
		field.Within("homeassistant", c.HomeAssistant.Validate()),
		field.Check(c.JournalFlush >= 0 && c.JournalFlush <= 10*time.Second, "journal_flush", c.JournalFlush, "0s to 10s"),
		field.Check(c.LossWindow >= 0 && c.LossWindow <= time.Hour, "loss_window", c.LossWindow, "0s to 1h"),
	}
	for _, name := range field.Names(c.Streams) {
		errs = append(errs,
			field.Check(topic.IsName(name), "streams", name, "names of [a-z0-9_-]"),
			field.Within("streams."+name, c.Streams[name].Validate()))
	}
	for i, l := range c.Labels {
		errs = append(errs, field.Within(fmt.Sprintf("labels[%d]", i), l.Validate()))
	}
	return field.Join(errs...)
}

// NodeName converts a host name to a name for a node: lower case, with - for every
// character that is not allowed in a topic level. Empty becomes "edge".
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

// MaxName bounds the bytes of the name of a model, and of a stream with signals: persist takes that many.
const MaxName = 64

// ModelName converts the name of a data file to one for a model and its stream: as NodeName does, cut to
// MaxName bytes, and with -data after a level of the node's own topics.
func ModelName(file string) string {
	name := NodeName(file)
	if name = strings.TrimRight(name[:min(len(name), MaxName)], "-"); slices.Contains(nodeTopics, name) {
		name += "-data"
	}
	return name
}
