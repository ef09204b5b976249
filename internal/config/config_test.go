package config

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"edge/online"
	"edge/stream"
	"edge/stream/field"
	"edge/stream/mqtt"
	"edge/test/files"
)

const minimal = `
mqtt: {servers: [mqtt://broker.lan]}
streams: {vibration: {topics: [factory/+/vibration], features: [rms, kurtosis, peak_hz]}}
models: {bearing: {streams: [vibration]}}
`

// A minimal file is valid, and the defaults complete it.
func TestNodeOfHost(t *testing.T) {
	for host, want := range map[string]string{"pi4": "pi4", "Fleet": "edge", "": "edge"} {
		if got := defaultNode(host); got != want {
			t.Errorf("the node on %q is %q, want %q", host, got, want)
		}
	}
}

func TestMinimalConfig(t *testing.T) {
	c, err := Parse("edge.yaml", []byte(minimal), nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := c.Learner("")
	if err != nil {
		t.Fatal(err)
	}
	want := online.DefaultConfig()
	want.Features = []string{"rms", "kurtosis", "peak_hz"}
	if diff := cmp.Diff(want, cfg); diff != "" {
		t.Errorf("learner (-want +got):\n%s", diff)
	}
	if !reflect.DeepEqual(c.MQTT.Servers, []string{"mqtt://broker.lan"}) || c.MQTT.Keepalive != 30*time.Second {
		t.Errorf("mqtt %+v", c.MQTT)
	}
	if c.Models["bearing"].Pending != stream.DefaultPending() {
		t.Errorf("pending %+v", c.Models["bearing"].Pending)
	}
}

// Every mistake is refused with position, key and way out. Long: one table.
func TestConfigRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		yaml string
		env  []string
		want []string // one error each, in any order
	}{
		"unknown key":            {"mqtt:\n  keepaliv: 4s\n", nil, []string{`edge.yaml:2:3: unknown key "keepaliv" in mqtt; did you mean "keepalive"?`}},
		"unknown key far off":    {"zzzzzzzzz: 1\n", nil, []string{`edge.yaml:1:1: unknown key "zzzzzzzzz" in the configuration; the keys are control, homeassistant, http, labels, log, memory_limit, metrics, models, mqtt, node, outbox, store, streams`}},
		"unknown key of a model": {"models:\n  bearing:\n    inducng: 12\n", nil, []string{`edge.yaml:3:5: unknown key "inducng" in models.bearing; did you mean "inducing"?`}},
		"key of other programs":  {"mqtt:\n  host: a\n", nil, []string{`edge.yaml:2:3: unknown key "host" in mqtt; write servers: [mqtt://HOST:1883]`}},
		"one of TLS":             {"mqtt:\n  tls: {insecure: true}\n", nil, []string{`edge.yaml:2:9: unknown key "insecure" in mqtt.tls; write ca: FILE, the certificate of the broker's authority: the broker's own is always verified`}},
		"one of a stream":        {"streams:\n  a:\n    type: json\n", nil, []string{`edge.yaml:3:5: unknown key "type" in streams.a; write format: json, or another one`}},
		"one of payloads":        {"streams:\n  a:\n    delimiter: ;\n    Encoding: utf-16\n", nil, []string{`unknown key "delimiter" in streams.a; write format: csv, which has commas`, `unknown key "Encoding" in streams.a; write format: json, csv, influx or value, which are UTF-8`}},
		"one of metrics":         {"metrics: {interval: 5s}\nhomeassistant: {prefix: ha}\n", nil, []string{`edge.yaml:1:11: unknown key "interval" in metrics; write every: 30s`, `edge.yaml:2:17: unknown key "prefix" in homeassistant; write discovery_prefix: homeassistant`}},
		"one of labels":          {"labels:\n  - mapping: {a: b}\n", nil, []string{`edge.yaml:2:5: unknown key "mapping" in labels[0]; write map: {WORD: CLASS}`}},
		"one of another section": {"mqtt: {tls: {host: a}}\n", nil, []string{`edge.yaml:1:14: unknown key "host" in mqtt.tls; the keys are`}},
		"one of a model, there":  {"pending: {max: 1}\nfleet: {concept: a}\n", nil, []string{`edge.yaml:1:1: unknown key "pending" in the configuration; it is a key of models.NAME`, `edge.yaml:2:1: unknown key "fleet" in the configuration; it is a key of models.NAME`}},
		"one of a stream, there": {"models:\n  a:\n    on_missing: impute\n", nil, []string{`edge.yaml:3:5: unknown key "on_missing" in models.a; it is a key of streams.NAME`}},
		"one alike as well":      {"label_map: {a: b}\n", nil, []string{`edge.yaml:1:1: unknown key "label_map" in the configuration; it is a key of streams.NAME, or did you mean "labels"?`}},
		"one of two, there":      {"streams:\n  a:\n    max_messages: 5\n", nil, []string{`edge.yaml:3:5: unknown key "max_messages" in streams.a; it is a key of mqtt.ring and of outbox`}},
		"one of many":            {"mqtt:\n  max: 5\n", nil, []string{`edge.yaml:2:3: unknown key "max" in mqtt; the keys are`}},
		"one of the root":        {"broker: a\n", nil, []string{`edge.yaml:1:1: unknown key "broker" in the configuration; write mqtt: {servers: [mqtt://HOST:1883]}`}},
		"a password as a word":   {"mqtt: {password: secret}\n", nil, []string{`edge.yaml:1:18: mqtt.password: want keys and values, {file: FILE}, which holds it alone, or {env: NAME}; the keys are env, file`}},
		"unknown key in a list":  {"labels:\n  - topic: [a]\n", nil, []string{`edge.yaml:2:5: unknown key "topic" in labels[0]; did you mean "topics"?`}},
		"several at once": {"mqtt: {qos: one, keepalive: 5}\nstore: {max_size: 12MB}\n", nil, []string{
			"edge.yaml:1:13: mqtt.qos: one: want a whole number",
			"edge.yaml:1:29: mqtt.keepalive: 5: want a duration with its unit, such as 250ms, 30s or 24h",
			`edge.yaml:2:19: store.max_size: size "12MB": want a whole number`,
		}},
		"fraction":               {"outbox: {max_messages: 1.5}\n", nil, []string{"edge.yaml:1:24: outbox.max_messages: 1.5: want a whole number"}},
		"word for a switch":      {"mqtt: {persistent_session: maybe}\n", nil, []string{"edge.yaml:1:28: mqtt.persistent_session: maybe: want true or false"}},
		"word without a class":   {"labels: [{topics: [t], sticky: true, map: {0: }}]", nil, []string{`labels[0].map.0 has no value; write "" for an empty text`}},
		"key without a value":    {"mqtt:\n", nil, []string{"mqtt has no value; indent the lines that belong to it, or leave the key out for its default"}},
		"lines not indented":     {"models:\nm: {streams: [s]}\n", nil, []string{"edge.yaml:1:8: models has no value; indent the lines that belong to it", "edge.yaml:2:1: unknown key \"m\""}},
		"a name without a value": {"streams:\n  s:\nmodels: {}", nil, []string{"edge.yaml:2:5: streams.s has no value; indent the lines that belong to it"}},
		"a list of classes":      {"models: {m: {classes: [ok, worn]}}\n", nil, []string{"models.m.classes: want keys and values, such as {names: [NAME, NAME]}; the keys are confirm"}},
		"a no-break space":       {"mqtt:\n  qos:\u00a01\n  keepalive: 5s\n", nil, []string{"mapping values are not allowed in this context; line 2 has a no-break space, which is none for YAML: write an ordinary one"}},
		"number as a name":       {"models: {m: {streams: [007]}}\n", nil, []string{"edge.yaml:1:24: models.m.streams[0]: put 007 in quotes, it would be read as the number 7"}},
		"word for a mapping":     {"mqtt: broker\n", nil, []string{"edge.yaml:1:7: mqtt: want keys and values"}},
		"password in the file":   {"mqtt: {username: u, password: hunter2}\n", nil, []string{"edge.yaml:1:31: mqtt.password: want keys and values, {file: FILE}"}},
		"list for a mapping":     {"- 1\n", nil, []string{"edge.yaml:1:1: the configuration: want keys and values"}},
		"address for a list":     {"mqtt: {servers: mqtt://u:hunter2@b}\n", nil, []string{"edge.yaml:1:17: mqtt.servers: want a list"}},
		"addresses for a list":   {"mqtt: {servers: 'mqtt://10.0.0.101:1883, mqtt://10.0.0.102:18883'}\n", nil, []string{"mqtt.servers: want a list: [mqtt://10.0.0.101:1883, mqtt://10.0.0.102:18883]"}},
		"a text for a list":      {"mqtt: {servers: " + strings.Repeat("a", 201) + "}\n", nil, []string{"mqtt.servers: want a list: [VALUE]"}},
		"word for a list":        {"mqtt: {servers: a}\n", nil, []string{"edge.yaml:1:17: mqtt.servers: want a list: [a]"}},
		"mapping for a word":     {"mqtt: {servers: [mqtt: //h]}\n", nil, []string{"mqtt.servers[0]: want one value; put it in quotes if it has a colon"}},
		"of a stream, there":     {"models: {m: {window: {length: 5}}}\n", nil, []string{"edge.yaml:1:22: models.m.window: want one value; keys and values are those of this key in streams.NAME"}},
		"of a model, there":      {"streams: {a: {batch: {max_size: 5}}}\n", nil, []string{"edge.yaml:1:22: streams.a.batch: want one value; keys and values are those of this key in models.NAME"}},
		"a value of a section":   {"streams: {a: {window: 5m}}\ncontrol: true\n", nil, []string{"edge.yaml:1:23: streams.a.window: want keys and values, such as {length: 5m}; the keys are correlations, devices", "edge.yaml:2:10: control: want keys and values, such as {enabled: true}; the keys are"}},
		"a list of streams":      {"streams:\n  - name: a\n", nil, []string{"edge.yaml:2:3: streams: want keys and values, not a list: NAME: {…} for each"}},
		"port out of range":      {strings.Replace(minimal, "broker.lan", "h:99999", 1), nil, []string{"mqtt.servers mqtt://h:99999: want a port of 1 to 65535"}},
		"tab":                    {"mqtt:\n\tqos: 1\n", nil, []string{"edge.yaml:2:1: a tab: YAML is indented by spaces alone"}},
		"no UTF-8":               {"node: \xff\n", nil, []string{"edge.yaml:1:7: the byte 0xff is no UTF-8: save the file as UTF-8"}},
		"size":                   {"store: {max_size: 12MB}\n", nil, []string{`size "12MB": want a whole number with B, KiB, MiB or GiB, such as 64KiB`}},
		"key of two words":       {"[a, b]: 1\n", nil, []string{"edge.yaml:1:1: the configuration: want one word as a key"}},
		"key twice, merged":      {"outbox: &a {max_messages: 100}\nmqtt: {ring: {<<: *a, <<: *a}}\n", nil, []string{"edge.yaml:2:23: mqtt.ring.<< occurs twice: the first is in line 2"}},
		"list for a word":        {"node: [a]\n", nil, []string{"edge.yaml:1:7: node: want one value"}},
		"key twice":              {"node: a\nnode: b\n", nil, []string{"edge.yaml:2:1: node occurs twice: the first is in line 1"}},
		"no such anchor":         {"outbox: *o\n", nil, []string{"edge.yaml:1:9: *o: no &o is before it"}},
		"anchor within itself":   {"mqtt: &a {<<: *a}\n", nil, []string{"edge.yaml:1:15: *a: stands within &a itself"}},
		"alias of another kind":  {"mqtt: &a {qos: 1}\nnode: *a\n", nil, []string{"edge.yaml:1:7: node: want one value; put it in quotes if it has a colon"}},
		"merge of a list":        {"mqtt: {<<: [{qos: 1}]}\n", nil, []string{"edge.yaml:1:12: mqtt: want keys and values"}},
		"merge of a wrong key":   {"outbox: &a {policy: drop_oldest}\nmqtt: {ring: {<<: *a}}\n", nil, []string{`edge.yaml:1:13: unknown key "policy" in mqtt.ring; it is a key of outbox`}},
		"tag":                    {"node: !!binary aGVsbG8=\n", nil, []string{"edge.yaml:1:7: node: the tag !!binary has no meaning here"}},
		"not YAML":               {"mqtt: {servers: [\n", nil, []string{"edge.yaml:2:1: did not find expected node content; is a quote, a [ or a { not closed?"}},
		"no space after colon":   {"node:pi\nmqtt: {}\n", nil, []string{"edge.yaml:2:5: mapping values are not allowed in this context; are the indentation and the spaces after colons right?"}},
		"indented too far":       {minimal + "     qos: 1\n", nil, []string{"edge.yaml:5:6: did not find expected key, while parsing a block mapping that begins in line 2; are the indentation"}},
		"braces without quotes":  {"node:\n  a: {device}/x\n  b: 1\n", nil, []string{"edge.yaml:2:14: did not find expected key; are the indentation and the spaces after colons right? A text needs quotes if it begins with one of # * @ % { ["}},
		"# without quotes":       {"mqtt: {servers: [a, #]}\n  }\n", nil, []string{"A text needs quotes"}},
		"@ without quotes":       {"node: @timestamp\n", nil, []string{"edge.yaml:1:7: found character that cannot start any token; are the"}},
		"backslash in quotes":    {"store: {path: \"C:\\data\"}\n", nil, []string{"edge.yaml:1:18: found unknown escape character; within single quotes a \\ is an ordinary character"}},
		"* without quotes":       {"node: */x\n", nil, []string{"edge.yaml:1:7: */x: no &/x is before it; a text that begins with * needs quotes"}},
		"comment in a list":      {"mqtt:\n  servers:\n  - #\n", nil, []string{"edge.yaml:3:4: mqtt.servers[0] has no value; a # begins a comment where it is not in quotes"}},
		"level":                  {minimal + "log: {level: warning}\n", nil, []string{"edge.yaml:5:14: log.level: warning: want debug, info, warn or error"}},
		"two documents":          {"node: a\n---\nnode: b\n", nil, []string{"edge.yaml: has 2 documents; a configuration is one"}},
		"nothing":                {"", nil, []string{"edge.yaml: streams: want at least one", "edge.yaml: models: want at least one"}},
		"out of range": {minimal + "store: {max_size: 1KiB, dedupe: -1, checkpoint: {every: 0s, samples: 0, size: 0}}\n", nil, []string{
			"edge.yaml:5:9: store.max_size: 1KiB: want at least 1MiB",
			"edge.yaml:5:25: store.dedupe: -1: want 1 to 1000000 messages",
			"edge.yaml:5:37: store.checkpoint: every, samples and size are all 0",
		}},
		"address without a port": {minimal + "http: {listen: localhost}\n", nil, []string{"edge.yaml:5:8: http.listen: localhost: want host:port"}},
		"address with no number": {minimal + "http: {listen: 'localhost:http'}\n", nil, []string{"http.listen: localhost:http: want host:port"}},
		"range of a package": {strings.Replace(minimal, "streams: [vibration]", "streams: [vibration], inducing: 1", 1), nil,
			[]string{"edge.yaml:4:42: models.bearing.inducing: 1: want inducing points, 2 to 1000"}},
		"address of no host":  {minimal + "http: {listen: '127.0.0.256:80'}\n", nil, []string{"http.listen: 127.0.0.256:80: want host:port"}},
		"address with a path": {minimal + "http: {listen: 'http://localhost:80'}\n", nil, []string{"http.listen: http://localhost:80: want host:port"}},
		"all topics": {strings.Replace(minimal, "[factory/+/vibration]", `["#"]`, 1), nil,
			[]string{"edge.yaml:3:23: streams.vibration.topics: # would receive the node's own output edge/"}},
		"a template as topic": {strings.Replace(minimal, "[factory/+/vibration]", `["factory/{device}/vibration"]`, 1), nil,
			[]string{"streams.vibration.topics factory/{device}/vibration: want factory/+/vibration, and the names in topic_template: factory/{device}/vibration"}},
		"own topics": {strings.Replace(minimal, "[factory/+/vibration]", `[edge/#]`, 1), nil,
			[]string{"edge.yaml:3:23: streams.vibration.topics: edge/# would receive the node's own output edge/"}},
		"own topics as labels": {minimal + "labels: [{topics: ['edge/+/+/prediction']}]\n", nil,
			[]string{"edge.yaml:5:11: labels[0].topics: edge/+/+/prediction would receive the node's own output edge/"}},
		"own topics, shared": {strings.Replace(minimal, "[factory/+/vibration]", `["$share/g/edge/#"]`, 1), nil,
			[]string{"streams.vibration.topics: $share/g/edge/# would receive the node's own output"}},
		"model that is a topic": {strings.Replace(minimal, "bearing", "health", 1), nil,
			[]string{"edge.yaml:4:10: models.health: want unique names in [a-z0-9_-], and none of state, info, health"}},
		"model with a long name": {strings.Replace(minimal, "bearing", strings.Repeat("b", 65), 1), nil,
			[]string{"the name has 65 bytes, and the state file takes 64"}},
		"stream of signals with a long name": {strings.ReplaceAll(strings.Replace(minimal, "features:", "signals:", 1), "vibration", strings.Repeat("v", 65)), nil,
			[]string{"the name has 65 bytes, and the state file takes 64 of a stream with signals"}},
		"stream twice": {strings.Replace(minimal, "[vibration]", "[vibration, vibration]", 1), nil,
			[]string{"edge.yaml:4:20: models.bearing.streams: vibration occurs twice"}},
		"no such stream": {strings.Replace(minimal, "[vibration]", "[vibraton]", 1), nil,
			[]string{`edge.yaml:4:20: models.bearing.streams: no stream is called "vibraton"; the configuration has vibration`}},
		"feature twice": {strings.Replace(minimal, "[vibration]", "[vibration], features: [rms, rms]", 1), nil,
			[]string{"edge.yaml:4:42: models.bearing.features: rms occurs twice"}},
		"classes.max below the names": {strings.Replace(minimal, "[vibration]", "[vibration], classes: {names: [a, b, c], max: 2}", 1), nil,
			[]string{"edge.yaml:4:70: models.bearing.classes.max: 2: want at least the 3 of classes.names"}},
		"a class of two lines": {strings.Replace(minimal, "[vibration]", `[vibration], classes: {names: [a, "b\nc"]}`, 1), nil,
			[]string{`edge.yaml:4:52: models.bearing.classes.names: "b\nc" has a control character`}},
		"journal_flush": {minimal + "store: {journal_flush: 20s}\n", nil, []string{"edge.yaml:5:9: store.journal_flush: 20s: want 0s to 10s"}},
		"no stream at all": {minimal[:strings.Index(minimal, "streams:")] + minimal[strings.Index(minimal, "models:"):], nil,
			[]string{"edge.yaml: streams: want at least one", `edge.yaml:3:20: models.bearing.streams: no stream is called "vibration"; the configuration has none`}},
		"no such feature": {strings.Replace(minimal, "[vibration]", "[vibration], features: [rms, crest]", 1), nil,
			[]string{`models.bearing.streams: stream vibration has no feature "crest"`}},
		"labels of no model": {minimal + "labels: [{topics: [a], model: motor}]\n", nil, []string{"edge.yaml:5:24: labels[0].model: motor: there is no such model"}},
		"durability":         {minimal + "store: {durability: lax}", nil, []string{"store.durability: lax: want strict or relaxed"}},
		"loss window":        {minimal + "store: {loss_window: 1ms}", nil, []string{"store.loss_window: 1ms: want 100ms to 1h"}},
		"output":             {strings.Replace(minimal, "streams: [vibration]", "streams: [vibration], output: xml", 1), nil, []string{"edge.yaml:4:42: models.bearing.output: xml: want json or cbor"}},
		"format":             {strings.Replace(minimal, "features:", "format: xml, features:", 1), nil, []string{"streams.vibration.format xml: want one of json, cbor, float32, float64, influx, csv, value"}},
		"join":               {strings.Replace(minimal, "features:", "format: value, join: {window: 0s}, features:", 1), nil, []string{"streams.vibration.join.window 0s: want 1ms to 24h", `streams.vibration.topic_template "": want a level {feature}`}},
		"time zone":          {strings.Replace(minimal, "features:", "time_zone: Europe/Nowhere, signals:", 1), nil, []string{"streams.vibration.time_zone Europe/Nowhere: want the name of a zone"}},
		"time zone, model": {strings.NewReplacer("features:", "time_zone: Europe/Nowhere, signals:", "streams: [vibration]", "streams: [vibration], features: [rms]").Replace(minimal), nil,
			[]string{"streams.vibration.time_zone Europe/Nowhere: want the name of a zone"}},
		"credentials in an address": {strings.Replace(minimal, "mqtt://broker.lan", `"mqtt://u:hunter2@broker.lan"`, 1), nil,
			[]string{"edge.yaml:2:8: mqtt.servers: an address has a user or password in it"}},
		"addresses of IPv6": {strings.Replace(minimal, "mqtt://broker.lan", `"::1", "mqtt://fe80::1", "mqtts://[::1]:8884", "mqtt://a:1:2", "mqtt://[fe80::1%lo]:1883", "fe80::1%lo"`, 1), nil, []string{
			"mqtt.servers mqtt://[fe80::1%lo]:1883: want mqtt://[fe80::1%25lo]:1883, a zone after %25", "mqtt.servers fe80::1%lo: want mqtt://[fe80::1%25lo], or mqtts:// with TLS",
			"mqtt.servers ::1: want mqtt://[::1], or mqtts:// with TLS", "mqtt.servers mqtt://fe80::1: want mqtt://[fe80::1], an address of IPv6 in brackets", "mqtt.servers mqtt://a:1:2: want mqtt://a:1:2, an address of IPv6 in brackets",
		}},
		"a home as in a shell": {minimal + "store: {path: ~/edge.db}\nhttp: {password: {file: ~/web}}\n", nil, []string{"store.path: ~/edge.db: only a shell knows ~: want ${HOME}/edge.db", "http.password.file: ~/web: only a shell knows ~: want ${HOME}/web"}},
		"credentials without a scheme": {strings.Replace(minimal, "mqtt://broker.lan", `"u:hunter2@broker.lan:1883"`, 1), nil,
			[]string{"mqtt.servers: an address has a user or password in it"}},
		"credentials without slashes": {strings.Replace(minimal, "mqtt://broker.lan", `"mqtt:u:hunter2@broker.lan"`, 1), nil,
			[]string{"mqtt.servers: an address has a user or password in it"}},
		"credentials as a host": {strings.Replace(minimal, "mqtt://broker.lan", `"mqtt://u:1/hunter2@broker.lan"`, 1), nil,
			[]string{"mqtt.servers: an address has a user or password in it"}},
		"environment, format": {minimal, []string{"EDGE_MQTT_QOS=two"}, []string{"EDGE_MQTT_QOS: mqtt.qos: two: want a whole number"}},
		"environment, range":  {minimal, []string{"EDGE_MODELS_BEARING_WINDOW=-3"}, []string{"EDGE_MODELS_BEARING_WINDOW: models.bearing.window: -3: want observations, 0 to 10000"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("edge.yaml", []byte(tc.yaml), tc.env)
			if err == nil {
				t.Fatalf("accepted; want %q", tc.want)
			}
			got := flatten(err)
			if len(got) != len(tc.want) {
				t.Errorf("%d errors, want %d:\n%v", len(got), len(tc.want), err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("errors:\n%v\nwant one with %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error gives a password away: %v", err)
			}
		})
	}
}

