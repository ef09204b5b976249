package codec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"edge/stream/field"
	"edge/stream/signal"
	"edge/stream/topic"
)

// Stream maps messages to samples: the topics, and the members of the payload.
//
// A payload of JSON or CBOR is an object {"id","ts","features":{name: number},
// "label"}, the same with an array of features, a flat object of features, a
// bare array of numbers, or a {"batch":[…]} of those. A null id, ts or label counts
// as absent. In the other formats every line, or every D raw numbers, is a
// sample; a value is one feature of a sample, which the topic names.
//
// A stream with Signals, or with Inputs, has a stage between payload and sample: its
// payloads are rows of signals, and Fields, Columns, TopicTemplate and Format speak about
// signals. Features are then those of the stage's features that the models get.
type Stream struct {
	// Topics are MQTT filters; + and # and $share/<group>/ are allowed.
	Topics []string `yaml:"topics"`
	// TopicTemplate names levels of the topic: factory/{device}/vibration. They
	// distinguish the samples of several devices, and end the prediction's topic.
	TopicTemplate string `yaml:"topic_template"`
	// Format of the payload: json, cbor, float32 or float64 (raw, little-endian),
	// influx (line protocol), csv (cells with commas) or value (one number).
	Format string `yaml:"format" jsonschema:"enum=json,enum=cbor,enum=float32,enum=float64,enum=influx,enum=csv,enum=value"`
	// Compression of the payload: none, gzip, zstd, or auto for any of them.
	// Default none.
	Compression string `yaml:"compression" jsonschema:"enum=none,enum=gzip,enum=zstd,enum=auto"`
	// Features are the names of the D features, in the order of an array.
	Features []string `yaml:"features"`
	// Dimension is D for features without names: f0, f1, ….
	Dimension int `yaml:"dimension"`
	// Fields maps features to their places in an object of another shape, as paths of
	// keys and array indices: rms: spectrum.rms, peak: peaks.0.hz. Other members of
	// the object are ignored. An array is read where all paths begin with an index. A
	// feature without a path is found under its own name;
	// without Features, the sorted names in Fields are the features. With csv and
	// influx a path is the name of a column or a field; with value it is the filter of
	// the feature's topics.
	Fields map[string]string `yaml:"fields"`
	// Columns of csv, in order: names of features, or the id, time and label;
	// others are ignored. Empty: the features.
	Columns []string `yaml:"columns"`
	// Join configures how the values of several topics become one sample.
	Join Join `yaml:"join"`
	// ID, Time and Label are the paths of the sample's identity (a text or a
	// number), its time (passed through, never used) and its label (a text, a
	// whole number, true or false). Defaults id, ts, label. With an empty ID the
	// samples have no identity, and a member id of the payload, which then belongs to
	// the device, is ignored.
	ID    string `yaml:"id"`
	Time  string `yaml:"time"`
	Label string `yaml:"label"`
	// LabelMap maps the labels in payloads to classes: true: running,
	// 0: idle, "ON": running. The names of the classes are labels as well, "" stands for no
	// label; others are refused. Empty: a label is the name of its class, a whole number or boolean as it is
	// written.
	LabelMap map[string]string `yaml:"label_map"`
	// OnMissing decides about a sample with missing features: an absent key, a null,
	// an empty cell, a NaN of raw numbers. A sample without any feature is refused.
	//
	//	reject       refuse the sample
	//	impute       use the model's mean of the feature
	//	marginalise  average the prediction over the feature's distribution
	//
	// Default reject.
	OnMissing string `yaml:"on_missing"`
	// AllowRetained accepts messages that the broker kept from an earlier time: true,
	// false, or auto: where values are held and never get too old. Default auto.
	AllowRetained Switch `yaml:"allow_retained"`
	// MaxPayload bounds the size of a message before it is read, and after it is
	// decompressed. Default 64KiB, range 64B to 16MiB.
	MaxPayload field.ByteSize `yaml:"max_payload"`
	// MaxBatch bounds the entries of a batch. Default 1000, range 1 to 100000.
	MaxBatch int `yaml:"max_batch"`
	// Entries say which rows or samples a payload has, and of which device.
	Entries Entries `yaml:",inline"`
	// Raw configures the values of signals, and Stage how rows of them become samples.
	Raw   Raw           `yaml:",inline"`
	Stage signal.Config `yaml:",inline"`
}

