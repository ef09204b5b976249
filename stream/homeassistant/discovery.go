package homeassistant

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"time"

	"edge/stream/codec"
)

const (
	maxAttributes  = 32               // largest number of classes whose probabilities are attributes
	labelSource    = "Home Assistant" // author of the labels; not a valid name of a node
	maxButtons     = 32               // classes with a button; the text entry accepts every class
	maxGoneButtons = 256              // removed buttons that are announced
	maxText        = 255              // largest text in Home Assistant, in characters
	buttonKey      = "button_"        // prefix of the component keys of the buttons
)

// Model is a model to be announced.
type Model struct {
	Name    string
	Latest  string // topic of the latest prediction
	Metrics string // topic of the scores
	Label   string // topic of labels
	Classes []string
	Open    bool // labels may be new classes
}

// Discovery describes a model for Home Assistant, to be published as JSON. version is that of the
// program. No topic is at the root: every entity would inherit it.
func (d *Devices) Discovery(m Model, version string) map[string]any {
	classes, id := m.Classes, d.id(m.Name)
	entity := func(platform, key, name string, more map[string]any) map[string]any {
		more["platform"], more["unique_id"], more["name"] = platform, id+"_"+key, name
		return more
	}
	seconds := func(t time.Duration) int { return int((t + time.Second - 1) / time.Second) }
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
	class := map[string]any{"state_topic": m.Latest, "value_template": "{{ value_json.class }}"}
	if d.ExpireAfter > 0 {
		class["expire_after"] = seconds(d.ExpireAfter)
	}
	if len(classes) > 0 { // Home Assistant refuses an empty list of options
		class["device_class"], class["options"] = "enum", classes
	}
	if len(classes) <= maxAttributes {
		class["json_attributes_topic"], class["json_attributes_template"] = m.Latest, "{{ value_json.probs | to_json }}"
	}
	accuracy := percent(m.Metrics, "value_json.window.error", "(1 - value_json.window.error)", d.MetricsLast)
	accuracy["entity_category"] = "diagnostic"

	components := map[string]any{
		"class":      entity("sensor", "class", "Class", class),
		"confidence": entity("sensor", "confidence", "Confidence", percent(m.Latest, "value_json.confidence", "value_json.confidence", d.ExpireAfter)),
		"novelty":    entity("sensor", "novelty", "Novelty", percent(m.Latest, "value_json.novelty", "value_json.novelty", d.ExpireAfter)),
		"accuracy":   entity("sensor", "accuracy", "Accuracy (window)", accuracy),
		"drift": entity("binary_sensor", "drift", "Drift", map[string]any{
			"state_topic": m.Latest, "device_class": "problem",
			"value_template": "{{ 'ON' if value_json.drift == 'drift' else 'OFF' }}",
		}),
		"learning": removed("switch"),
		"label":    removed("select"), // of earlier versions
	}
	if d.Control {
		components["learning"] = entity("switch", "learning", "Learning", map[string]any{
			"command_topic": d.Prefix + "request/learning/" + m.Name, "qos": 1, "entity_category": "config",
			"state_topic": m.Metrics, "value_template": "{{ 'ON' if value_json.learning else 'OFF' }}",
		})
	}
	d.labels(m, components, entity)
	return map[string]any{
		"device": map[string]any{
			"identifiers": []string{id}, "name": d.name(m.Name), "manufacturer": "edge",
			"model": "sparse Gaussian-process classifier", "sw_version": version,
		},
		"origin":       map[string]any{"name": "edge", "sw_version": version},
		"availability": []map[string]any{{"topic": d.Prefix + "state"}}, // online and offline are the default payloads
		"components":   components,
	}
}

// removed describes a component that Home Assistant removes: it has only a platform.
func removed(platform string) map[string]any { return map[string]any{"platform": platform} }

// labels adds the components by which a person labels the model's last sample: a button
// for each class, and a text entry for any class. A select is not suitable: the frontend
// does not send a choice that equals the previous one, and consecutive samples usually
// have the same class.
func (d *Devices) labels(m Model, components map[string]any, entity func(platform, key, name string, more map[string]any) map[string]any) {
	var keys []string
	for _, class := range m.Classes[:min(len(m.Classes), maxButtons)] {
		key := buttonOf(class)
		keys = append(keys, key)
		components[key] = entity("button", key, "Label "+class, map[string]any{
			"command_topic": m.Label, "qos": 1, "payload_press": labelCommand(class),
		})
	}
	for _, key := range d.announced(m.Name, keys) {
		components[key] = removed("button")
	}
	components["label_as"] = removed("text")
	if m.Open || len(m.Classes) > maxButtons {
		// The entry shows no text: the frontend does not send a text that equals the shown one.
		components["label_as"] = entity("text", "label_as", "Label last sample as", map[string]any{
			"command_topic": m.Label, "qos": 1, "min": 0, "max": maxText,
			"command_template": `{"id":"` + codec.LastID + `","label":{{ value | trim | to_json }},"source":"` + labelSource + `"}`,
			"state_topic":      m.Metrics, "value_template": "{{ '' }}",
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
	text, err := json.Marshal(struct {
		ID     string `json:"id"`
		Label  string `json:"label"`
		Source string `json:"source"`
	}{codec.LastID, class, labelSource})
	if err != nil { // texts can always be encoded
		panic(err)
	}
	return string(text)
}
