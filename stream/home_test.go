package stream

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"edge/stream/topic"
)

const discoveryTopic = "homeassistant/device/edge_n1_bearing/config"

const maxText = 255 // characters of a text or state, at most

// home is a model of Home Assistant: its MQTT integration, which makes entities
// of announcements and states of messages, and the rows of its frontend, by
// which a person operates them. It follows what both do:
//
//   - A component stays when an announcement leaves it out. It is removed when
//     only its platform is left of it (home-assistant.io/integrations/mqtt).
//   - A select or text without a state topic is optimistic: it shows the last
//     choice (components/mqtt/select.py and text.py).
//   - A row sends no option or text that equals the state shown, no option that
//     is not in the list, and no text "unknown" or "unavailable"
//     (hui-select-entity-row.ts, hui-text-entity-row.ts). A button sends whenever
//     it is pressed (hui-button-entity-row.ts).
//   - A text that is shorter than min or longer than max, in characters, is
//     refused, and so is a state (components/text/__init__.py).
//   - An expired or offline entity is unavailable; its row is disabled.
type home struct {
	*probe
	entities map[string]gjson.Result // by component key
	shown    map[string]string       // states of optimistic entities
	device   gjson.Result            // the newest announcement
	read     int                     // announcements that were taken in
}

func newHome(t *testing.T, b *broker) *home {
	return &home{probe: newProbe(t, b, "homeassistant/device/+/config", "edge/#"), entities: map[string]gjson.Result{}, shown: map[string]string{}}
}

// discover reads the announcements since the last call; false: no device exists.
func (h *home) discover() bool {
	h.t.Helper()
	all := h.on(discoveryTopic)
	for ; h.read < len(all); h.read++ {
		payload := all[h.read]
		if payload == "" {
			clear(h.entities)
			h.device = gjson.Result{}
			continue
		}
		if !gjson.Valid(payload) {
			h.t.Fatalf("announced %s", payload)
		}
		h.device = gjson.Parse(payload)
		checkDiscovery(h.t, h.device)
		for key, e := range h.device.Get("components").Map() {
			if len(e.Map()) == 1 {
				delete(h.entities, key)
			} else {
				h.entities[key] = e
			}
		}
	}
	return h.device.Exists()
}

// entity returns the entity of a platform that is shown under a name.
func (h *home) entity(platform, name string) (key string, e gjson.Result, ok bool) {
	h.t.Helper()
	h.discover()
	for key, e := range h.entities {
		if e.Get("platform").String() == platform && e.Get("name").String() == name {
			return key, e, true
		}
	}
	return "", gjson.Result{}, false
}

// names are those of the entities of a platform.
func (h *home) names(platform string) (all []string) {
	h.discover()
	for _, e := range h.entities {
		if e.Get("platform").String() == platform {
			all = append(all, e.Get("name").String())
		}
	}
	slices.Sort(all)
	return all
}

// state returns the shown state of an entity: "unknown" before its first message.
func (h *home) state(key string) string {
	h.t.Helper()
	h.discover()
	all := h.on(h.entities[key].Get("state_topic").String())
	h.discover() // announcements come before the state
	e, ok := h.entities[key]
	if shown, ok := h.shown[key]; ok && !e.Get("state_topic").Exists() {
		return shown
	}
	if !ok || len(all) == 0 {
		return "unknown"
	}
	state := h.render(e.Get("value_template").String(), all[len(all)-1])
	if n := utf8.RuneCountInString(state); n > maxText || e.Get("platform").String() == "text" && n < int(e.Get("min").Int()) {
		h.t.Fatalf("%s has a state of %d characters: %s", key, n, e)
	}
	if options := e.Get("options"); options.Exists() && state != "None" && !hasOption(options, state) {
		h.t.Fatalf("%s has the state %q, which is none of its options: %s", key, state, e)
	}
	return state
}

func hasOption(options gjson.Result, option string) bool {
	return slices.ContainsFunc(options.Array(), func(o gjson.Result) bool { return o.String() == option })
}