// FeatureLevel is the level of a topic template that names the feature.
const FeatureLevel = "{feature}"

// DefaultStream returns the defaults that configs/edge.yaml documents. Topics
// and one of Features, Dimension and Fields have none. It is not inlined: the value is large.
//
//go:noinline
func DefaultStream() Stream {
	return Stream{
		Format: FormatJSON, Compression: compressionNone, ID: "id", Time: "ts", Label: "label",
		OnMissing: OnMissingReject, AllowRetained: switchAuto, Join: DefaultJoin(), MaxPayload: 64 * field.KiB, MaxBatch: 1000,
		Entries: DefaultEntries(), Stage: signal.DefaultConfig(),
	}
}

// UnmarshalYAML sets absent keys to their defaults. That of OnMissing is marginalise
// where values are held.
func (s *Stream) UnmarshalYAML(unmarshal func(any) error) error {
	type plain Stream
	const absent = "\x00" // YAML has no such text
	p := plain(DefaultStream())
	p.OnMissing = absent
	if err := unmarshal(&p); err != nil {
		return err
	}
	if p.OnMissing == absent {
		p.OnMissing = OnMissingReject
		if p.Stage.Hold.Set() {
			p.OnMissing = OnMissingMarginalise
		}
	}
	*s = Stream(p)
	return nil
}

// maxFeatures bounds D.
const maxFeatures = 10000

// FeatureNames returns the names of the D features that the models get, in order. It
// returns nil for a stage that is not valid.
func (s Stream) FeatureNames() []string {
	if stage := s.StageConfig(); stage.Set() {
		names, err := stage.Features(s.Features)
		if err != nil {
			return nil
		}
		return names
	}
	switch {
	case len(s.Features) > 0:
		return slices.Clone(s.Features)
	case s.Dimension > 0:
		names := make([]string, min(s.Dimension, maxFeatures))
		for i := range names {
			names[i] = fmt.Sprintf("f%d", i)
		}
		return names
	default:
		return field.Names(s.Fields)
	}
}

// Validate reports every field that is out of range, joined.
func (s Stream) Validate() error {
	errs := []error{
		field.Check(slices.Contains([]string{OnMissingReject, OnMissingImpute, OnMissingMarginalise}, s.OnMissing), "on_missing", s.OnMissing, "reject, impute or marginalise"),
		field.Within("join", s.Join.Validate()),
		field.Check(len(s.Features) <= maxFeatures, "features", fmt.Sprintf("%d names", len(s.Features)), fmt.Sprintf("at most %d", maxFeatures)),
		field.Check(s.MaxBatch >= 1 && s.MaxBatch <= 100000, "max_batch", s.MaxBatch, "1 to 100000"),
		checkLabelMap("label_map", s.LabelMap, true),
	}
	payload := s.checkPayload
	if len(s.Raw.Inputs) > 0 {
		payload = s.checkInputs
	}
	err := field.Join(append(errs, payload())...)
	return field.Join(err, s.checkStage(err == nil))
}

