package stream

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/gjson"

	"edge/stream/codec"
	"edge/stream/mqtt"
)

const (
	homeAssistantName = "homeassistant"  // name of their counters
	announceWithin    = 5 * time.Second  // random delay after the start of Home Assistant, when all devices announce themselves
	maxAttributes     = 32               // largest number of classes whose probabilities are attributes
	labelSource       = "Home Assistant" // author of the labels; not a valid name of a node
	maxButtons        = 32               // classes with a button; the text entry accepts every class
	maxGoneButtons    = 256              // removed buttons that are announced
	maxText           = 255              // largest text in Home Assistant, in characters
	buttonKey         = "button_"        // prefix of the component keys of the buttons
)

// homeAssistant makes each model a device of Home Assistant by MQTT device discovery:
// one retained message lists its entities and the topics of their states.
//
// Reference: home-assistant.io/integrations/mqtt, device discovery payload;
// the strict schema is DEVICE_DISCOVERY_SCHEMA in its source.
type homeAssistant struct {
	HomeAssistant
	node, prefix string        // <base>/<node>/
	control      bool          // requests are carried out
	metricsLast  time.Duration // how long scores are valid

	delay      func() time.Duration      // of an announcement after the start of Home Assistant
	announceAt atomic.Pointer[time.Time] // time of the next announcement; nil: none is due
	changed    chan<- struct{}           // receives an element when announceAt was set; capacity 1

	mu      sync.Mutex
	buttons map[string][]string // keys of the announced buttons, by model, oldest first
	others  map[string]string   // names of other nodes' devices with the same identifier, by model
}

func newHomeAssistant(cfg Config, prefix string) *homeAssistant {
	return &homeAssistant{
		HomeAssistant: cfg.HomeAssistant, node: cfg.Node, prefix: prefix, control: cfg.Control.Enabled, metricsLast: 3 * cfg.Metrics.Every,
		delay: func() time.Duration { return rand.N(announceWithin) }, buttons: map[string][]string{}, others: map[string]string{},
	}
}

// status handles the start of Home Assistant, which may have lost all devices.
func (h *homeAssistant) status(msg *mqtt.Message) error {
	if string(msg.Payload) == "online" {
		h.announceIn(h.delay())
	}
	return nil
}

