package stream

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// TLS says how the broker is verified and how the node proves itself. The
// broker's certificate and name are always verified; the files are read at each
// connect, so that renewed certificates need no restart.
type TLS struct {
	// CA is a file of PEM certificates to trust. Empty: the system's.
	CA string `yaml:"ca"`
	// Cert and Key are the node's own certificate and key, PEM files. Both or none.
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
	// ServerName is the name that the broker's certificate must have. Empty: the
	// host in the server's address.
	ServerName string `yaml:"server_name"`
	// MinVersion of the protocol: 1.2 or 1.3. Default 1.2.
	MinVersion string `yaml:"min_version"`
}

// Validate reports every field that is out of range, joined.
func (t TLS) Validate() error {
	return errors.Join(
		check((t.Cert == "") == (t.Key == ""), "cert, key", fmt.Sprintf("%q, %q", t.Cert, t.Key), "both or none"),
		check(t.MinVersion == "1.2" || t.MinVersion == "1.3", "min_version", t.MinVersion, `"1.2" or "1.3"`),
	)
}

// Ring bounds the messages that have arrived and wait for their prediction, or,
// of QoS 1 and at most half of them, are answered and wait for the journal or the
// learner. When it is full, a message of QoS 0 displaces the oldest of QoS 0. One of QoS
// 1 is answered and left unacknowledged, and so are those that follow it: once
// the ring is empty the node reconnects, and the broker sends them again, in
// order, to be learnt and answered again.
type Ring struct {
	// MaxMessages, default 2048, range 1 to 1000000.
	MaxMessages int `yaml:"max_messages"`
	// MaxBytes of payload, default 4MiB, at least 64KiB.
	MaxBytes ByteSize `yaml:"max_bytes"`
}

// Validate reports every field that is out of range, joined.
func (r Ring) Validate() error {
	return errors.Join(
		check(r.MaxMessages >= 1 && r.MaxMessages <= 1e6, "max_messages", r.MaxMessages, "1 to 1000000"),
		check(r.MaxBytes >= 64*KiB, "max_bytes", r.MaxBytes, "at least 64KiB"),
	)
}

// MQTT says how to reach the broker.
type MQTT struct {
	// Servers are tried in this order: tcp:// or mqtt://, ssl:// or mqtts://,
	// ws://, wss://. Without a port: 1883, 8883, 80, 443. Default [tcp://127.0.0.1:1883].
	Servers []string `yaml:"servers"`
	// ClientID must differ from that of every other client of the broker and stay
	// the same over restarts. Empty: edge-<node>-<4 digits that identify the machine>.
	ClientID string `yaml:"client_id"`
	// Username, empty for none.
	Username string `yaml:"username"`
	// Password of Username.
	Password Secret `yaml:"password"`
	// TLS applies to ssl, mqtts and wss.
	TLS TLS `yaml:"tls"`
	// Keepalive is the longest silence before the broker is asked for a sign of
	// life. Whole seconds. Default 30s, range 1s to 18h.
	Keepalive time.Duration `yaml:"keepalive"`
	// PersistentSession lets the broker keep messages while the node is away.
	// Default true; without it they are lost.
	PersistentSession bool `yaml:"persistent_session"`
	// QoS of subscriptions and of what is published: 0 or 1. With 0 nothing is
	// acknowledged, so that what a crash interrupts is lost. Default 1.
	QoS int `yaml:"qos"`
	// MaxReconnectInterval bounds the growing pause between attempts to connect.
	// Default 30s, range 100ms to 1h.
	MaxReconnectInterval time.Duration `yaml:"max_reconnect_interval"`
	// InflightWindow is how many messages may wait for one commit of the journal.
	// A broker sends no more than its own window without an acknowledgement: stay below it (mosquitto: 20,
	// max_inflight_messages). Default 16, range 1 to 1000.
	InflightWindow int `yaml:"inflight_window"`
	// BaseTopic begins every topic of the node's own: <base>/<node>/…. Default edge.
	BaseTopic string `yaml:"base_topic"`
	// Ring bounds the messages that have arrived and wait.
	Ring Ring `yaml:"ring"`
}