// checkPayload checks topics and payload of a stream without inputs.
func (s *Stream) checkPayload() error {
	key, names := "features", s.Stage.Signals
	stage := len(names) > 0
	if stage {
		key = "signals"
	} else {
		names = s.FeatureNames()
	}
	errs := []error{
		field.Check(len(s.Topics) > 0, "topics", "[]", "at least one filter"),
		checkWord("format", s.Format, FormatJSON, FormatCBOR, formatFloat32, formatFloat64, formatInflux, formatCSV, FormatValue),
		checkWord("compression", s.Compression, compressionNone, compressionGzip, compressionZstd, compressionAuto),
		field.Check(!s.raw() || s.Compression != compressionAuto, "compression", s.Compression, "none, gzip or zstd: raw numbers may begin like something compressed"),
		field.Check(stage || s.OnMissing == OnMissingReject || s.Format != FormatValue, "on_missing", s.OnMissing, "reject: values of topics of their own wait for each other"),
		field.Check(stage || len(s.Features) == 0 || s.Dimension == 0, "dimension", s.Dimension, "either features or dimension"),
		field.Check(len(names) > 0, "features", "[]", "names, or a dimension, or fields; or signals, of which the stream makes samples"),
		field.Check(s.Dimension >= 0 && s.Dimension <= maxFeatures, "dimension", s.Dimension, fmt.Sprintf("1 to %d", maxFeatures)),
		field.Check(s.MaxPayload >= 64 && s.MaxPayload <= 16*field.MiB, "max_payload", s.MaxPayload, "64B to 16MiB"),
		field.Check(s.Format != FormatCBOR || s.MaxPayload <= field.MiB, "max_payload", s.MaxPayload, "at most 1MiB for cbor, of which each byte may take 64 in memory"),
		checkTopics(s.Topics, s.TopicTemplate),
	}
	if stage {
		errs = append(errs, s.checkOptional("time", s.Time), s.checkOptional("label", s.Label), s.checkValues(), s.checkRate())
	} else {
		errs = append(errs, s.checkOptional("id", s.ID), s.checkPath("time", s.Time), s.checkOptional("label", s.Label))
	}
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		switch {
		case name == "" || len(name) > 256:
			errs = append(errs, field.Check(false, key, fmt.Sprintf("%.40q", name), "names of 1 to 256 bytes"))
		case seen[name]:
			errs = append(errs, field.Check(false, key, name, "each name once"))
		case len(s.Fields) == 0 && s.named() && slices.Contains(s.reserved(), name) && s.Entries.Where[name] == nil:
			errs = append(errs, field.Check(false, key, name, "another name: this one is the payload's own (or give its path in fields)"))
		}
		seen[name] = true
	}
	for _, name := range field.Names(s.Fields) {
		errs = append(errs, field.Check(seen[name], "fields", name, "the name of a "+strings.TrimSuffix(key, "s")), s.checkField("fields."+name, s.Fields[name]))
	}
	return field.Join(append(errs, s.checkColumns(names), s.checkTopicsOfValues(names), s.checkEntries())...)
}

// checkWord checks that a value is one of some words.
func checkWord(key, value string, words ...string) error {
	return field.Check(slices.Contains(words, value), key, value, "one of "+strings.Join(words, ", "))
}

// raw reports whether the payload consists only of numbers.
func (s *Stream) raw() bool { return s.Format == formatFloat32 || s.Format == formatFloat64 }

// named reports whether the members of the payload have names, which may collide.
func (s *Stream) named() bool {
	return s.Format == FormatJSON || s.Format == FormatCBOR || s.Format == formatInflux || s.Format == formatCSV && len(s.Columns) > 0
}

// checkField checks one of the paths in Fields.
func (s *Stream) checkField(key, path string) error {
	switch {
	case s.Format == FormatValue:
		if err := topic.CheckFilter(path); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		return nil
	case s.raw():
		return field.Check(false, key, path, "no fields: raw numbers come in the order of the features")
	case s.Format == formatCSV && len(s.Columns) == 0:
		return field.Check(false, key, path, "columns, for it to name one")
	}
	return s.checkPath(key, path)
}

// checkColumns checks that each feature has one column.
func (s *Stream) checkColumns(features []string) error {
	if len(s.Columns) == 0 || s.Format != formatCSV {
		return field.Check(len(s.Columns) == 0, "columns", s.Columns, "format csv")
	}
	var errs []error
	seen := make(map[string]bool, len(s.Columns))
	for _, c := range s.Columns {
		if seen[c] && c != "" {
			errs = append(errs, field.Check(false, "columns", c, "each name once"))
		}
		seen[c] = true
	}
	for _, f := range features {
		column := cmp.Or(s.Fields[f], f)
		if len(s.Fields) > 0 {
			column = PlainName(column)
		}
		if !seen[column] {
			errs = append(errs, field.Check(false, "columns", s.Columns, "one called "+column))
		}
	}
	return field.Join(errs...)
}

