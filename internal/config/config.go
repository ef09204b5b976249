package config

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"edge/online"
	"edge/online/active"
	"edge/stream"
	"edge/stream/codec"
	"edge/stream/field"
	"edge/stream/homeassistant"
	"edge/stream/membership"
	"edge/stream/mqtt"
)

// Bounds of the queue of a model's committed records that wait to be learnt. When it is full the
// journal waits, then acknowledgements, then the broker.
const (
	LearnQueue      = 64        // groups of records
	LearnQueueBytes = 256 << 10 // of memory
)

// Config is the configuration file. Every package owns its section; Config gives
// the YAML its shape. configs/edge.yaml documents every key.
type Config struct {
	// Node is the node's name, a level of its topics. Empty, the default: the host's name.
	Node          string                  `yaml:"node"`
	MQTT          mqtt.Config             `yaml:"mqtt"`
	Outbox        mqtt.OutboxConfig       `yaml:"outbox"`
	Streams       map[string]codec.Stream `yaml:"streams"`
	Labels        []codec.Labels          `yaml:"labels"`
	Models        map[string]Model        `yaml:"models"`
	Store         Store                   `yaml:"store"`
	Metrics       stream.Metrics          `yaml:"metrics"`
	HomeAssistant homeassistant.Config    `yaml:"homeassistant"`
	HTTP          HTTP                    `yaml:"http"`
	Control       stream.Control          `yaml:"control"`
	Log           Log                     `yaml:"log"`
	// MemoryLimit is the soft limit of the heap. 0: GOMEMLIMIT, or else 70 % of the
	// control group's limit. Default 0, else at least 8MiB.
	MemoryLimit field.ByteSize `yaml:"memory_limit"`
}

// Model is one classifier and the streams that feed it.
type Model struct {
	// Streams are the names of the streams that feed the model.
	Streams []string `yaml:"streams"`
	// Features are the names of the model's inputs, in its order; every stream has
	// to have them. Empty: those of the first stream.
	Features []string       `yaml:"features"`
	Learner  online.Config  `yaml:",inline"`
	Pending  stream.Pending `yaml:"pending"`
	// Active selects the samples whose label is queried.
	Active active.Config `yaml:"active"`
	// Output is the format of the predictions: json or cbor. Default json.
	Output string `yaml:"output" jsonschema:"enum=json,enum=cbor"`
	// Fleet lets nodes with models of the same concept learn together.
	Fleet membership.Config `yaml:"fleet"`
}

// Store configures the state file.
type Store struct {
	// Path of the file. ${NAME} is replaced by that environment variable.
	// Default edge.db, in the working directory.
	Path string `yaml:"path"`
	// JournalFlush is the longest time that a label waits for others to share its
	// commit. Default 70ms.
	JournalFlush time.Duration `yaml:"journal_flush"`
	// Durability: strict acknowledges a label once it is on the disk; relaxed
	// acknowledges it at once and writes once in LossWindow. Default strict.
	Durability string `yaml:"durability" jsonschema:"enum=strict,enum=relaxed"`
	// LossWindow is the time whose labels a crash or a power cut may lose where
	// durability is relaxed, and the longest delay before a label is learnt.
	// Default 1s, range 100ms to 1h.
	LossWindow time.Duration `yaml:"loss_window"`
	// Checkpoint schedules the checkpoints; the journal holds the records since the
	// last one.
	Checkpoint Checkpoint `yaml:"checkpoint"`
	// MaxSize bounds the file. Default 256MiB, at least 1MiB.
	MaxSize field.ByteSize `yaml:"max_size"`
	// Dedupe is the number of messages of each model that are remembered, so that a
	// repetition is not learnt. Default 4096, range 1 to 1000000.
	Dedupe int `yaml:"dedupe"`
}

// Checkpoint schedules the checkpoints of a model: one is due when any of the
// three is reached, if the model has learnt since the last one.
type Checkpoint struct {
	// Every is the time since the last one; 0: never by time. Default 5m.
	Every time.Duration `yaml:"every"`
	// Samples is the number learnt since the last one; 0: never by count. Default 5000.
	Samples uint64 `yaml:"samples"`
	// Size is that of the journal since the last one; 0: never by size. Default 8MiB.
	Size field.ByteSize `yaml:"size"`
}

// Log configures the log.
type Log struct {
	// Level: debug, info, warn or error. Default info.
	Level slog.Level `yaml:"level"`
	// Format: text, json, or auto: coloured text on a terminal, else text. Default auto.
	Format string `yaml:"format"`
}

// Default returns the defaults that configs/edge.yaml documents. It has
// no streams and no models.
func Default() Config {
	host, _ := os.Hostname()
	s := stream.DefaultConfig()
	return Config{
		Node:    defaultNode(host),
		MQTT:    s.MQTT,
		Outbox:  s.Outbox,
		Streams: map[string]codec.Stream{},
		Models:  map[string]Model{},
		Store: Store{
			Path:         "edge.db",
			JournalFlush: s.JournalFlush,
			Durability:   "strict",
			LossWindow:   time.Second,
			Checkpoint:   Checkpoint{Every: 5 * time.Minute, Samples: 5000, Size: 8 * field.MiB},
			MaxSize:      256 * field.MiB,
			Dedupe:       4096,
		},
		Metrics: s.Metrics, HomeAssistant: s.HomeAssistant,
		HTTP: HTTP{Listen: "127.0.0.1:9107", Hosts: []string{}},
		Log:  Log{Level: slog.LevelInfo, Format: "auto"},
	}
}

// defaultNode returns the name of a node on a host. A host may be called as the level of the topics of
// fleets, which no node is.
func defaultNode(host string) string {
	if name := stream.NodeName(host); name != membership.Level {
		return name
	}
	return stream.NodeName("")
}

// DefaultModel returns the defaults of a model, without streams. The default
// number of inducing points depends on active learning: Config.Learner sets it.
func DefaultModel() Model {
	learner := online.DefaultConfig()
	learner.Inducing = 0
	return Model{Learner: learner, Pending: stream.DefaultPending(), Active: active.Default(), Output: "json", Fleet: membership.Default()}
}

// UnmarshalYAML gives absent keys their defaults.
func (m *Model) UnmarshalYAML(unmarshal func(any) error) error {
	type plain Model
	p := plain(DefaultModel())
	if err := unmarshal(&p); err != nil {
		return err
	}
	*m = Model(p)
	return nil
}

// String returns the schedule in words.
func (c Checkpoint) String() string {
	var when []string
	if c.Every > 0 {
		when = append(when, "every "+c.Every.String())
	}
	if c.Samples > 0 {
		when = append(when, fmt.Sprintf("after %d samples", c.Samples))
	}
	if c.Size > 0 {
		when = append(when, fmt.Sprintf("after %v of journal", c.Size))
	}
	return strings.Join(when, " or ")
}
