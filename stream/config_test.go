package stream

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"edge/stream/codec"
	"edge/stream/field"
	"edge/stream/mqtt"
	"edge/stream/topic"
)

func TestDefaultsAreValid(t *testing.T) {
	c := DefaultConfig()
	c.Streams["vibration"] = threeFeatures()
	l := codec.DefaultLabels()
	l.Topics = []string{"factory/+/label"}
	c.Labels = []codec.Labels{l}
	if err := errors.Join(c.Validate(), DefaultPending().Validate()); err != nil {
		t.Error(err)
	}
}

func TestConfigNamesKeyValueAndRange(t *testing.T) {
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Node = "Pi 4" }, "node Pi 4: want [a-z0-9_-]"},
		{func(c *Config) { c.MQTT.Servers = nil }, "mqtt.servers []: want at least one"},
		{func(c *Config) { c.MQTT.Servers = []string{"broker:1883"} }, "mqtt.servers broker:1883: want mqtt://broker:1883, or mqtts:// with TLS"},
		{func(c *Config) { c.MQTT.Servers = []string{"192.0.2.7:1883"} }, "mqtt.servers 192.0.2.7:1883: want mqtt://192.0.2.7:1883,"},
		{func(c *Config) { c.MQTT.Servers = []string{"mqtt:broker"} }, "mqtt.servers mqtt:broker: want tcp://"},
		{func(c *Config) { c.MQTT.Servers = []string{"http://broker"} }, "mqtt.servers http://broker: want tcp://"},
		{func(c *Config) { c.MQTT.Servers = []string{"tcp://edge:hunter2@broker"} }, "mqtt.servers: an address has a user"},
		{func(c *Config) { c.MQTT.QoS = 2 }, "mqtt.qos 2: want 0 or 1"},
		{func(c *Config) { c.MQTT.Keepalive = 1500 * time.Millisecond }, "mqtt.keepalive 1.5s: want whole seconds"},
		{func(c *Config) { c.MQTT.InflightWindow = 0 }, "mqtt.inflight_window 0: want 1 to 1000"},
		{func(c *Config) { c.MQTT.BaseTopic = "/edge" }, "mqtt.base_topic /edge: want"},
		{func(c *Config) { c.MQTT.Password.File = "x" }, "mqtt.username \"\": want a name"},
		{func(c *Config) { c.MQTT.Password = mqtt.Secret{File: "x", Env: "y"} }, "mqtt.password.file and env are both set"},
		{func(c *Config) { c.MQTT.TLS.Cert = "x" }, "mqtt.tls.cert, key"},
		{func(c *Config) { c.MQTT.TLS.MinVersion = "1.0" }, "mqtt.tls.min_version 1.0: want"},
		{func(c *Config) { c.MQTT.Ring.MaxBytes = 1 }, "mqtt.ring.max_bytes 1B: want at least 64KiB"},
		{func(c *Config) { c.MQTT.MaxReconnectInterval = 0 }, "mqtt.max_reconnect_interval 0s: want 100ms to 1h"},
		{func(c *Config) { c.Outbox.Policy = "block" }, "outbox.policy block: want drop_oldest"},
		{func(c *Config) { c.Metrics.Every = 0 }, "metrics.every 0s: want at least 1s"},
		{func(c *Config) { c.JournalFlush = -1 }, "journal_flush -1ns: want"},
		{func(c *Config) { c.Labels = []codec.Labels{{}} }, "labels[0].topics []: want"},
		{func(c *Config) { c.Streams["Bad Name"] = threeFeatures() }, "streams Bad Name: want names of"},
		{stream(func(s *codec.Stream) { s.Topics = []string{"a/#/b"} }), `streams.s.topics: topic filter "a/#/b"`},
		{stream(func(s *codec.Stream) {
			s.Topics, s.TopicTemplate = []string{"$share/g/a/+"}, "$share/g/a/{device}"
		}), "want a template that matches every topic of a/+, with + or # for the levels that have no name"},
		{stream(func(s *codec.Stream) { s.Topics = []string{"factory/#"} }), "streams.s.topic_template factory/{device}/vibration: want a template that matches every topic of factory/#"},
		{stream(func(s *codec.Stream) { s.TopicTemplate = "factory/{device" }), `streams.s.topic_template "factory/{device"`},
		{stream(func(s *codec.Stream) { s.Format = "xml" }), "streams.s.format xml: want one of json, cbor"},
		{stream(func(s *codec.Stream) { s.Compression = "lz4" }), "streams.s.compression lz4: want one of none"},
		{stream(func(s *codec.Stream) { s.Format, s.Compression = "float32", "auto" }), "streams.s.compression auto: want none, gzip or zstd"},
		{stream(func(s *codec.Stream) { s.Format, s.Fields = "float64", map[string]string{"rms": "a"} }), "streams.s.fields.rms a: want no fields"},
		{stream(func(s *codec.Stream) { s.Format, s.MaxPayload = "cbor", 2*field.MiB }), "streams.s.max_payload 2MiB: want at most 1MiB for cbor"},
		{stream(func(s *codec.Stream) { s.Columns = []string{"rms"} }), "streams.s.columns [rms]: want format csv"},
		{stream(func(s *codec.Stream) { s.Format, s.Columns = "csv", []string{"rms", "peak_hz"} }), "streams.s.columns [rms peak_hz]: want one called kurtosis"},
		{stream(func(s *codec.Stream) { s.Format, s.Columns = "csv", []string{"rms", "rms", "kurtosis", "peak_hz"} }), "streams.s.columns rms: want each name once"},
		{stream(func(s *codec.Stream) { s.Format, s.Fields = "csv", map[string]string{"rms": "a"} }), "streams.s.fields.rms a: want columns"},
		{stream(func(s *codec.Stream) { s.Format = "value" }), `streams.s.topic_template "factory/{device}/vibration": want a level {feature}`},
		{stream(func(s *codec.Stream) {
			s.TopicTemplate, s.Features, s.Stage.Signals = "factory/{signal}/vibration", nil, []string{"rms", "peak"}
		}), `streams.s.topic_template "factory/{signal}/vibration": want format: value`},
		{stream(func(s *codec.Stream) { s.Format, s.Fields = "value", map[string]string{"rms": "a/#/b"} }), `streams.s.fields.rms: topic filter "a/#/b"`},
		{stream(func(s *codec.Stream) { s.Join.Window = 0 }), "streams.s.join.window 0s: want 1ms to 24h"},
		{stream(func(s *codec.Stream) { s.Join.Devices = 0 }), "streams.s.join.devices 0: want 1 to 100000"},
		{func(c *Config) { c.HomeAssistant.DiscoveryPrefix = "a/#" }, `homeassistant.discovery_prefix "a/#": want a topic`},
		{func(c *Config) { c.HomeAssistant.StatusTopic = "" }, `homeassistant.status_topic "": want a topic`},
		{func(c *Config) { c.HomeAssistant.ExpireAfter = time.Millisecond }, "homeassistant.expire_after 1ms: want 0s or whole seconds"},
		{stream(func(s *codec.Stream) { s.Features = nil }), "streams.s.features []: want names"},
		{stream(func(s *codec.Stream) { s.Dimension = 3 }), "streams.s.dimension 3: want either"},
		{stream(func(s *codec.Stream) { s.Features, s.Dimension = nil, 20000 }), "streams.s.dimension 20000: want 1 to 10000"},
		{stream(func(s *codec.Stream) { s.Features = []string{"a", "a"} }), "streams.s.features a: want each name once"},
		{stream(func(s *codec.Stream) { s.Features = []string{"label"} }), "streams.s.features label: want another name"},
		{stream(func(s *codec.Stream) { s.Fields = map[string]string{"rsm": "a.b"} }), "streams.s.fields rsm: want the name of a feature"},
		{stream(func(s *codec.Stream) { s.Fields = map[string]string{"rms": "a.#.b"} }), `streams.s.fields.rms "a.#.b": want keys`},
		{stream(func(s *codec.Stream) { s.ID = "@reverse" }), `streams.s.id "@reverse": want keys`},
		{stream(func(s *codec.Stream) { s.Label = "a..b" }), `streams.s.label "a..b": want keys`},
		{stream(func(s *codec.Stream) { s.MaxPayload = field.GiB }), "streams.s.max_payload 1GiB: want 64B to 16MiB"},
		{stream(func(s *codec.Stream) { s.MaxBatch = 0 }), "streams.s.max_batch 0: want 1 to 100000"},
	} {
		cfg := DefaultConfig()
		cfg.Streams["s"] = threeFeatures()
		c.change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

func stream(change func(*codec.Stream)) func(*Config) {
	return func(c *Config) {
		s := c.Streams["s"]
		change(&s)
		c.Streams["s"] = s
	}
}

// All errors are reported at once.
func TestConfigJoinsErrors(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MQTT.QoS, cfg.Outbox.MaxMessages, cfg.Node = 7, 0, ""
	if got := strings.Count(cfg.Validate().Error(), "want"); got != 3 {
		t.Errorf("%d errors, want 3: %v", got, cfg.Validate())
	}
}

// Keys that a file lacks have their defaults, inside lists and maps as well, and an
// unknown key is an error everywhere.
func TestYAML(t *testing.T) {
	type file struct {
		MQTT    mqtt.Config             `yaml:"mqtt"`
		Outbox  mqtt.OutboxConfig       `yaml:"outbox"`
		Streams map[string]codec.Stream `yaml:"streams"`
		Labels  []codec.Labels          `yaml:"labels"`
	}
	f := file{MQTT: mqtt.DefaultConfig(), Outbox: mqtt.DefaultOutboxConfig()}
	text := `
mqtt:
  servers: [mqtts://broker.lan]
  keepalive: 45s
  password: {file: "${CREDENTIALS_DIRECTORY}/mqtt_password"}
  ring: {max_bytes: 1MiB}
outbox: {max_bytes: 16MiB}
streams:
  vibration:
    topics: ["factory/+/vibration"]
    dimension: 4
    max_payload: 1048576
labels:
  - {topics: ["factory/+/vibration/label"], id: sample}
`
	if err := yaml.Load([]byte(text), &f, yaml.WithKnownFields()); err != nil {
		t.Fatal(err)
	}
	s := f.Streams["vibration"]
	if s.ID != "id" || s.Label != "label" || s.Dimension != 4 || s.MaxPayload != field.MiB || s.MaxBatch != 1000 {
		t.Errorf("stream = %+v, want its defaults where the file says nothing", s)
	}
	if l := f.Labels[0]; l.ID != "sample" || l.Label != "label" {
		t.Errorf("labels = %+v", l)
	}
	if m := f.MQTT; m.Keepalive != 45*time.Second || m.QoS != 1 || m.Ring.MaxBytes != field.MiB || m.Ring.MaxMessages != 2048 || f.Outbox.MaxBytes != 16*field.MiB {
		t.Errorf("mqtt = %+v, outbox = %+v", m, f.Outbox)
	}
	written, err := yaml.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var again file
	if err := yaml.Load(written, &again, yaml.WithKnownFields()); err != nil || again.Outbox != f.Outbox || again.MQTT.Keepalive != f.MQTT.Keepalive {
		t.Errorf("%s\nreads as %+v, %v", written, again, err)
	}
	for _, bad := range []string{"streams: {a: {topic: [x]}}", "labels: [{tpics: [x]}]", "outbox: {max_bytes: 8MB}"} {
		if err := yaml.Load([]byte(bad), &file{}, yaml.WithKnownFields()); err == nil {
			t.Errorf("%s: want an error", bad)
		}
	}
}

func TestNodeName(t *testing.T) {
	for host, want := range map[string]string{"Pi4-Hall.local": "pi4-hall-local", "": "edge", "ü": "edge", "a_b": "a_b"} {
		if got := NodeName(host); got != want || !topic.IsName(got) {
			t.Errorf("NodeName(%q) = %q, want %q", host, got, want)
		}
	}
}

// threeFeatures is a stream whose features have names.
func threeFeatures() codec.Stream {
	s := codec.DefaultStream()
	s.Topics = []string{"factory/+/vibration"}
	s.TopicTemplate = "factory/{device}/vibration"
	s.Features = []string{"rms", "kurtosis", "peak_hz"}
	return s
}

func TestModelName(t *testing.T) {
	long := strings.Repeat("x", MaxName-1)
	for file, want := range map[string]string{"Room 1": "room-1", "LOG": "log-data", "cursor": "cursor-data", "log-1": "log-1", "": "edge", long + " 2": long, long + "yz": long + "y"} {
		if got := ModelName(file); got != want {
			t.Errorf("ModelName(%q) = %q, want %q", file, got, want)
		}
	}
}