// Takes reports whether the stream is subscribed to a topic.
func (s Stream) Takes(name string) bool {
	return slices.ContainsFunc(s.Filters(), func(filter string) bool {
		plain, _ := topic.Unshare(filter)
		return topic.Matches(plain, name)
	})
}

// checkTopicsOfValues checks that each feature has a topic.
func (s *Stream) checkTopicsOfValues(features []string) error {
	for _, level := range []string{SignalLevel, FeatureLevel} {
		if s.Format != FormatValue && len(s.Stage.Signals) > 1 && slices.Contains(strings.Split(s.TopicTemplate, "/"), level) {
			return field.Check(false, "topic_template", fmt.Sprintf("%q", s.TopicTemplate), "format: value, for which alone the level "+level+" names a signal; where each signal has a topic with an object, give each an input, with the path in fields")
		}
	}
	if s.Format != FormatValue || len(features) <= 1 && len(s.Fields) == 0 || strings.Contains(s.TopicTemplate, FeatureLevel) {
		return nil
	}
	level, each := FeatureLevel, "feature"
	if len(s.Stage.Signals) > 0 {
		level, each = SignalLevel, "signal"
	}
	named := level == SignalLevel && strings.Contains(s.TopicTemplate, level) ||
		!slices.ContainsFunc(features, func(f string) bool { return s.Fields[f] == "" })
	return field.Check(named, "topic_template", fmt.Sprintf("%q", s.TopicTemplate), "a level "+level+", or in fields a topic for each "+each+", since a message of format value has one value")
}

// Join configures how values on separate topics become samples: as soon as every
// feature has a value that is not older than Window, these values are a sample. No
// value is used twice.
type Join struct {
	// Window is the longest time between the arrival of the first and the last value
	// of a sample. Default 1s, range 1ms to 24h.
	Window time.Duration `yaml:"window"`
	// Devices is the number of devices that may have a partial sample; the device with
	// the longest silence makes room. Default 1000, range 1 to 100000.
	Devices int `yaml:"devices"`
}

// DefaultJoin returns the defaults that configs/edge.yaml documents.
func DefaultJoin() Join { return Join{Window: time.Second, Devices: 1000} }

// Validate reports every field that is out of range, joined.
func (j Join) Validate() error {
	return field.Join(
		field.Check(j.Window >= time.Millisecond && j.Window <= 24*time.Hour, "window", j.Window, "1ms to 24h"),
		field.Check(j.Devices >= 1 && j.Devices <= 100000, "devices", j.Devices, "1 to 100000"),
	)
}

// Values of Stream.OnMissing.
const (
	OnMissingReject      = "reject"
	OnMissingImpute      = "impute"
	OnMissingMarginalise = "marginalise"
)

// reserved returns the keys of a payload that are not features.
func (s *Stream) reserved() []string {
	paths, keys := []string{s.Entries.Batch, s.Time, s.Label}, []string(nil)
	if own := DefaultStream(); len(s.Stage.Signals) == 0 {
		paths = append(append(paths, cmp.Or(s.ID, own.ID), cmp.Or(s.Label, own.Label)), s.Entries.paths()...)
		keys = []string{"features", cellWeight, cellSource}
	}
	for _, path := range paths {
		if path != "" {
			keys = append(keys, firstKey(path))
		}
	}
	return keys
}

// checkOptional checks a path that may be empty.
func (s *Stream) checkOptional(key, path string) error {
	if path == "" {
		return nil
	}
	return s.checkPath(key, path)
}