// DefaultMQTT returns the defaults that configs/edge.yaml documents.
func DefaultMQTT() MQTT {
	return MQTT{
		Servers:              []string{"tcp://127.0.0.1:1883"},
		TLS:                  TLS{MinVersion: "1.2"},
		Keepalive:            30 * time.Second,
		PersistentSession:    true,
		QoS:                  1,
		MaxReconnectInterval: 30 * time.Second,
		InflightWindow:       16,
		BaseTopic:            "edge",
		Ring:                 Ring{MaxMessages: 2048, MaxBytes: 4 * MiB},
	}
}

// serverPorts are the schemes of a server's address and their usual ports.
var serverPorts = map[string]string{
	"tcp": "1883", "mqtt": "1883", "ssl": "8883", "tls": "8883", "mqtts": "8883", "ws": "80", "wss": "443",
}

// Encrypted reports whether the address of a server asks for TLS.
func Encrypted(server string) bool {
	scheme, _, _ := strings.Cut(server, "://")
	return slices.Contains([]string{"ssl", "tls", "mqtts", "wss"}, scheme)
}

// Validate reports every field that is out of range, joined.
func (m MQTT) Validate() error {
	errs := []error{
		check(len(m.Servers) > 0, "servers", "[]", "at least one address"),
		check(len(m.ClientID) <= 128 && (m.ClientID == "" || checkTopic(m.ClientID) == nil), "client_id", m.ClientID, "at most 128 bytes, without + and #"),
		check(m.Username != "" || m.Password.IsZero(), "username", `""`, "a name, since there is a password"),
		within("password", m.Password.Validate()),
		within("tls", m.TLS.Validate()),
		check(m.Keepalive >= time.Second && m.Keepalive <= 18*time.Hour && m.Keepalive%time.Second == 0, "keepalive", m.Keepalive, "whole seconds, 1s to 18h"),
		check(m.QoS == 0 || m.QoS == 1, "qos", m.QoS, "0 or 1"),
		check(m.MaxReconnectInterval >= 100*time.Millisecond && m.MaxReconnectInterval <= time.Hour, "max_reconnect_interval", m.MaxReconnectInterval, "100ms to 1h"),
		check(m.InflightWindow >= 1 && m.InflightWindow <= 1000, "inflight_window", m.InflightWindow, "1 to 1000"),
		within("ring", m.Ring.Validate()),
	}
	for _, s := range m.Servers {
		u, err := url.Parse(s)
		switch {
		case err != nil:
			errs = append(errs, errors.New("servers: an address cannot be read: want scheme://host:port"))
		case u.User != nil:
			errs = append(errs, fmt.Errorf("servers %s: has a user or password in it: want username and password as keys", u.Redacted()))
		case serverPorts[u.Scheme] == "" || u.Hostname() == "":
			errs = append(errs, check(false, "servers", s, "tcp://, mqtt://, ssl://, mqtts://, ws:// or wss:// and a host"))
		}
	}
	for _, level := range strings.Split(m.BaseTopic, "/") {
		if !isName(level) {
			errs = append(errs, check(false, "base_topic", m.BaseTopic, "levels of [a-z0-9_-], no / at either end"))
			break
		}
	}
	return errors.Join(errs...)
}