// YAML in the forms that people write it.
func TestConfigReads(t *testing.T) {
	for name, text := range map[string]string{
		"plain":           minimal,
		"ports":           strings.Replace(minimal, "mqtt://broker.lan", "mqtt://127.0.0.1:1883, 'mqtts://broker.lan:8883', 'ws://[::1]:80'", 1),
		"block":           "mqtt:\n  servers:\n  - mqtt://127.0.0.1:1883\nstreams:\n  vibration:\n    topics:\n      - factory/+/vibration\n    features: [rms, kurtosis, peak_hz]\nmodels:\n  bearing:\n    streams: [vibration]\n",
		"Windows":         "\ufeff" + strings.ReplaceAll(minimal, "\n", "\r\n"),
		"start and end":   "---\n" + minimal + "...\n",
		"one last, empty": minimal + "---\n",
		"comments":        "# of mine\n" + strings.ReplaceAll(minimal, "]}\n", "]} # so\n"),
		"words":           minimal + "control: {enabled: Yes}\nhomeassistant: {enabled: on}\nhttp: {pprof: NO, listen: 127.0.0.1:9107}\n",
		"anchors":         "mqtt: {servers: &s [mqtt://127.0.0.1:1883]}\nstreams: {vibration: {topics: &t [factory/+/vibration], features: [rms]}}\nlabels: [{topics: *t}]\nmodels: {bearing: {streams: [vibration]}}\n",
		"label maps":      strings.Replace(minimal, "features:", "label_map: {true: on, 0: off, \"ON\": on}, features:", 1) + "labels: [{topics: [a], last: true, map: {OPEN: open, 1.5: half}}]\n",
		"numbers":         minimal + "store: {journal_flush: 5s, max_size: 8388608, checkpoint: {every: 1h30m}}\n",
		"by size alone":   minimal + "store: {checkpoint: {every: 0s, samples: 0}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Parse("edge.yaml", []byte(text), nil)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if s := c.Streams["vibration"]; !reflect.DeepEqual(s.Topics, []string{"factory/+/vibration"}) {
				t.Errorf("topics %q", s.Topics)
			}
			if strings.Contains(text, ":1883") && c.MQTT.Servers[0] != "mqtt://127.0.0.1:1883" {
				t.Errorf("servers %q", c.MQTT.Servers)
			}
			if by := c.Streams["vibration"].LabelMap; name == "label maps" && (by["true"] != "on" || by["0"] != "off" || c.Labels[0].Map["1.5"] != "half" || !c.Labels[0].Last) {
				t.Errorf("label_map %v, labels %+v", by, c.Labels)
			}
			if name == "words" && (!c.Control.Enabled || !c.HomeAssistant.Enabled || c.HTTP.Pprof) {
				t.Errorf("control %v, homeassistant %v, pprof %v", c.Control, c.HomeAssistant, c.HTTP)
			}
		})
	}
}