// available reports whether an entity is available at a time after its last message.
func (h *home) available(key string, after time.Duration) bool {
	h.t.Helper()
	h.discover()
	e := h.entities[key]
	if expire := e.Get("expire_after"); expire.Exists() && after >= time.Duration(expire.Int())*time.Second {
		return false
	}
	all := h.on(h.device.Get("availability.0.topic").String())
	return len(all) > 0 && all[len(all)-1] == "online"
}

// command publishes the command of an entity.
func (h *home) command(key string, e gjson.Result, payload string) {
	h.t.Helper()
	if e.Get("qos").Int() != 1 {
		h.t.Errorf("%s sends with QoS %d: what is lost is not learnt", key, e.Get("qos").Int())
	}
	if !h.available(key, 0) {
		h.t.Fatalf("%s is unavailable: its row is disabled", key)
	}
	h.send(e.Get("command_topic").String(), payload)
}

// press presses the button with a name.
func (h *home) press(name string) {
	h.t.Helper()
	key, e, ok := h.entity("button", name)
	if !ok {
		h.t.Fatalf("there is no button %q, there are %q", name, h.names("button"))
	}
	h.command(key, e, e.Get("payload_press").String())
}

// enter types a text in the entry with a name; false: the frontend or Home
// Assistant sends nothing.
func (h *home) enter(name, text string) bool {
	h.t.Helper()
	key, e, ok := h.entity("text", name)
	if !ok {
		h.t.Fatalf("there is no entry %q, there are %q", name, h.names("text"))
	}
	n := int64(utf8.RuneCountInString(text))
	if text == h.state(key) || text == "unknown" || text == "unavailable" || n < e.Get("min").Int() || n > e.Get("max").Int() {
		return false
	}
	if !e.Get("state_topic").Exists() {
		h.shown[key] = text
	}
	h.command(key, e, h.fill(e.Get("command_template").String(), text))
	return true
}

// choose chooses an option of the list with a name; false: the frontend sends
// nothing.
func (h *home) choose(name, option string) bool {
	h.t.Helper()
	key, e, ok := h.entity("select", name)
	if !ok {
		h.t.Fatalf("there is no list %q, there are %q", name, h.names("select"))
	}
	if option == h.state(key) || !hasOption(e.Get("options"), option) {
		return false
	}
	if !e.Get("state_topic").Exists() {
		h.shown[key] = option
	}
	h.command(key, e, h.fill(e.Get("command_template").String(), option))
	return true
}

// label labels the last sample with its class, as a person would; false: Home
// Assistant sends nothing.
func (h *home) label(class string) bool {
	h.t.Helper()
	if _, _, ok := h.entity("select", "Label last sample"); ok {
		return h.choose("Label last sample", class)
	}
	h.press("Label " + class)
	return true
}

// toggle turns the switch with a name on or off.
func (h *home) toggle(name, to string) {
	h.t.Helper()
	key, e, ok := h.entity("switch", name)
	if !ok {
		h.t.Fatalf("there is no switch %q, there are %q", name, h.names("switch"))
	}
	h.command(key, e, to)
}

// fill renders a command template, which has one of two forms.
func (h *home) fill(template, value string) string {
	h.t.Helper()
	for expression, of := range map[string]string{"{{ value | to_json }}": value, "{{ value | trim | to_json }}": strings.TrimSpace(value)} {
		if before, after, ok := strings.Cut(template, expression); ok {
			quoted, err := json.Marshal(of)
			if err != nil {
				h.t.Fatal(err)
			}
			return before + string(quoted) + after
		}
	}
	h.t.Fatalf("a command template that this test cannot render: %s", template)
	return ""
}