// Stream maps messages to samples: which topics, and where the payload has what.
//
// A payload of JSON or CBOR is an object {"id","ts","features":{name: number},
// "label"}, the same with an array of features, a flat object of features, a
// bare array of numbers, or a {"batch":[…]} of those. A null id, ts or label is
// as if absent. In the other formats every line, or every D raw numbers, is a
// sample; a value is one feature of a sample, and its topic says which.
type Stream struct {
	// Topics are MQTT filters; + and # and $share/<group>/ are allowed.
	Topics []string `yaml:"topics"`
	// TopicTemplate names levels of the topic: factory/{device}/vibration. They
	// tell samples of several devices apart, and end the prediction's topic.
	TopicTemplate string `yaml:"topic_template"`
	// Format of the payload: json, cbor, float32 or float64 (raw, little-endian),
	// influx (line protocol), csv (without a header) or value (one number).
	Format string `yaml:"format" jsonschema:"enum=json,enum=cbor,enum=float32,enum=float64,enum=influx,enum=csv,enum=value"`
	// Compression of the payload: none, gzip, zstd, or auto for any of them.
	// Default none.
	Compression string `yaml:"compression" jsonschema:"enum=none,enum=gzip,enum=zstd,enum=auto"`
	// Features are the names of the D features, in the order of an array.
	Features []string `yaml:"features"`
	// Dimension is D where the features have no names of their own: f0, f1, ….
	Dimension int `yaml:"dimension"`
	// Fields says where a feature is in an object whose shape is another, as a
	// path of keys and array indices: rms: spectrum.rms, peak: peaks.0.hz. What
	// else the object has is then ignored. Features without a path are found
	// under their own name; without Features, the names in Fields, sorted, are it.
	// With csv and influx a path is the name of a column or a field; with value it
	// is the filter of the feature's topics.
	Fields map[string]string `yaml:"fields"`
	// Columns of csv, in order: names of features, or the id, time and label;
	// others are ignored. Empty: the features.
	Columns []string `yaml:"columns"`
	// Join says how the values of several topics become one sample.
	Join Join `yaml:"join"`
	// ID, Time and Label are the paths of the sample's identity (a text or a
	// number), its time (passed through, never used) and its label (a text, a
	// whole number, true or false). Defaults id, ts, label. An empty ID: samples
	// have no identity of their own, and a key id of the payload, which is the
	// device's then, is ignored.
	ID    string `yaml:"id"`
	Time  string `yaml:"time"`
	Label string `yaml:"label"`
	// LabelMap maps the labels in payloads to classes: true: running,
	// 0: idle, "ON": running. A label that it does not have is refused. Empty:
	// a label is the name of its class, a whole number or boolean as it is written.
	LabelMap map[string]string `yaml:"label_map"`
	// OnMissing says what becomes of a sample that lacks features: an absent key, a
	// null, an empty cell, a NaN of raw numbers. A sample without any is refused.
	//
	//	reject       it is refused
	//	impute       the model's mean of the feature stands for it
	//	marginalise  the answer is averaged over what the feature may be
	//
	// Default reject.
	OnMissing string `yaml:"on_missing"`
	// AllowRetained takes messages that the broker kept from an earlier day for
	// new ones. Default false.
	AllowRetained bool `yaml:"allow_retained"`
	// MaxPayload bounds a message before anything looks at it, and what it unpacks
	// to. Default 64KiB, range 64B to 16MiB.
	MaxPayload ByteSize `yaml:"max_payload"`
	// MaxBatch bounds the entries of a batch. Default 1000, range 1 to 100000.
	MaxBatch int `yaml:"max_batch"`
}

// DefaultStream returns the defaults that configs/edge.yaml documents. Topics
// and one of Features, Dimension and Fields have none.
func DefaultStream() Stream {
	return Stream{
		Format: formatJSON, Compression: compressionNone, ID: "id", Time: "ts", Label: "label",
		OnMissing: OnMissingReject, Join: DefaultJoin(), MaxPayload: 64 * KiB, MaxBatch: 1000,
	}
}

// UnmarshalYAML gives the keys that are not there their defaults.
func (s *Stream) UnmarshalYAML(unmarshal func(any) error) error {
	type plain Stream
	p := plain(DefaultStream())
	if err := unmarshal(&p); err != nil {
		return err
	}
	*s = Stream(p)
	return nil
}