// Environment variables override keys; an error names the variable.
func TestConfigEnvironment(t *testing.T) {
	c, err := Parse("edge.yaml", []byte(minimal), []string{
		"EDGE_NODE=attic",
		"EDGE_MQTT_SERVERS=mqtt://a, mqtts://b",
		"EDGE_MQTT_USERNAME=007",
		"EDGE_MQTT_PASSWORD_FILE=/run/secret",
		"EDGE_STORE_PATH=/var/lib/edge/x.db",
		"EDGE_STORE_MAX_SIZE=8MiB",
		"EDGE_STORE_CHECKPOINT_EVERY=1m",
		"EDGE_LOG_LEVEL=debug",
		"EDGE_MODELS_BEARING_BATCH_MAX_WAIT=0s",
		"EDGE_MODELS_BEARING_HORIZONS=inf,500",
		"EDGE_MODELS_BEARING_LABEL_NOISE_LEARN=false",
		"EDGE_STREAMS_VIBRATION_MAX_BATCH=7",
		"EDGE_PORT=tcp://10.0.0.1:80", // which a container runtime sets for a linked service
		"PATH=/bin",
	})
	if err != nil {
		t.Fatal(err)
	}
	bearing := c.Models["bearing"].Learner
	for _, check := range []struct {
		key       string
		got, want any
	}{
		{"node", c.Node, "attic"},
		{"mqtt.servers", c.MQTT.Servers, []string{"mqtt://a", "mqtts://b"}},
		{"mqtt.username", c.MQTT.Username, "007"},
		{"mqtt.password", c.MQTT.Password, mqtt.Secret{File: "/run/secret"}},
		{"store.path", c.Store.Path, "/var/lib/edge/x.db"},
		{"store.max_size", c.Store.MaxSize, 8 * field.MiB},
		{"store.checkpoint.every", c.Store.Checkpoint.Every, time.Minute},
		{"log.level", c.Log.Level, slog.LevelDebug},
		{"models.bearing.batch", bearing.Batch, online.Batch{MaxSize: 16}},
		{"models.bearing.horizons", len(bearing.Horizons), 2},
		{"models.bearing.label_noise.learn", bearing.LabelNoise.Learn, false},
		{"streams.vibration.max_batch", c.Streams["vibration"].MaxBatch, 7},
	} {
		if !reflect.DeepEqual(check.got, check.want) {
			t.Errorf("%s is %v, want %v", check.key, check.got, check.want)
		}
	}
}

