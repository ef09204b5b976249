package stream

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

const (
	homeAssistantName = "homeassistant"  // what its messages are counted under
	announceWithin    = 5 * time.Second  // after Home Assistant has started, at random: it hears from everybody then
	maxAttributes     = 32               // classes up to which their probabilities are attributes
	labelSource       = "Home Assistant" // who gives the labels; no node can be called that
)

// homeAssistant makes each model a device of Home Assistant, by MQTT device
// discovery: one retained message says which entities it has and on which of
// the node's topics their states are.
//
// Reference: home-assistant.io/integrations/mqtt, device discovery payload;
// the strict schema is DEVICE_DISCOVERY_SCHEMA in its source.
type homeAssistant struct {
	HomeAssistant
	node, prefix string        // <base>/<node>/
	control      bool          // requests are heard
	metricsLast  time.Duration // how long scores are of the present

	delay func() time.Duration      // before Home Assistant is answered
	again atomic.Pointer[time.Time] // when to; nil for no need
}

func newHomeAssistant(cfg Config, prefix string) *homeAssistant {
	return &homeAssistant{
		HomeAssistant: cfg.HomeAssistant, node: cfg.Node, prefix: prefix, control: cfg.Control.Enabled, metricsLast: 3 * cfg.Metrics.Every,
		delay: func() time.Duration { return rand.N(announceWithin) },
	}
}

// status hears that Home Assistant has started: it may have forgotten all.
func (h *homeAssistant) status(msg *message) error {
	if string(msg.payload) == "online" {
		at := time.Now().Add(h.delay())
		h.again.Store(&at)
	}
	return nil
}

// due reports, once, that Home Assistant waits for an announcement.
func (h *homeAssistant) due(now time.Time) bool {
	at := h.again.Load()
	return at != nil && !now.Before(*at) && h.again.CompareAndSwap(at, nil)
}

// id identifies a model in Home Assistant.
func (h *homeAssistant) id(model string) string { return "edge_" + h.node + "_" + model }

// topic is where a model is announced.
func (h *homeAssistant) topic(model string) string {
	return h.DiscoveryPrefix + "/device/" + h.id(model) + "/config"
}

// announce tells Home Assistant about the models, or, where it was told once
// and is to be told no more, that they are gone.
func (r *reporter) announce() {
	for _, m := range r.models {
		var payload []byte // empty: removes the device
		switch {
		case r.home.Enabled:
			payload = r.encode(r.home.discovery(m, r.build.Version))
		case m.Mark&markAnnounced == 0:
			continue
		}
		r.outbox.push(&outgoing{topic: r.home.topic(m.Name), payload: payload, qos: r.qos, retained: true})
	}
}

// discovery describes a model. No topic stands at the root: every entity would
// inherit it.
func (h *homeAssistant) discovery(m *modelState, version string) map[string]any {
	classes := m.Model.Posterior().Classes()
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
	if len(classes) > 0 { // an empty list of options is an error there
		class["device_class"], class["options"] = "enum", classes
	}
	if len(classes) <= maxAttributes {
		class["json_attributes_topic"], class["json_attributes_template"] = m.latestTopic, "{{ value_json.probs | to_json }}"
	}
	accuracy := percent(m.metricsTopic, "value_json.window.error", "(1 - value_json.window.error)", h.metricsLast)
	accuracy["entity_category"] = "diagnostic"

	// A component of which only the platform is left is removed.
	label, learning := map[string]any{"platform": "select"}, map[string]any{"platform": "switch"}
	if len(classes) > 0 {
		label = entity("select", "label", "Label last sample", map[string]any{
			"options": classes, "command_topic": m.labelTopic, "qos": 1,
			"command_template": `{"id":"` + lastID + `","label":{{ value | to_json }},"source":"` + labelSource + `"}`,
		})
	}
	if h.control {
		learning = entity("switch", "learning", "Learning", map[string]any{
			"command_topic": h.prefix + "request/learning/" + m.Name, "qos": 1, "entity_category": "config",
			"state_topic": m.metricsTopic, "value_template": "{{ 'ON' if value_json.learning else 'OFF' }}",
		})
	}
	return map[string]any{
		"device": map[string]any{
			"identifiers": []string{id}, "name": m.Name + " (" + h.node + ")", "manufacturer": "edge",
			"model": "sparse Gaussian-process classifier", "sw_version": version,
		},
		"origin":       map[string]any{"name": "edge", "sw_version": version},
		"availability": []map[string]any{{"topic": h.prefix + "state"}}, // online and offline are the defaults
		"components": map[string]any{
			"class":      entity("sensor", "class", "Class", class),
			"confidence": entity("sensor", "confidence", "Confidence", percent(m.latestTopic, "value_json.confidence", "value_json.confidence", h.ExpireAfter)),
			"novelty":    entity("sensor", "novelty", "Novelty", percent(m.latestTopic, "value_json.novelty", "value_json.novelty", h.ExpireAfter)),
			"accuracy":   entity("sensor", "accuracy", "Accuracy (window)", accuracy),
			"drift": entity("binary_sensor", "drift", "Drift", map[string]any{
				"state_topic": m.latestTopic, "device_class": "problem",
				"value_template": "{{ 'ON' if value_json.drift == 'drift' else 'OFF' }}",
			}),
			"label":    label,
			"learning": learning,
		},
	}
}
