package config

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"edge/internal/exit"
	"edge/online"
	"edge/online/active"
	"edge/stream"
	"edge/stream/codec"
	"edge/stream/mqtt"
)

// Config is the configuration file. Every package owns its part; what is here
// is the shape of the YAML. configs/edge.yaml documents every key.
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
	HomeAssistant stream.HomeAssistant    `yaml:"homeassistant"`
	HTTP          HTTP                    `yaml:"http"`
	Control       stream.Control          `yaml:"control"`
	Log           Log                     `yaml:"log"`
	// MemoryLimit is what the heap tries to stay within. 0: what GOMEMLIMIT says,
	// or else 70 % of what the control group allows. Default 0, else at least 8MiB.
	MemoryLimit codec.ByteSize `yaml:"memory_limit"`
}

// Model is one classifier and the streams that feed it.
type Model struct {
	// Streams are names of the streams that feed it.
	Streams []string `yaml:"streams"`
	// Features are the names of its inputs, in its order; every stream has to
	// have them. Empty: those of the first stream.
	Features []string       `yaml:"features"`
	Learner  online.Config  `yaml:",inline"`
	Pending  stream.Pending `yaml:"pending"`
	// Active says which labels are asked for.
	Active active.Config `yaml:"active"`
	// Output is the format of the predictions: json or cbor. Default json.
	Output string `yaml:"output" jsonschema:"enum=json,enum=cbor"`
}

// Store says where and how the state is kept.
type Store struct {
	// Path of the one file. ${NAME} is replaced by that environment variable.
	// Default edge.db, in the working directory.
	Path string `yaml:"path"`
	// JournalFlush is the longest that a label waits for others to share its
	// commit. Default 50ms.
	JournalFlush time.Duration `yaml:"journal_flush"`
	// Durability: strict acknowledges a label once it is on the disk; relaxed
	// acknowledges it at once and writes once in LossWindow. Default strict.
	Durability string `yaml:"durability" jsonschema:"enum=strict,enum=relaxed"`
	// LossWindow is what a crash or a power cut may lose where durability is
	// relaxed, and how late a label may be learnt. Default 1s, range 100ms to 1h.
	LossWindow time.Duration `yaml:"loss_window"`
	// Checkpoint says when the state is written; the journal holds what came since.
	Checkpoint Checkpoint `yaml:"checkpoint"`
	// MaxSize bounds the file. Default 256MiB, at least 1MiB.
	MaxSize codec.ByteSize `yaml:"max_size"`
	// Dedupe is how many messages of each model are remembered so that a
	// repetition teaches nothing. Default 4096, range 1 to 1000000.
	Dedupe int `yaml:"dedupe"`
}

// Checkpoint says when a model's state is written, if it has learnt something.
type Checkpoint struct {
	// Every so often; 0: never by time. Default 5m.
	Every time.Duration `yaml:"every"`
	// Samples learnt since the last one; 0: never by count. Default 5000.
	Samples uint64 `yaml:"samples"`
	// Size of what the journal holds since the last one; 0: never by size. Default 8MiB.
	Size codec.ByteSize `yaml:"size"`
}

// Log says what is logged, and how.
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
		Node:    stream.NodeName(host),
		MQTT:    s.MQTT,
		Outbox:  s.Outbox,
		Streams: map[string]codec.Stream{},
		Models:  map[string]Model{},
		Store: Store{
			Path:         "edge.db",
			JournalFlush: s.JournalFlush,
			Durability:   "strict",
			LossWindow:   time.Second,
			Checkpoint:   Checkpoint{Every: 5 * time.Minute, Samples: 5000, Size: 8 * codec.MiB},
			MaxSize:      256 * codec.MiB,
			Dedupe:       4096,
		},
		Metrics: s.Metrics, HomeAssistant: s.HomeAssistant,
		HTTP: HTTP{Listen: "127.0.0.1:9107", Hosts: []string{}},
		Log:  Log{Level: slog.LevelInfo, Format: "auto"},
	}
}

// DefaultModel returns the defaults of a model; it has no streams. Its number of
// inducing points depends on whether labels are asked for: Config.Learner says.
func DefaultModel() Model {
	learner := online.DefaultConfig()
	learner.Inducing = 0
	return Model{Learner: learner, Pending: stream.DefaultPending(), Active: active.Default(), Output: "json"}
}

// UnmarshalYAML gives the keys that are not there their defaults.
func (m *Model) UnmarshalYAML(unmarshal func(any) error) error {
	type plain Model
	p := plain(DefaultModel())
	if err := unmarshal(&p); err != nil {
		return err
	}
	*m = Model(p)
	return nil
}

// Load reads, completes and validates a configuration: defaults, then the
// file, then environment variables. Its errors exit with exit.Config.
func Load(path string) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, exit.With(exit.Config, fmt.Errorf("configuration: %w; `edge config sample` prints one to begin with", err))
	}
	c, err := Parse(path, data, os.Environ())
	return c, exit.With(exit.Config, err)
}