// maxFeatures bounds D.
const maxFeatures = 10000

// FeatureNames returns the names of the D features, in order.
func (s Stream) FeatureNames() []string {
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
		return slices.Sorted(maps.Keys(s.Fields))
	}
}

// Validate reports every field that is out of range, joined.
func (s Stream) Validate() error {
	names := s.FeatureNames()
	errs := []error{
		check(len(s.Topics) > 0, "topics", "[]", "at least one filter"),
		check(slices.Contains(formats(), s.Format), "format", s.Format, "one of "+strings.Join(formats(), ", ")),
		check(slices.Contains(compressions(), s.Compression), "compression", s.Compression, "one of "+strings.Join(compressions(), ", ")),
		check(!s.raw() || s.Compression != compressionAuto, "compression", s.Compression, "none, gzip or zstd: raw numbers may begin like something compressed"),
		check(slices.Contains([]string{OnMissingReject, OnMissingImpute, OnMissingMarginalise}, s.OnMissing), "on_missing", s.OnMissing, "reject, impute or marginalise"),
		check(s.OnMissing == OnMissingReject || s.Format != formatValue, "on_missing", s.OnMissing, "reject: values of topics of their own wait for each other"),
		within("join", s.Join.Validate()),
		check(len(s.Features) == 0 || s.Dimension == 0, "dimension", s.Dimension, "either features or dimension"),
		check(len(names) > 0, "features", "[]", "names, or a dimension, or fields"),
		check(s.Dimension >= 0 && s.Dimension <= maxFeatures, "dimension", s.Dimension, fmt.Sprintf("1 to %d", maxFeatures)),
		check(len(s.Features) <= maxFeatures, "features", fmt.Sprintf("%d names", len(s.Features)), fmt.Sprintf("at most %d", maxFeatures)),
		check(s.MaxPayload >= 64 && s.MaxPayload <= 16*MiB, "max_payload", s.MaxPayload, "64B to 16MiB"),
		check(s.Format != formatCBOR || s.MaxPayload <= MiB, "max_payload", s.MaxPayload, "at most 1MiB for cbor, of which each byte may take 64 in memory"),
		check(s.MaxBatch >= 1 && s.MaxBatch <= 100000, "max_batch", s.MaxBatch, "1 to 100000"),
		s.checkID(), checkPath("time", s.Time), checkPath("label", s.Label),
		checkTopics(s.Topics, s.TopicTemplate),
		checkLabelMap("label_map", s.LabelMap),
	}
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		switch {
		case name == "" || len(name) > 256:
			errs = append(errs, check(false, "features", fmt.Sprintf("%.40q", name), "names of 1 to 256 bytes"))
		case seen[name]:
			errs = append(errs, check(false, "features", name, "each name once"))
		case len(s.Fields) == 0 && s.named() && slices.Contains(s.reserved(), name):
			errs = append(errs, check(false, "features", name, "another name: this one is the payload's own (or give its path in fields)"))
		}
		seen[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(s.Fields)) {
		errs = append(errs, check(seen[name], "fields", name, "the name of a feature"), s.checkField("fields."+name, s.Fields[name]))
	}
	return errors.Join(append(errs, s.checkColumns(names), s.checkTopicsOfValues(names))...)
}

// raw reports whether the payload is numbers and nothing else.
func (s Stream) raw() bool { return s.Format == formatFloat32 || s.Format == formatFloat64 }

// named reports whether the payload has names that could be mistaken for one another.
func (s Stream) named() bool {
	return s.Format == formatJSON || s.Format == formatCBOR || s.Format == formatInflux || s.Format == formatCSV && len(s.Columns) > 0
}

// checkField checks one of the paths in Fields.
func (s Stream) checkField(key, path string) error {
	switch {
	case s.Format == formatValue:
		if err := checkFilter(path); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		return nil
	case s.raw():
		return check(false, key, path, "no fields: raw numbers come in the order of the features")
	case s.Format == formatCSV && len(s.Columns) == 0:
		return check(false, key, path, "columns, for it to name one")
	}
	return checkPath(key, path)
}

