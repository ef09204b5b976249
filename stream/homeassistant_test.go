package stream

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

const discoveryTopic = "homeassistant/device/edge_n1_bearing/config"

// home plays Home Assistant's part: it discovers, renders states and sends
// commands, as its MQTT integration does.
type home struct {
	*probe
}

func newHome(t *testing.T, b *broker) *home {
	return &home{newProbe(t, b, "homeassistant/device/+/config", "edge/#")}
}

// device returns the newest announcement; false if there is none, or it was removed.
func (h *home) device() (gjson.Result, bool) {
	all := h.on(discoveryTopic)
	if len(all) == 0 || all[len(all)-1] == "" {
		return gjson.Result{}, false
	}
	if !gjson.Valid(all[len(all)-1]) {
		h.t.Fatalf("announced %s", all[len(all)-1])
	}
	return gjson.Parse(all[len(all)-1]), true
}

// state is what an entity shows: "" before its first message.
func (h *home) state(key string) string {
	d, ok := h.device()
	if !ok {
		return ""
	}
	e := d.Get("components." + key)
	topic := e.Get("state_topic").String()
	all := h.on(topic)
	if len(all) == 0 {
		return ""
	}
	return h.render(e.Get("value_template").String(), all[len(all)-1])
}

// The templates that the node uses: Jinja with Home Assistant's additions.
var (
	plainTemplate   = regexp.MustCompile(`^{{ value_json\.([\w.]+) }}$`)
	jsonTemplate    = regexp.MustCompile(`^{{ value_json\.([\w.]+) \| to_json }}$`)
	percentTemplate = regexp.MustCompile(`^{{ none if value_json\.([\w.]+) is none else \((\(1 - )?value_json\.([\w.]+)(\))? \* 100\) \| round\(1\) }}$`)
	switchTemplate  = regexp.MustCompile(`^{{ 'ON' if value_json\.([\w.]+) else 'OFF' }}$`)
)

func (h *home) render(template, payload string) string {
	h.t.Helper()
	value := func(path string) gjson.Result {
		v := gjson.Get(payload, path)
		if !v.Exists() {
			h.t.Fatalf("%s: there is no %s in %s", template, path, payload)
		}
		return v
	}
	if m := plainTemplate.FindStringSubmatch(template); m != nil {
		if v := value(m[1]); v.Type != gjson.Null {
			return v.String()
		}
		return "None"
	}
	if m := jsonTemplate.FindStringSubmatch(template); m != nil {
		return value(m[1]).Raw
	}
	if m := switchTemplate.FindStringSubmatch(template); m != nil {
		if value(m[1]).Bool() {
			return "ON"
		}
		return "OFF"
	}
	if m := percentTemplate.FindStringSubmatch(template); m != nil && m[1] == m[3] && (m[2] == "") == (m[4] == "") {
		v := value(m[1])
		if v.Type == gjson.Null {
			return "None"
		}
		f := v.Float()
		if m[2] != "" {
			f = 1 - f
		}
		return fmt.Sprint(math.Round(f*1000) / 10)
	}
	h.t.Fatalf("a template that this test cannot render: %s", template)
	return ""
}

// choose sends what a select sends for an option.
func (h *home) choose(key, option string) {
	h.t.Helper()
	d, _ := h.device()
	e := d.Get("components." + key)
	if !slices.ContainsFunc(e.Get("options").Array(), func(o gjson.Result) bool { return o.String() == option }) {
		h.t.Fatalf("%s has no option %q: %s", key, option, e)
	}
	before, after, ok := strings.Cut(e.Get("command_template").String(), "{{ value | to_json }}")
	if !ok {
		h.t.Fatalf("a command template that this test cannot render: %s", e)
	}
	quoted, err := json.Marshal(option)
	if err != nil {
		h.t.Fatal(err)
	}
	h.send(e.Get("command_topic").String(), before+string(quoted)+after)
}

// The keys that Home Assistant knows, of those that the node uses, and those
// that it requires: device discovery and the platforms sensor,
// binary_sensor, select, switch.
// At the root it accepts no others.
var homeSchema = map[string]struct{ required, optional []string }{
	"root":   {[]string{"device", "origin", "components"}, []string{"availability"}},
	"device": {[]string{"identifiers"}, []string{"name", "manufacturer", "model", "sw_version"}},
	"origin": {[]string{"name"}, []string{"sw_version"}},
	"sensor": {[]string{"platform", "unique_id", "name", "state_topic"}, []string{"value_template", "device_class", "options", "unit_of_measurement", "state_class",
		"expire_after", "entity_category", "json_attributes_topic", "json_attributes_template"}},
	"binary_sensor": {[]string{"platform", "unique_id", "name", "state_topic"}, []string{"value_template", "device_class", "expire_after", "entity_category"}},
	"select":        {[]string{"platform", "unique_id", "name", "command_topic", "options"}, []string{"command_template", "qos"}},
	"switch":        {[]string{"platform", "unique_id", "name", "command_topic"}, []string{"state_topic", "value_template", "entity_category", "qos"}},
}