// Parse makes a configuration of a file's content and an environment.
func Parse(path string, data []byte, environ []string) (*Config, error) {
	c := Default()
	where, err := strictYAML(path, data, &c)
	if err != nil {
		return nil, err
	}
	from, err := c.ApplyEnviron(environ)
	if err != nil {
		return nil, err
	}
	if c.Node == "" {
		c.Node = Default().Node
	}
	var errs []error
	for _, err := range flatten(c.Validate()) {
		key, _, _ := strings.Cut(strings.Replace(err.Error(), ":", " ", 1), " ")
		at := path
		if p, ok := nearestPosition(where, key); ok {
			at = fmt.Sprintf("%s:%d:%d", path, p.line, p.column)
		}
		if name, ok := from[key]; ok {
			at = name
		}
		errs = append(errs, fmt.Errorf("%s: %w", at, err))
	}
	return &c, errors.Join(errs...)
}

// nearestPosition is where a key, or the innermost mapping around it, stands.
func nearestPosition(where map[string]position, key string) (position, bool) {
	for key != "" {
		if p, ok := where[key]; ok {
			return p, true
		}
		key = key[:max(strings.LastIndexAny(key, ".["), 0)]
	}
	return position{}, false
}

// flatten lists the errors that were joined into err.
func flatten(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, flatten(e)...)
		}
		return all
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// envPrefix begins the environment variables that override keys: the key's path
// in capitals, with _ for every other character. Lists are separated by commas.
const envPrefix = "EDGE_"

// ApplyEnviron overrides keys by environment variables of the form NAME=value.
// It returns which variable set which key.
func (c *Config) ApplyEnviron(environ []string) (from map[string]string, err error) {
	values := map[string]string{}
	for _, s := range environ {
		if name, value, ok := strings.Cut(s, "="); ok && strings.HasPrefix(name, envPrefix) {
			values[name] = value
		}
	}
	from = map[string]string{}
	var errs []error
	visitKeys(reflect.ValueOf(c).Elem(), "", func(key string, v reflect.Value) {
		name := envName(key)
		text, ok := values[name]
		if !ok {
			return
		}
		from[key] = name
		if err := setFromText(v, text); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", name, key, err))
		}
	})
	return from, errors.Join(errs...)
}

// envName is the environment variable that overrides a key.
func envName(key string) string {
	return envPrefix + strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(key))
}

// visitKeys calls visit with every key below v that holds one word or a list of
// them. Changes that visit makes stay.
func visitKeys(v reflect.Value, path string, visit func(key string, v reflect.Value)) {
	t := v.Type()
	switch {
	case isScalar(t), t.Kind() == reflect.Slice && isScalar(t.Elem()):
		visit(path, v)
	case t.Kind() == reflect.Struct:
		visitFields(v, func(key string, field reflect.Value) { visitKeys(field, joinKey(path, key), visit) })
	case t.Kind() == reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			value := reflect.New(t.Elem()).Elem() // an element of a map cannot be set in place
			value.Set(v.MapIndex(key))
			visitKeys(value, joinKey(path, key.String()), visit)
			v.SetMapIndex(key, value)
		}
	}
}

func joinKey(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// setFromText sets a scalar, or a list of scalars separated by commas.
func setFromText(v reflect.Value, text string) error {
	if v.Kind() != reflect.Slice || isText(v.Type()) {
		return parseScalar(v, text)
	}
	list := reflect.MakeSlice(v.Type(), 0, 4)
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		e := reflect.New(v.Type().Elem()).Elem()
		if err := parseScalar(e, word); err != nil {
			return err
		}
		list = reflect.Append(list, e)
	}
	v.Set(list)
	return nil
}