// checkColumns checks that each feature has one column.
func (s Stream) checkColumns(features []string) error {
	if len(s.Columns) == 0 || s.Format != formatCSV {
		return check(len(s.Columns) == 0, "columns", s.Columns, "format csv")
	}
	var errs []error
	seen := make(map[string]bool, len(s.Columns))
	for _, c := range s.Columns {
		if seen[c] && c != "" {
			errs = append(errs, check(false, "columns", c, "each name once"))
		}
		seen[c] = true
	}
	for _, f := range features {
		column := cmp.Or(s.Fields[f], f)
		if len(s.Fields) > 0 {
			column = plainName(column)
		}
		if !seen[column] {
			errs = append(errs, check(false, "columns", s.Columns, "one called "+column))
		}
	}
	return errors.Join(errs...)
}

// Takes reports whether the stream hears what is published on topic.
func (s Stream) Takes(topic string) bool {
	return slices.ContainsFunc(s.Topics, func(filter string) bool {
		plain, _ := unshare(filter)
		return matches(plain, topic)
	})
}

// checkTopicsOfValues checks that each feature has a topic.
func (s Stream) checkTopicsOfValues(features []string) error {
	if s.Format != formatValue || len(features) <= 1 && len(s.Fields) == 0 || strings.Contains(s.TopicTemplate, featureLevel) {
		return nil
	}
	for _, f := range features {
		if s.Fields[f] == "" {
			return check(false, "topic_template", fmt.Sprintf("%q", s.TopicTemplate), "a level "+featureLevel+", or in fields a topic for each feature, since a message of format value has one number")
		}
	}
	return nil
}

// Join says how values that come on topics of their own become samples: one is
// made as soon as every feature has a value that is not older than Window, and
// no value is used twice.
type Join struct {
	// Window is the longest time between the arrival of a sample's first value
	// and its last. Default 1s, range 1ms to 24h.
	Window time.Duration `yaml:"window"`
	// Devices is how many devices may have an unfinished sample; the one that was
	// silent for longest makes room. Default 1000, range 1 to 100000.
	Devices int `yaml:"devices"`
}

// DefaultJoin returns the defaults that configs/edge.yaml documents.
func DefaultJoin() Join { return Join{Window: time.Second, Devices: 1000} }

// Validate reports every field that is out of range, joined.
func (j Join) Validate() error {
	return errors.Join(
		check(j.Window >= time.Millisecond && j.Window <= 24*time.Hour, "window", j.Window, "1ms to 24h"),
		check(j.Devices >= 1 && j.Devices <= 100000, "devices", j.Devices, "1 to 100000"),
	)
}

// What becomes of a sample that lacks features.
const (
	OnMissingReject      = "reject"
	OnMissingImpute      = "impute"
	OnMissingMarginalise = "marginalise"
)

// reserved are the keys of a payload that are not features.
func (s Stream) reserved() []string {
	keys := []string{"features", "batch", cellWeight, cellSource}
	for _, path := range []string{cmp.Or(s.ID, DefaultStream().ID), s.Time, s.Label} {
		keys = append(keys, firstKey(path))
	}
	return keys
}

// checkID checks the path of the identity, which may be empty.
func (s Stream) checkID() error {
	if s.ID == "" {
		return nil
	}
	return checkPath("id", s.ID)
}