// The templates that the node uses: Jinja with Home Assistant's additions.
var (
	plainTemplate   = regexp.MustCompile(`^{{ value_json\.([\w.]+) }}$`)
	jsonTemplate    = regexp.MustCompile(`^{{ value_json\.([\w.]+) \| to_json }}$`)
	percentTemplate = regexp.MustCompile(`^{{ none if value_json\.([\w.]+) is none else \((\(1 - )?value_json\.([\w.]+)(\))? \* 100\) \| round\(1\) }}$`)
	switchTemplate  = regexp.MustCompile(`^{{ 'ON' if value_json\.([\w.]+) else 'OFF' }}$`)
	driftTemplate   = "{{ 'ON' if value_json.drift == 'drift' else 'OFF' }}"
	emptyTemplate   = "{{ '' }}"
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
	onOff := func(on bool) string {
		if on {
			return "ON"
		}
		return "OFF"
	}
	switch template {
	case emptyTemplate:
		return ""
	case driftTemplate:
		return onOff(value("drift").String() == "drift")
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
		return onOff(value(m[1]).Bool())
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

// homeSchema are the keys that Home Assistant knows, of those that the node uses, and
// those that it requires: of the device discovery and of the platforms. At the
// root it accepts no others.
var homeSchema = map[string]struct{ required, optional []string }{
	"root":   {[]string{"device", "origin", "components"}, []string{"availability"}},
	"device": {[]string{"identifiers"}, []string{"name", "manufacturer", "model", "sw_version"}},
	"origin": {[]string{"name"}, []string{"sw_version"}},
	"sensor": {[]string{"platform", "unique_id", "name", "state_topic"}, []string{"value_template", "device_class", "options", "unit_of_measurement", "state_class",
		"expire_after", "entity_category", "json_attributes_topic", "json_attributes_template"}},
	"binary_sensor": {[]string{"platform", "unique_id", "name", "state_topic"}, []string{"value_template", "device_class", "expire_after", "entity_category"}},
	"select":        {[]string{"platform", "unique_id", "name", "command_topic", "options"}, []string{"command_template", "state_topic", "value_template", "qos"}},
	"switch":        {[]string{"platform", "unique_id", "name", "command_topic"}, []string{"state_topic", "value_template", "entity_category", "qos"}},
	"button":        {[]string{"platform", "unique_id", "name", "command_topic"}, []string{"command_template", "payload_press", "qos"}},
	"text":          {[]string{"platform", "unique_id", "name", "command_topic"}, []string{"command_template", "min", "max", "pattern", "mode", "state_topic", "value_template", "qos"}},
}

// checkDiscovery checks an announcement against the schema of Home Assistant.
func checkDiscovery(t *testing.T, d gjson.Result) {
	t.Helper()
	check := func(schema string, v gjson.Result) {
		known, ok := homeSchema[schema]
		if !ok {
			t.Errorf("there is no platform %q: %s", schema, v)
		}
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
	ids, names := map[string]bool{}, map[string]bool{}
	for key, e := range d.Get("components").Map() {
		if len(e.Map()) == 1 && e.Get("platform").Exists() {
			continue // removed
		}
		platform := e.Get("platform").String()
		check(platform, e)
		if id := e.Get("unique_id").String(); ids[id] {
			t.Errorf("unique_id %s twice", id)
		} else {
			ids[id] = true
		}
		if name := platform + " " + e.Get("name").String(); names[name] {
			t.Errorf("two are called %s", name)
		} else {
			names[name] = true
		}
		if options := e.Get("options"); options.Exists() && len(options.Array()) == 0 {
			t.Errorf("%s: an empty list of options", key)
		}
		if e.Get("device_class").String() == "enum" && (!e.Get("options").Exists() || e.Get("state_class").Exists() || e.Get("unit_of_measurement").Exists()) {
			t.Errorf("%s: an enum wants options and neither unit nor state_class: %s", key, e)
		}
		if platform == "text" && (e.Get("max").Int() > maxText || e.Get("min").Int() > e.Get("max").Int()) {
			t.Errorf("%s: want 0 <= min <= max <= 255: %s", key, e)
		}
		if q := e.Get("qos"); q.Exists() && (q.Int() < 0 || q.Int() > 2) {
			t.Errorf("%s: QoS %s", key, q)
		}
		for name, v := range e.Map() {
			if strings.HasSuffix(name, "_topic") && topic.Check(v.String()) != nil {
				t.Errorf("%s: %s %q is no topic", key, name, v)
			}
		}
	}
}
