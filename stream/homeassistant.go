package stream

import (
	"edge/stream/homeassistant"
	"edge/stream/mqtt"
)

// homeAssistantName is the name of the counters of its messages.
const homeAssistantName = "homeassistant"

// announce publishes the models for Home Assistant; if it is disabled, it removes the
// models that were announced before.
func (r *reporter) announce() {
	for _, m := range r.models {
		var payload []byte // empty: removes the device
		switch {
		case r.home.Enabled && r.home.Yields(m.Name):
			continue
		case r.home.Enabled:
			payload = r.encode(r.home.Discovery(homeassistant.Model{
				Name: m.Name, Latest: m.latestTopic, Metrics: m.metricsTopic, Label: m.labelTopic, Classes: m.Model.Snapshot().Classes(), Open: m.Classes.Open, Follows: m.Fleet.Follows(),
			}, r.build.Version))
		case m.Mark&markAnnounced == 0:
			continue
		}
		r.retain(r.home.Topic(m.Name), payload)
	}
}

// readAnnouncement reads an announcement on the topic of a model, which another node may have
// published.
func (r *reporter) readAnnouncement(m *modelState, msg *mqtt.Message) {
	if clash := r.home.Read(m.Name, msg.Payload, msg.Retained); clash != "" {
		r.log.Error("another node has a device of the same identifier in Home Assistant: rename the model or the node of one of them; if the other one is gone, remove its retained message", "detail", clash, "topic", shortTopic(msg))
		r.event(m.Name, "homeassistant_clash", clash)
	}
}
