package stream

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"edge/stream/codec"
	"edge/stream/mqtt"
)

func TestSeveralModelsAndStreams(t *testing.T) {
	in("each message reaches each model once, and is acknowledged once", t, func(t *testing.T) {
		cfg, bearing := testConfig()
		all := codec.DefaultStream()
		all.Topics, all.Features = []string{"factory/#"}, []string{"f1", "f0", "f2"}
		all.Fields = map[string]string{"f0": "f0"}
		cfg.Streams["all"] = all
		other := bearing
		other.Name, other.Model, other.Streams, other.Features = "other", newFakeModel(1), []string{"all"}, []string{"f1"}
		both := bearing
		both.Name, both.Model, both.Streams, both.Features = "both", newFakeModel(2), []string{"all", "vibration"}, []string{"f1", "f0"}
		r := newRig(t, newFakeJournal(), cfg, bearing, other, both)
		r.send(p7, `{"f0":1,"f1":2,"f2":3,"label":"ok"}`, `{"f0":4,"f1":5,"label":"ok"}`)
		time.Sleep(time.Second)
		equal(t, "bearing", r.models["bearing"].learnt(), []string{"ok 4"}) // f2 is unknown to vibration
		equal(t, "other", r.models["other"].learnt(), []string{"ok 2"})     // f2 is missing for all
		equal(t, "both", r.models["both"].learnt(), []string{"ok 2", "ok 5"})
		if got := len(r.acks()); got != 2 {
			t.Errorf("acknowledged %d, want 2", got)
		}
		if got := r.node.client.Filters; !slices.Contains(got, "factory/#") || slices.Contains(got, "factory/+/vibration") {
			t.Errorf("subscribes to %q, want factory/# alone for both streams", got)
		}
	})
	in("a label reaches the model that has its sample", t, func(t *testing.T) {
		cfg, bearing := testConfig()
		cfg.Labels[0].Model = ""
		second := codec.DefaultStream()
		second.Topics, second.Dimension = []string{"second"}, 2
		cfg.Streams["second"] = second
		other := bearing
		other.Name, other.Model, other.Streams = "other", newFakeModel(2), []string{"second"}
		r := newRig(t, newFakeJournal(), cfg, bearing, other)
		r.send("second", `{"id":"a","features":[1,2]}`)
		r.send("factory/p7/label", `{"id":"a","label":"ok"}`)
		time.Sleep(time.Second)
		equal(t, "other", r.models["other"].learnt(), []string{"ok 1"})
		if got := r.node.Stats().Rejected; len(got) != 0 {
			t.Errorf("refused %v, want nothing", got)
		}
	})
}

func TestRetainedAllowed(t *testing.T) {
	in("is learnt once however often the broker sends it", t, func(t *testing.T) {
		cfg, m := testConfig()
		s := cfg.Streams["vibration"]
		s.AllowRetained = "true"
		cfg.Streams["vibration"] = s
		r := newRig(t, newFakeJournal(), cfg, m)
		for range 3 {
			r.sendMessage(&mqtt.Message{Topic: p7, Payload: []byte(labelled(1)), QoS: 1, Retained: true})
			time.Sleep(time.Second)
		}
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1"})
	})
	in("the refusal of another one says what it is", t, func(t *testing.T) {
		r := one(t)
		for topic, want := range map[string]string{p7: "allow_retained does not accept it", "factory/p7/label": "a label counts when it is sent"} {
			r.published()
			r.sendMessage(&mqtt.Message{Topic: topic, Payload: []byte(labelled(1)), QoS: 1, Retained: true})
			time.Sleep(2 * time.Minute)
			if got := fmt.Sprint(answers(r.published(), "edge/n1/bearing/reject")); !strings.Contains(got, want) {
				t.Errorf("%s: %s, want %s", topic, got, want)
			}
		}
	})
}

func TestNewNodeRefuses(t *testing.T) {
	for _, c := range []struct {
		change func(*Config, *ModelConfig)
		want   string
	}{
		{func(c *Config, m *ModelConfig) { m.Name = "state" }, `models.state: want unique names`},
		{func(c *Config, m *ModelConfig) { m.Streams = nil }, "models.bearing.streams []"},
		{func(c *Config, m *ModelConfig) { m.Streams = []string{"x"} }, `there is no stream "x"; there are vibration`},
		{func(c *Config, m *ModelConfig) { m.Features = []string{"f0", "f9"} }, `stream vibration has no feature "f9"`},
		{func(c *Config, m *ModelConfig) { m.Model = newFakeModel(7) }, "2 names, but the model has 7 features"},
		{func(c *Config, m *ModelConfig) { c.Labels[0].Model = "x" }, "labels[0].model x: there is no such model"},
		{func(c *Config, m *ModelConfig) { m.Pending.TTL = 0 }, "models.bearing.pending.ttl 0s"},
		{func(c *Config, m *ModelConfig) { c.MQTT.QoS = 3 }, "mqtt.qos 3"},
		{topics("#"), "would receive the node's own output edge/n1/bearing/prediction"},
		{topics("edge/+/+/prediction/+"), "own output edge/n1/bearing/prediction"},
		{topics("$share/g/edge/n1/+"), "own output edge/n1/state"},
	} {
		cfg, m := testConfig()
		c.change(&cfg, &m)
		_, err := NewNode(cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal()})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
	if _, err := NewNode(DefaultConfig(), Deps{Journal: newFakeJournal()}); err == nil {
		t.Error("a node without models")
	}
}

func topics(filter string) func(*Config, *ModelConfig) {
	return func(c *Config, _ *ModelConfig) {
		s := c.Streams["vibration"]
		s.Topics, s.TopicTemplate = []string{filter}, ""
		c.Streams["vibration"] = s
	}
}

// Two streams that read the features of the same message in another order do not
// share the memory of their readings.
func TestTwoStreamsOfOneTopic(t *testing.T) {
	cfg, m := testConfig()
	s := cfg.Streams["vibration"]
	s.Dimension, s.Features = 0, []string{"x0", "x1"}
	cfg.Streams["vibration"] = s
	s.Features = []string{"x1", "x0"}
	cfg.Streams["other"] = s
	other := m
	other.Name, other.Model, other.Streams = "motor", newFakeModel(2), []string{"other"}
	r := newRig(t, newFakeJournal(), cfg, m, other)
	r.send(p7, `{"label":"ok","features":{"x0":1,"x1":2}}`)
	r.stop()
	for name, want := range map[string][]float64{"bearing": {1, 2}, "motor": {2, 1}} {
		if got := r.models[name].record(0).X; !slices.Equal(got, want) {
			t.Errorf("%s learns %v, want %v", name, got, want)
		}
	}
}