// readAnnouncement reads the announcement that the broker has kept from an earlier
// connection. Home Assistant may still show its buttons: buttons of classes that were
// removed since are removed by another announcement.
func (h *homeAssistant) readAnnouncement(m *modelState, msg *mqtt.Message) error {
	if !msg.Retained {
		return nil // published by this node
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var unknown []string
	gjson.GetBytes(msg.Payload, "components").ForEach(func(key, component gjson.Result) bool {
		if strings.HasPrefix(key.Str, buttonKey) && component.Get("command_topic").Exists() && !slices.Contains(h.buttons[m.Name], key.Str) {
			unknown = append(unknown, key.Str)
		}
		return len(unknown) < maxButtons
	})
	if len(unknown) > 0 {
		h.buttons[m.Name] = append(unknown, h.buttons[m.Name]...)
		h.announceIn(0)
	}
	return nil
}

// announceIn makes an announcement due after a time.
func (h *homeAssistant) announceIn(d time.Duration) {
	at := time.Now().Add(d)
	h.announceAt.Store(&at)
	wake(h.changed)
}

// announced stores the keys of a model's buttons, and returns the keys of removed
// buttons.
func (h *homeAssistant) announced(model string, now []string) (gone []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.buttons[model]
	for _, key := range now {
		if !slices.Contains(all, key) {
			all = append(all, key)
		}
	}
	for _, key := range all {
		if !slices.Contains(now, key) {
			gone = append(gone, key)
		}
	}
	if excess := len(gone) - maxGoneButtons; excess > 0 {
		forgotten := gone[:excess]
		gone = gone[excess:]
		all = slices.DeleteFunc(all, func(key string) bool { return slices.Contains(forgotten, key) })
	}
	h.buttons[model] = all
	return gone
}

// due reports, once, that an announcement is due.
func (h *homeAssistant) due(now time.Time) bool {
	at := h.announceAt.Load()
	return at != nil && !now.Before(*at) && h.announceAt.CompareAndSwap(at, nil)
}

// id returns the identifier of a model in Home Assistant.
func (h *homeAssistant) id(model string) string { return deviceID(h.node, model) }

// topic returns the topic of the announcement of a model.
func (h *homeAssistant) topic(model string) string { return h.announcement(h.node, model) }

func deviceID(node, model string) string { return "edge_" + node + "_" + model }

// announcement returns the topic on which a node announces a model.
func (h HomeAssistant) announcement(node, model string) string {
	return h.DiscoveryPrefix + "/device/" + deviceID(node, model) + "/config"
}

// announce publishes the models for Home Assistant; if it is disabled, it removes the
// models that were announced before.
func (r *reporter) announce() {
	for _, m := range r.models {
		var payload []byte // empty: removes the device
		switch {
		case r.home.Enabled && r.home.yields(m.Name):
			continue
		case r.home.Enabled:
			payload = r.encode(r.home.discovery(m, r.build.Version))
		case m.Mark&markAnnounced == 0:
			continue
		}
		r.retain(r.home.topic(m.Name), payload)
	}
}

// discovery describes a model. No topic is at the root: every entity would inherit it.
func (h *homeAssistant) discovery(m *modelState, version string) map[string]any {
	classes := m.Model.Snapshot().Classes()
	id := h.id(m.Name)
	entity := func(platform, key, name string, more map[string]any) map[string]any {
		more["platform"], more["unique_id"], more["name"] = platform, id+"_"+key, name
		return more
	}
	seconds := func(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
	percent := func(topic, key, fraction string, last time.Duration) map[string]any {
		of := map[string]any{
			"state_topic": topic, "unit_of_measurement": "%", "state_class": "measurement",
			"value_template": fmt.Sprintf("{{ none if %s is none else (%s * 100) | round(1) }}", key, fraction),
		}
		if last > 0 {
			of["expire_after"] = seconds(last)
		}
		return of
	}
	class := map[string]any{"state_topic": m.latestTopic, "value_template": "{{ value_json.class }}"}
	if h.ExpireAfter > 0 {
		class["expire_after"] = seconds(h.ExpireAfter)
	}
	if len(classes) > 0 { // Home Assistant refuses an empty list of options
		class["device_class"], class["options"] = "enum", classes
	}
	if len(classes) <= maxAttributes {
		class["json_attributes_topic"], class["json_attributes_template"] = m.latestTopic, "{{ value_json.probs | to_json }}"
	}
	accuracy := percent(m.metricsTopic, "value_json.window.error", "(1 - value_json.window.error)", h.metricsLast)
	accuracy["entity_category"] = "diagnostic"

	components := map[string]any{
		"class":      entity("sensor", "class", "Class", class),
		"confidence": entity("sensor", "confidence", "Confidence", percent(m.latestTopic, "value_json.confidence", "value_json.confidence", h.ExpireAfter)),
		"novelty":    entity("sensor", "novelty", "Novelty", percent(m.latestTopic, "value_json.novelty", "value_json.novelty", h.ExpireAfter)),
		"accuracy":   entity("sensor", "accuracy", "Accuracy (window)", accuracy),
		"drift": entity("binary_sensor", "drift", "Drift", map[string]any{
			"state_topic": m.latestTopic, "device_class": "problem",
			"value_template": "{{ 'ON' if value_json.drift == 'drift' else 'OFF' }}",
		}),
		"learning": removed("switch"),
		"label":    removed("select"), // of earlier versions
	}
	if h.control {
		components["learning"] = entity("switch", "learning", "Learning", map[string]any{
			"command_topic": h.prefix + "request/learning/" + m.Name, "qos": 1, "entity_category": "config",
			"state_topic": m.metricsTopic, "value_template": "{{ 'ON' if value_json.learning else 'OFF' }}",
		})
	}
	h.labels(m, classes, components, entity)
	return map[string]any{
		"device": map[string]any{
			"identifiers": []string{id}, "name": h.name(m.Name), "manufacturer": "edge",
			"model": "sparse Gaussian-process classifier", "sw_version": version,
		},
		"origin":       map[string]any{"name": "edge", "sw_version": version},
		"availability": []map[string]any{{"topic": h.prefix + "state"}}, // online and offline are the default payloads
		"components":   components,
	}
}

// removed describes a component that Home Assistant removes: it has only a platform.
func removed(platform string) map[string]any { return map[string]any{"platform": platform} }

// labels adds the components by which a person labels the model's last sample: a button
// for each class, and a text entry for any class. A select is not suitable: the frontend
// does not send a choice that equals the previous one, and consecutive samples usually
// have the same class.
func (h *homeAssistant) labels(m *modelState, classes []string, components map[string]any, entity func(platform, key, name string, more map[string]any) map[string]any) {
	var keys []string
	for _, class := range classes[:min(len(classes), maxButtons)] {
		key := buttonOf(class)
		keys = append(keys, key)
		components[key] = entity("button", key, "Label "+class, map[string]any{
			"command_topic": m.labelTopic, "qos": 1, "payload_press": labelCommand(class),
		})
	}
	for _, key := range h.announced(m.Name, keys) {
		components[key] = removed("button")
	}
	components["label_as"] = removed("text")
	if m.Classes.Open || len(classes) > maxButtons {
		// The entry shows no text: the frontend does not send a text that equals the shown one.
		components["label_as"] = entity("text", "label_as", "Label last sample as", map[string]any{
			"command_topic": m.labelTopic, "qos": 1, "min": 0, "max": maxText,
			"command_template": `{"id":"` + codec.LastID + `","label":{{ value | trim | to_json }},"source":"` + labelSource + `"}`,
			"state_topic":      m.metricsTopic, "value_template": "{{ '' }}",
		})
	}
}

// buttonOf returns the component key of a class's button. It depends on the name alone,
// so that a button never changes its class.
func buttonOf(class string) string {
	hash := fnv.New64a()
	hash.Write([]byte(class))
	return fmt.Sprintf("%s%016x", buttonKey, hash.Sum64())
}

// labelCommand returns the payload of a button: a label for the model's last sample.
func labelCommand(class string) string {
	text, err := json.Marshal(LateLabel{ID: codec.LastID, Label: class, Source: labelSource})
	if err != nil { // texts can always be encoded
		panic(err)
	}
	return string(text)
}