// checkDiscovery holds an announcement against what Home Assistant accepts.
func checkDiscovery(t *testing.T, d gjson.Result) {
	t.Helper()
	check := func(schema string, v gjson.Result) {
		known := homeSchema[schema]
		for _, key := range known.required {
			if !v.Get(key).Exists() {
				t.Errorf("%s: %s is missing: %s", schema, key, v)
			}
		}
		for key := range v.Map() {
			if !slices.Contains(known.required, key) && !slices.Contains(known.optional, key) {
				t.Errorf("%s: unknown key %s: %s", schema, key, v)
			}
		}
	}
	check("root", d)
	check("device", d.Get("device"))
	check("origin", d.Get("origin"))
	ids := map[string]bool{}
	for key, e := range d.Get("components").Map() {
		if len(e.Map()) == 1 && e.Get("platform").Exists() {
			continue // removed
		}
		check(e.Get("platform").String(), e)
		if id := e.Get("unique_id").String(); ids[id] {
			t.Errorf("unique_id %s twice", id)
		} else {
			ids[id] = true
		}
		if options := e.Get("options"); options.Exists() && len(options.Array()) == 0 {
			t.Errorf("%s: an empty list of options", key)
		}
		if e.Get("device_class").String() == "enum" && (!e.Get("options").Exists() || e.Get("state_class").Exists() || e.Get("unit_of_measurement").Exists()) {
			t.Errorf("%s: an enum wants options and neither unit nor state_class: %s", key, e)
		}
		for name, v := range e.Map() {
			if strings.HasSuffix(name, "_topic") && checkTopic(v.String()) != nil {
				t.Errorf("%s: %s %q is no topic", key, name, v)
			}
		}
	}
}

func TestHomeAssistant(t *testing.T) {
	withMosquitto(t, "", func(t *testing.T, b *broker) {
		h := newHome(t, b)
		journal := newFakeJournal()
		change := func(c *Config, m *ModelConfig) {
			c.HomeAssistant.Enabled, c.Control.Enabled = true, true
			m.Mark, m.Output = journal.mark(m.Name), formatCBOR // what Home Assistant reads stays JSON
		}
		now := func(n *Node) { n.report.home.delay = func() time.Duration { return 0 } }
		d := startNode(t, b, journal, change, now).ready(t)

		// Before anything is known there is nothing to choose from.
		eventually(t, "the device", func() bool { _, ok := h.device(); return ok })
		device, _ := h.device()
		checkDiscovery(t, device)
		if e := device.Get("components.class"); e.Get("device_class").Exists() || len(device.Get("components.label").Map()) != 1 {
			t.Errorf("without classes: %s", device)
		}
		if topic := device.Get("availability.0.topic").String(); !slices.Contains(h.on(topic), "online") {
			t.Errorf("not available on %s: %q", topic, h.on(topic))
		}
		h.send("factory/p7/vibration", `[0,0]`)
		eventually(t, "a class that is unknown", func() bool { return h.state("class") == "None" && h.state("confidence") == "None" })

		// A first label makes a class, and an option.
		h.send("factory/p7/vibration", `{"features":[1,0],"label":"so \"ok\""}`, `{"features":[2,0],"label":"worn"}`, `{"features":[3,0],"label":"worn"}`)
		eventually(t, "options", func() bool {
			device, _ := h.device()
			return len(device.Get("components.label.options").Array()) == 2
		})
		device, _ = h.device()
		checkDiscovery(t, device)
		if got := device.Get("components.class.options").Raw; got != `["so \"ok\"","worn"]` {
			t.Errorf("options %s", got)
		}
		h.send("factory/p7/vibration", `{"id":"x","features":[4,0]}`)
		eventually(t, "the states", func() bool {
			return h.state("class") == "worn" && h.state("confidence") == "60" && h.state("novelty") != "" && h.state("learning") == "ON"
		})
		eventually(t, "the attributes", func() bool {
			e := device.Get("components.class")
			all := h.on(e.Get("json_attributes_topic").String())
			return h.render(e.Get("json_attributes_template").String(), all[len(all)-1]) == `{"so \"ok\"":0.4,"worn":0.6}`
		})

		// A person says what the last sample was.
		h.choose("label", `so "ok"`)
		eventually(t, "the label to be learnt", func() bool { return d.Stats().Learned == 4 })
		equal(t, "learnt", d.model.learnt(), []string{`so "ok" 1`, "worn 2", "worn 3", `so "ok" 4`})

		// And that nothing is to be learnt for now.
		learning := device.Get("components.learning")
		h.send(learning.Get("command_topic").String(), "OFF")
		eventually(t, "learning to be off", func() bool { return h.state("learning") == "OFF" })
		h.send("factory/p7/vibration", `{"features":[5,0],"label":"worn"}`)
		eventually(t, "a label that is not learnt", func() bool { return d.Stats().Frozen == 1 && d.Stats().Unacked == 0 })

		// Home Assistant starts again, and so does the connection.
		announced := func() int { return len(h.on(discoveryTopic)) }
		for what, again := range map[string]func(){
			"Home Assistant's start": func() { h.send("homeassistant/status", "online") },
			"a new connection":       func() { d.cut() },
		} {
			before := announced()
			again()
			eventually(t, "an announcement after "+what, func() bool { return announced() > before })
		}
		if before := announced(); before > 0 {
			h.send("homeassistant/status", "offline")
		}

		// Switched off, the device goes, and learning is still off.
		if err := d.stop(); err != nil {
			t.Error(err)
		}
		off := startNode(t, b, journal, func(c *Config, m *ModelConfig) { m.Mark = journal.mark(m.Name) }).ready(t)
		eventually(t, "the device to go", func() bool { _, ok := h.device(); return !ok })
		if late := newHome(t, b); len(late.on(discoveryTopic)) > 0 {
			t.Errorf("the broker still has %q", late.on(discoveryTopic))
		}
		if off.Stats().Models["bearing"].Learning {
			t.Error("learning is on again after a restart")
		}
	})
}