// Labels maps messages to labels that come later than their sample, by its id:
// {"id": …, "label": …}. The id "last" is the latest sample of the model. Every
// model also listens on <base>/<node>/<model>/label, and label/<device> where
// the topic template of its stream captures levels.
type Labels struct {
	// Topics are MQTT filters, as those of a stream.
	Topics []string `yaml:"topics"`
	// TopicTemplate names levels of the topic, so that the label finds the sample
	// of the same device. Without it the id alone must be enough.
	TopicTemplate string `yaml:"topic_template"`
	// ID and Label are paths, as those of a stream. Defaults id, label.
	ID    string `yaml:"id"`
	Label string `yaml:"label"`
	// Map maps labels to classes, as LabelMap of a stream does.
	Map map[string]string `yaml:"map"`
	// Last gives a label without an id to the latest sample of the model; it may
	// then be all of the payload: ON. Default false.
	Last bool `yaml:"last"`
	// Model is the one that the labels are for. Default "": every model.
	Model string `yaml:"model"`
}

// DefaultLabels returns the defaults that configs/edge.yaml documents. Topics has none.
func DefaultLabels() Labels { return Labels{ID: "id", Label: "label"} }

// UnmarshalYAML gives the keys that are not there their defaults.
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
	return errors.Join(
		check(len(l.Topics) > 0, "topics", "[]", "at least one filter"),
		checkTopics(l.Topics, l.TopicTemplate),
		checkPath("id", l.ID), checkPath("label", l.Label),
		checkLabelMap("map", l.Map),
		check(l.Model == "" || isName(l.Model), "model", l.Model, "the name of a model"),
	)
}

// Outbox bounds what waits to be published. When it is full the oldest message
// that is not retained makes room, and is counted.
type Outbox struct {
	// MaxMessages, default 10000, range 16 to 10000000.
	MaxMessages int `yaml:"max_messages"`
	// MaxBytes of payload, default 8MiB, at least 64KiB.
	MaxBytes ByteSize `yaml:"max_bytes"`
	// Policy when it is full: drop_oldest.
	Policy string `yaml:"policy"`
}

// DefaultOutbox returns the defaults that configs/edge.yaml documents.
func DefaultOutbox() Outbox {
	return Outbox{MaxMessages: 10000, MaxBytes: 8 * MiB, Policy: "drop_oldest"}
}

// Validate reports every field that is out of range, joined.
func (o Outbox) Validate() error {
	return errors.Join(
		check(o.MaxMessages >= 16 && o.MaxMessages <= 1e7, "max_messages", o.MaxMessages, "16 to 10000000"),
		check(o.MaxBytes >= 64*KiB, "max_bytes", o.MaxBytes, "at least 64KiB"),
		check(o.Policy == "drop_oldest", "policy", o.Policy, "drop_oldest"),
	)
}

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
	return check(m.Every >= time.Second, "every", m.Every, "at least 1s")
}

// Pending bounds the samples of a model that wait for their label.
type Pending struct {
	// Max samples; the oldest makes room. Each takes 8 bytes a feature and a
	// class. 0: a label must come with its sample. Default 5000, range 0 to 1000000.
	Max int `yaml:"max"`
	// MaxBytes of all samples that are kept. Default 16MiB, at least 64KiB.
	MaxBytes ByteSize `yaml:"max_bytes"`
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
	return Pending{Max: 5000, MaxBytes: 16 * MiB, TTL: 24 * time.Hour, Corrections: 500}
}

// Validate reports every field that is out of range, joined.
func (p Pending) Validate() error {
	return errors.Join(
		check(p.Max >= 0 && p.Max <= 1e6, "max", p.Max, "0 to 1000000"),
		check(p.MaxBytes >= 64*KiB && p.MaxBytes <= 1<<30, "max_bytes", p.MaxBytes, "64KiB to 1GiB"),
		check(p.TTL >= time.Second, "ttl", p.TTL, "at least 1s"),
		check(p.Corrections >= 0 && p.Corrections <= 1e4, "corrections", p.Corrections, "0 to 10000"),
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
		check(checkTopic(h.DiscoveryPrefix) == nil, "discovery_prefix", fmt.Sprintf("%q", h.DiscoveryPrefix), "a topic"),
		check(checkTopic(h.StatusTopic) == nil, "status_topic", fmt.Sprintf("%q", h.StatusTopic), "a topic"),
		check(h.ExpireAfter >= 0 && h.ExpireAfter%time.Second == 0, "expire_after", h.ExpireAfter, "0s or whole seconds"),
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
	MQTT MQTT
	// Outbox bounds what waits to be published.
	Outbox Outbox
	// Streams by name: [a-z0-9_-].
	Streams map[string]Stream
	// Labels that come on topics of their own.
	Labels []Labels
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
		Node: "edge", MQTT: DefaultMQTT(), Outbox: DefaultOutbox(), Streams: map[string]Stream{},
		Metrics: DefaultMetrics(), HomeAssistant: DefaultHomeAssistant(), JournalFlush: 50 * time.Millisecond,
	}
}

