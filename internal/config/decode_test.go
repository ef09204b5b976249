package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"edge/stream/codec"
	"edge/stream/field"
)

// Anchors, merged mappings and tags of the core schema have the meaning of the YAML
// specification; a mapping's own key takes precedence over a merged one.
func TestConfigAnchors(t *testing.T) {
	c, err := Parse("edge.yaml", []byte(`
outbox: &queue {max_messages: 200, max_bytes: 1MiB}
mqtt: {servers: ["mqtt://broker.lan"], ring: {max_messages: 100, <<: *queue}, client_id: !!str 5}
streams:
  left: &side {topics: [left], features: [rms, peak], join: {devices: 7}}
  right: {<<: *side, topics: [right]}
models: {wear: {streams: [left, right]}}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.MQTT.Ring.MaxMessages != 100 || c.MQTT.Ring.MaxBytes != field.MiB || c.Outbox.MaxMessages != 200 || c.MQTT.ClientID != "5" {
		t.Errorf("ring %+v, outbox %+v, client %q", c.MQTT.Ring, c.Outbox, c.MQTT.ClientID)
	}
	want := c.Streams["left"]
	want.Topics = []string{"right"}
	if diff := cmp.Diff(want, c.Streams["right"]); diff != "" || want.Join.Devices != 7 || want.MaxBatch != 1000 {
		t.Errorf("streams (-left with other topics +right):\n%s", diff)
	}
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte(minimal))
	f.Add(sample(f))
	f.Add([]byte("mqtt: &a {qos: 1}\nnode: *a\n<<: *a\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("edge.yaml", data, nil)
		if err != nil {
			return // refusing is fine; panicking or accepting what cannot run is not
		}
		for name := range c.Models {
			cfg, err := c.Learner(name)
			if err != nil {
				t.Fatalf("accepted a model without a learner: %v", err)
			}
			if err := cfg.Validate(); err != nil {
				t.Fatalf("accepted a learner that is not valid: %v", err)
			}
		}
	})
}

// What is written in place of keys of other programs has keys that there are.
func TestCustomaryKeys(t *testing.T) {
	keysOf := func(v any) (keys []string) {
		visitFields(reflect.ValueOf(v).Elem(), func(key string, _ reflect.Value) { keys = append(keys, key) })
		return keys
	}
	c := new(Config)
	sections := map[string][]string{
		"": keysOf(c), "mqtt": keysOf(&c.MQTT), "mqtt.tls": keysOf(&c.MQTT.TLS), "http": keysOf(&c.HTTP), "store": keysOf(&c.Store),
		"metrics": keysOf(&c.Metrics), "homeassistant": keysOf(&c.HomeAssistant),
		"streams": keysOf(new(codec.Stream)), "labels": keysOf(new(codec.Labels)), "models": keysOf(new(Model)),
	}
	for _, of := range customary {
		key, _, _ := strings.Cut(of.write, ":")
		if !slices.Contains(sections[of.section], key) && !strings.HasSuffix(of.write, "beside "+of.section) {
			t.Errorf("%s of %q is none of %v", key, of.section, sections[of.section])
		}
		for _, word := range strings.Fields(of.keys) {
			if slices.Contains(sections[of.section], word) {
				t.Errorf("%s of %q is a key", word, of.section)
			}
		}
	}
}