// Labels maps messages to labels of earlier samples by their id: {"id": …,
// "label": …}. The id "last" is the newest sample of the model. Instead of an id, seq, ids,
// or from and to name samples (Selection). Every model also
// accepts labels on <base>/<node>/<model>/label, and on label/<device> if the topic
// template of its stream captures levels.
type Labels struct {
	// Topics are MQTT filters, like those of a stream.
	Topics []string `yaml:"topics"`
	// TopicTemplate names levels of the topic, so that the label finds the sample of
	// the same device. Without it the id alone must identify the sample.
	TopicTemplate string `yaml:"topic_template"`
	// Device is the place of the device in a payload, like that of a stream.
	Device Device `yaml:"device"`
	// ID and Label are paths, like those of a stream. Defaults id, label. With an empty
	// ID, and with Sticky, a member id of the payload is ignored.
	ID    string `yaml:"id"`
	Label string `yaml:"label"`
	// Map maps labels to classes, like LabelMap of a stream. With Sticky a word that it lacks
	// ends the state before, and so does one that is no label, "", which without Sticky is refused.
	Map map[string]string `yaml:"map"`
	// Last accepts a label without an id, for the newest sample of the model; the
	// payload may then be the label alone: ON. Default false.
	Last bool `yaml:"last"`
	// Sticky: the topics bring a state. The last word is the label of each row of the device, or
	// without its levels in the topic of all devices, until another comes. Such a label was known
	// before the sample: the sample is predicted without it and without the order of the labels.
	// Default false.
	Sticky bool `yaml:"sticky"`
	// Ignore are words of a state that say nothing: the state before goes on. A button tells ""
	// after each action, for example; an object without the label tells "" as well. Default: none.
	Ignore field.Words `yaml:"ignore"`
	// MaxAge is the age above which a state is no label any more. 0: none. Default 0.
	MaxAge time.Duration `yaml:"max_age"`
	// Settle is the time after a change of the state in which rows have no label, and
	// no window that holds one of them. Default 0.
	Settle time.Duration `yaml:"settle"`
	// Teach thins the samples that are learnt from a state.
	Teach Teach `yaml:"teach"`
	// Model is the name of the model. Default "": every model.
	Model string `yaml:"model"`
}

// DefaultLabels returns the defaults that configs/edge.yaml documents. Topics is empty.
func DefaultLabels() Labels { return Labels{ID: "id", Label: "label"} }

// UnmarshalYAML sets absent keys to their defaults.
func (l *Labels) UnmarshalYAML(unmarshal func(any) error) error {
	type plain Labels
	p := plain(DefaultLabels())
	if err := unmarshal(&p); err != nil {
		return err
	}
	*l = Labels(p)
	return nil
}

// Validate reports every field that is out of range, joined.
func (l Labels) Validate() error {
	return field.Join(
		field.Check(len(l.Topics) > 0, "topics", "[]", "at least one filter"),
		checkTopics(l.Topics, l.TopicTemplate),
		l.checkID(), checkPath("label", l.Label), l.Device.check(l.TopicTemplate, checkMemberPath),
		checkLabelMap("map", l.Map, l.Sticky),
		field.Check(l.Model == "" || topic.IsName(l.Model), "model", l.Model, "the name of a model"),
		l.validateSticky(),
	)
}

// checkID checks the path of the id, which may be empty where a label needs none.
func (l Labels) checkID() error {
	if l.ID == "" {
		return field.Check(l.Last || l.Sticky, "id", `""`, "a path; or last: true or sticky: true beside it, where a label needs no id")
	}
	return checkPath("id", l.ID)
}

// checkTopics returns an error for each filter that is invalid, that is a template, or that
// matches topics which the template does not match.
func checkTopics(filters []string, tmpl string) error {
	t, err := topic.ParseTemplate(tmpl)
	errs := []error{err}
	for _, f := range filters {
		if err := topic.CheckFilter(f); err != nil {
			errs = append(errs, fmt.Errorf("topics: %w", err))
			continue
		}
		if named, err := topic.ParseTemplate(f); err == nil && len(named.Names) > 0 {
			errs = append(errs, field.Check(false, "topics", f, named.Filter()+", and the names in topic_template: "+f))
			continue
		}
		if plain, _ := topic.Unshare(f); t != nil && tmpl != "" && !topic.Matches(t.Filter(), plain) {
			errs = append(errs, field.Check(false, "topic_template", tmpl, "a template that matches every topic of "+plain+", with + or # for the levels that have no name"))
		}
	}
	return field.Join(errs...)
}