// A variable that overrides nothing is told, with the nearest one that does.
func TestUnusedVariables(t *testing.T) {
	c, err := Parse("edge.yaml", []byte(minimal+"\nstore: {path: \"${EDGE_HOME}/edge.db\"}\n"), []string{"EDGE_MQTT_USERNAME=edge", "EDGE_MQTT_PASSWORD_ENV=EDGE_BROKER_KEY"})
	if err != nil {
		t.Fatal(err)
	}
	const no = " overrides no key of this configuration"
	got := c.UnusedVariables([]string{
		"PATH=/bin", "EDGE_NODE=a", "EDGE_HOME=/var", "EDGE_BROKER_KEY=secret", "EDGE_MODELS_BEARING_WINDOW=3", "EDGE_PORT=tcp://10.0.0.1:80",
		"EDGE_SERVICE_HOST=10.0.0.1", "EDGE_PORT_80_TCP=tcp://10.0.0.1:80",
		"EDGE_STORE_PAHT=/x", "EDGE_MODELS_BAERING_WINDOW=3", "EDGE_MQTT_SERVER=mqtt://b", "EDGE_MQTT_PASSWORD=secret", "EDGE_GREETING_OF_THE_DAY=hello",
	})
	want := []string{
		"the environment variable EDGE_GREETING_OF_THE_DAY" + no,
		"the environment variable EDGE_MODELS_BAERING_WINDOW" + no + "; did you mean EDGE_MODELS_BEARING_WINDOW?",
		"the environment variable EDGE_MQTT_PASSWORD" + no + "; if it holds the secret, set EDGE_MQTT_PASSWORD_ENV=EDGE_MQTT_PASSWORD as well",
		"the environment variable EDGE_MQTT_SERVER" + no + "; did you mean EDGE_MQTT_SERVERS?",
		"the environment variable EDGE_STORE_PAHT" + no + "; did you mean EDGE_STORE_PATH?",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// parsed returns a configuration with its state file in a temporary folder.
func parsed(t *testing.T, text string) *Config {
	t.Helper()
	cfg, err := Parse("edge.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Store.Path = filepath.Join(t.TempDir(), "edge.db")
	return cfg
}

// A file that can be no configuration, such as a large data file, is not read into memory.
func TestLoadOfALargeFile(t *testing.T) {
	path := files.Write(t, "readings.csv", "")
	if err := os.Truncate(path, maxFile+1); err != nil { // sparse
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "readings.csv has more than 16 MiB") {
		t.Errorf("the error is %v", err)
	}
}

// A file that is none of ours has an error for each key: the first are told.
func TestLoadOfAnotherFile(t *testing.T) {
	for keys, want := range map[int]int{50: 50, 51: 51, 3000: 51} {
		var text strings.Builder
		for i := range keys {
			fmt.Fprintf(&text, "container%d: 1\n", i)
		}
		_, err := Load(files.Write(t, "compose.yaml", text.String()))
		if err == nil {
			t.Fatal("no error")
		}
		lines := strings.Split(err.Error(), "\n")
		if last := lines[len(lines)-1]; len(lines) != want || strings.Contains(last, "more errors") != (keys > 50) {
			t.Errorf("%d keys: %d lines, the last %.60q", keys, len(lines), last)
		}
	}
}