// A node that Home Assistant was never told about says nothing there.
func TestWithoutHomeAssistant(t *testing.T) {
	withBrokers(t, func(t *testing.T, b *broker) {
		p := newProbe(t, b, "#")
		startNode(t, b, newFakeJournal(), nil).ready(t)
		eventually(t, "info", func() bool { return len(p.on("edge/n1/info")) > 0 && len(p.on("edge/n1/bearing/metrics")) > 0 })
		if got := p.on("homeassistant/#"); len(got) > 0 {
			t.Errorf("published %q", got)
		}
	})
}

// Names, ids and topics of several models are their own.
func TestDiscoveryOfSeveralModels(t *testing.T) {
	cfg, a := testConfig()
	cfg.HomeAssistant.Enabled = true
	b := a
	b.Name, b.Model = "motor", newFakeModel(2)
	r := newRig(t, newFakeJournal(), cfg, a, b)
	eventually(t, "the marks", func() bool {
		return r.journal.mark("bearing") == markAnnounced && r.journal.mark("motor") == markAnnounced
	})
	r.node.report.announce()
	seen := map[string]string{}
	for _, m := range r.published() {
		if !m.retained {
			t.Errorf("%s is not retained", m.topic)
		}
		d := gjson.ParseBytes(m.payload)
		checkDiscovery(t, d)
		if len(d.Get("components.learning").Map()) != 1 {
			t.Errorf("a switch for learning although requests are not heard: %s", d)
		}
		for _, e := range d.Get("components").Map() {
			id := e.Get("unique_id").String()
			if other := seen[id]; id != "" && other != "" {
				t.Errorf("%s is in %s and %s", id, other, m.topic)
			}
			seen[id] = m.topic
		}
	}
	if topics := slices.Compact(slices.Sorted(maps.Values(seen))); !slices.Equal(topics, []string{"homeassistant/device/edge_n1_bearing/config", "homeassistant/device/edge_n1_motor/config"}) {
		t.Errorf("announced on %q", topics)
	}
}

// A stream must not hear what the node says to Home Assistant.
func TestOwnDiscoveryIsNotInput(t *testing.T) {
	cfg, m := testConfig()
	cfg.HomeAssistant.Enabled = true
	s := cfg.Streams["vibration"]
	s.Topics, s.TopicTemplate = []string{"homeassistant/#"}, ""
	cfg.Streams["vibration"] = s
	_, err := NewNode(cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal()})
	if err == nil || !strings.Contains(err.Error(), "homeassistant/device/+/config") {
		t.Errorf("NewNode = %v, want a refusal of homeassistant/#", err)
	}
}