// Validate reports everything that is wrong, joined, each with its key.
func (c *Config) Validate() error {
	errs := []error{c.Stream().Validate()}
	fail := func(key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", key, fmt.Sprintf(format, args...)))
	}
	if len(c.Streams) == 0 {
		fail("streams", "want at least one, with topics and features")
	}
	if len(c.Models) == 0 {
		fail("models", "want at least one, with its streams")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		key, m := "models."+name, c.Models[name]
		if name != stream.NodeName(name) {
			fail(key, "the name is a level of topics: want [a-z0-9_-]")
		}
		learner, err := c.Learner(name)
		if err != nil {
			errs = append(errs, err)
		} else {
			errs = append(errs, Prefixed(key, learner.Validate()))
		}
		errs = append(errs, Prefixed(key+".pending", m.Pending.Validate()), Prefixed(key+".active", m.Active.Validate()))
		if m.Active.Enabled() && m.Pending.Max == 0 {
			errs = append(errs, fmt.Errorf("%s.active: only samples that wait for a label are asked for: give pending.max above 0", key))
		}
		if err := stream.CheckOutput(m.Output); err != nil {
			fail(key+".output", "%v", err)
		}
	}
	for i, l := range c.Labels {
		if _, ok := c.Models[l.Model]; l.Model != "" && !ok {
			fail(fmt.Sprintf("labels[%d].model", i), "%s: there is no such model", l.Model)
		}
	}
	s := c.Store
	if s.Path == "" {
		fail("store.path", "want the path of a file")
	}
	if s.MaxSize < codec.MiB {
		fail("store.max_size", "%v: want at least 1MiB", s.MaxSize)
	}
	if s.Dedupe < 1 || s.Dedupe > 1e6 {
		fail("store.dedupe", "%d: want 1 to 1000000 messages", s.Dedupe)
	}
	if c.MemoryLimit != 0 && c.MemoryLimit < 8*codec.MiB {
		fail("memory_limit", "%v: want 0 or at least 8MiB", c.MemoryLimit)
	}
	if s.Durability != "strict" && s.Durability != "relaxed" {
		fail("store.durability", "%s: want strict or relaxed", s.Durability)
	}
	if s.LossWindow < 100*time.Millisecond || s.LossWindow > time.Hour {
		fail("store.loss_window", "%v: want 100ms to 1h", s.LossWindow)
	}
	if s.Checkpoint.Every < 0 || s.Checkpoint.Every > 0 && s.Checkpoint.Every < time.Second {
		fail("store.checkpoint.every", "%v: want 0 (never by time) or at least 1s", s.Checkpoint.Every)
	}
	if s.Checkpoint.Every == 0 && s.Checkpoint.Samples == 0 {
		fail("store.checkpoint", "every and samples are both 0: the journal would grow until the store is full")
	}
	errs = append(errs, c.HTTP.Validate(c.Control.Enabled))
	if !slices.Contains([]string{"auto", "text", "json"}, c.Log.Format) {
		fail("log.format", "%s: want auto, text or json", c.Log.Format)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return c.checkNode()
}

// checkNode reports what a node would refuse of a configuration whose parts are
// valid each by itself.
func (c *Config) checkNode() error {
	var feeds []stream.ModelConfig
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		learner, err := c.Learner(name)
		if err != nil {
			return err
		}
		feeds = append(feeds, c.Feed(name, learner))
	}
	return stream.Check(c.Stream(), feeds)
}

// Prefixed puts a key's prefix before every joined error.
func Prefixed(key string, err error) error {
	var errs []error
	for _, e := range flatten(err) {
		errs = append(errs, fmt.Errorf("%s.%w", key, e))
	}
	return errors.Join(errs...)
}

// Stream is the part of the configuration that a stream.Node needs.
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

// Learner is the configuration of one model's learner, with the features of
// its streams; "" is the only model.
func (c *Config) Learner(name string) (online.Config, error) {
	if name == "" {
		if len(c.Models) != 1 {
			return online.Config{}, fmt.Errorf("models: the configuration has %d of them: name one of %s", len(c.Models), strings.Join(slices.Sorted(maps.Keys(c.Models)), ", "))
		}
		name = slices.Sorted(maps.Keys(c.Models))[0]
	}
	m, ok := c.Models[name]
	if !ok {
		return online.Config{}, fmt.Errorf("models: there is none called %q; there is %s", name, strings.Join(slices.Sorted(maps.Keys(c.Models)), ", "))
	}
	key := "models." + name + ".streams"
	if len(m.Streams) == 0 {
		return online.Config{}, fmt.Errorf("%s: want the name of at least one stream", key)
	}
	cfg := m.Learner
	cfg.ApplyDefaults(m.Active)
	cfg.Features = slices.Clone(m.Features)
	for _, s := range m.Streams {
		from, ok := c.Streams[s]
		if !ok {
			return online.Config{}, fmt.Errorf("%s: there is no stream called %q; there is %s", key, s, strings.Join(slices.Sorted(maps.Keys(c.Streams)), ", "))
		}
		names := from.FeatureNames()
		if len(cfg.Features) == 0 {
			cfg.Features = names
		}
		for _, f := range cfg.Features {
			if !slices.Contains(names, f) {
				return online.Config{}, fmt.Errorf("%s: stream %s has no feature %q", key, s, f)
			}
		}
	}
	return cfg, nil
}

// Adopt gives a model whose number of inducing points is not said that of what it
// has learnt already, under a configuration of this online.Config.Shape: asking for
// labels begins or ends without giving that up.
func (c *Config) Adopt(name, shape string) {
	m, ok := c.Models[name]
	if learnt, err := online.ConfigOfShape(shape); ok && err == nil && m.Learner.Inducing == 0 {
		m.Learner.Inducing = learnt.Inducing
		c.Models[name] = m
	}
}

// StorePath is store.path with environment variables filled in.
func (c *Config) StorePath() string { return os.Expand(c.Store.Path, os.Getenv) }

// Feed returns how a node feeds a model whose learner has this configuration,
// without the model itself.
func (c *Config) Feed(name string, learner online.Config) stream.ModelConfig {
	of := c.Models[name]
	return stream.ModelConfig{
		Name: name, Streams: of.Streams, Features: learner.Features, Classes: learner.Classes, Batch: learner.Batch,
		Pending: of.Pending, Output: of.Output, Active: of.Active, Seed: learner.Seed,
	}
}

// String says it in words.
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