// Validate reports every field that is out of range, joined, each with its key.
func (c Config) Validate() error {
	errs := []error{
		check(isName(c.Node), "node", c.Node, "[a-z0-9_-]"),
		within("mqtt", c.MQTT.Validate()),
		within("outbox", c.Outbox.Validate()),
		within("metrics", c.Metrics.Validate()),
		within("homeassistant", c.HomeAssistant.Validate()),
		check(c.JournalFlush >= 0 && c.JournalFlush <= 10*time.Second, "journal_flush", c.JournalFlush, "0s to 10s"),
		check(c.LossWindow >= 0 && c.LossWindow <= time.Hour, "loss_window", c.LossWindow, "0s to 1h"),
	}
	for _, name := range slices.Sorted(maps.Keys(c.Streams)) {
		errs = append(errs,
			check(isName(name), "streams", name, "names of [a-z0-9_-]"),
			within("streams."+name, c.Streams[name].Validate()))
	}
	for i, l := range c.Labels {
		errs = append(errs, within(fmt.Sprintf("labels[%d]", i), l.Validate()))
	}
	return errors.Join(errs...)
}

// check returns an error with key, value and range unless ok.
func check(ok bool, key string, value any, want string) error {
	if ok {
		return nil
	}
	return fmt.Errorf("%s %v: want %s", key, value, want)
}

// within puts a key's prefix before every joined error.
func within(prefix string, err error) error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return fmt.Errorf("%s.%w", prefix, err)
	}
	var errs []error
	for _, e := range joined.Unwrap() {
		errs = append(errs, within(prefix, e))
	}
	return errors.Join(errs...)
}

// checkTopics returns an error for each filter that is wrong or that has topics
// which the template does not match.
func checkTopics(filters []string, tmpl string) error {
	t, err := parseTemplate(tmpl)
	errs := []error{err}
	for _, f := range filters {
		if err := checkFilter(f); err != nil {
			errs = append(errs, fmt.Errorf("topics: %w", err))
			continue
		}
		if plain, _ := unshare(f); t != nil && tmpl != "" && !matches(t.filter(), plain) {
			errs = append(errs, check(false, "topic_template", tmpl, "a template that matches every topic of "+f))
		}
	}
	return errors.Join(errs...)
}

// checkPath returns an error unless path is a plain path of keys and array
// indices: gjson's queries, wildcards and modifiers have no bound on their work.
func checkPath(key, path string) error {
	plain := strings.ReplaceAll(path, `\.`, "")
	if path == "" || strings.ContainsAny(plain, `*?#@|!{}[]\`) || slices.Contains(strings.Split(plain, "."), "") {
		return check(false, key, fmt.Sprintf("%q", path), `keys and array indices with . between them (a dot in a key: \.)`)
	}
	return nil
}

// firstKey returns the key of the outermost object that a path begins with.
func firstKey(path string) string {
	key, _, _ := strings.Cut(strings.ReplaceAll(path, `\.`, "\x00"), ".")
	return strings.ReplaceAll(key, "\x00", ".")
}

// pathOf returns where a feature is: under its path, or else its own name.
func (s Stream) pathOf(name string) string {
	return cmp.Or(s.Fields[name], gjson.Escape(name))
}
