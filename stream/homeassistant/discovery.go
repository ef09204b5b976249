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
	Follows bool // it takes no labels
}

// object is an object of JSON.
type object map[string]any

// last adds the time for which a state is valid, in seconds, if it ends.
func (o object) last(t time.Duration) object {
	if t > 0 {
		o["expire_after"] = int((t + time.Second - 1) / time.Second)
	}
	return o
}

// components are the entities of a device, by their keys.
type components struct {
	id  string // of the device
	all object
}

// add adds an entity. It is not inlined: it assigns four keys of maps, in eight places.
//
//go:noinline
func (c *components) add(platform, key, name string, of object) {
	of["platform"], of["unique_id"], of["name"] = platform, c.id+"_"+key, name
	c.all[key] = of
}

// remove lets Home Assistant remove a component: it has only a platform.
func (c *components) remove(platform, key string) { c.all[key] = object{"platform": platform} }

// percent describes an entity whose value is a fraction.
func percent(topic, key, fraction string) object {
	return object{
		"state_topic": topic, "unit_of_measurement": "%", "state_class": "measurement",
		"value_template": "{{ none if " + key + " is none else (" + fraction + " * 100) | round(1) }}",
	}
}

// Discovery describes a model for Home Assistant, to be published as JSON. version is that of the
// program. No topic is at the root: every entity would inherit it.
func (d *Devices) Discovery(m Model, version string) map[string]any {
	classes, id := m.Classes, d.id(m.Name)
	c := &components{id, object{}}
	class := object{"state_topic": m.Latest, "value_template": "{{ value_json.class }}"}.last(d.ExpireAfter)
	if len(classes) > 0 { // Home Assistant refuses an empty list of options
		class["device_class"], class["options"] = "enum", classes
	}
	if len(classes) <= maxAttributes {
		class["json_attributes_topic"], class["json_attributes_template"] = m.Latest, "{{ value_json.probs | to_json }}"
	}
	c.add("sensor", "class", "Class", class)
	c.add("sensor", "confidence", "Confidence", percent(m.Latest, "value_json.confidence", "value_json.confidence").last(d.ExpireAfter))
	c.add("sensor", "novelty", "Novelty", percent(m.Latest, "value_json.novelty", "value_json.novelty").last(d.ExpireAfter))
	accuracy := percent(m.Metrics, "value_json.window.error", "(1 - value_json.window.error)").last(d.MetricsLast)
	accuracy["entity_category"] = "diagnostic"
	c.add("sensor", "accuracy", "Accuracy (window)", accuracy)
	c.add("binary_sensor", "drift", "Drift", object{
		"state_topic": m.Latest, "device_class": "problem",
		"value_template": "{{ 'ON' if value_json.drift == 'drift' else 'OFF' }}",
	})
	c.remove("select", "label") // of earlier versions
	if c.remove("switch", "learning"); d.Control && !m.Follows {
		c.add("switch", "learning", "Learning", object{
			"command_topic": d.Prefix + "request/learning/" + m.Name, "qos": 1, "entity_category": "config",
			"state_topic": m.Metrics, "value_template": "{{ 'ON' if value_json.learning else 'OFF' }}",
		})
	}
	d.labels(m, c)
	return object{
		"device": object{
			"identifiers": []string{id}, "name": d.name(m.Name), "manufacturer": "edge",
			"model": "sparse Gaussian-process classifier", "sw_version": version,
		},
		"origin":       object{"name": "edge", "sw_version": version},
		"availability": []object{{"topic": d.Prefix + "state"}}, // online and offline are the default payloads
		"components":   c.all,
	}
}

// labels adds the components by which a person labels the model's last sample: a button
// for each class, and a text entry for any class. A select is not suitable: the frontend
// does not send a choice that equals the previous one, and consecutive samples usually
// have the same class.
func (d *Devices) labels(m Model, c *components) {
	var keys []string
	if m.Follows {
		m.Classes, m.Open = nil, false
	}
	for _, class := range m.Classes[:min(len(m.Classes), maxButtons)] {
		key := buttonOf(class)
		keys = append(keys, key)
		c.add("button", key, "Label "+class, object{"command_topic": m.Label, "qos": 1, "payload_press": labelCommand(class)})
	}
	for _, key := range d.announced(m.Name, keys) {
		c.remove("button", key)
	}
	if c.remove("text", "label_as"); m.Open || len(m.Classes) > maxButtons {
		// The entry shows no text: the frontend does not send a text that equals the shown one.
		c.add("text", "label_as", "Label last sample as", object{
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
