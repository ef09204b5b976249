package stream

import (
	"fmt"

	"github.com/tidwall/gjson"

	"edge/stream/mqtt"
)

const maxDeviceName = 256 // bytes of the name of another node's device that are kept

// name returns the name of a model's device. Unlike id, it is that of no other node and
// model: model b_c of node a has the identifier of model c of node a_b.
func (h *homeAssistant) name(model string) string { return model + " (" + h.node + ")" }

// readAnnouncement reads an announcement on the topic of a model. If it is of another node,
// the model whose name is the later one in order is not announced until the broker keeps
// that announcement no longer: Home Assistant would give the entities of both to the latest.
func (r *reporter) readAnnouncement(m *modelState, msg *mqtt.Message) error {
	name := gjson.GetBytes(msg.Payload, "device.name").Str
	switch other := name[:min(len(name), maxDeviceName)]; {
	case len(msg.Payload) == 0:
		r.home.leave(m.Name)
	case other == "" || other == r.home.name(m.Name):
		return r.home.readAnnouncement(m, msg)
	case r.home.meet(m.Name, other):
		detail := fmt.Sprintf("%s and %s have the same identifier, %s", r.home.name(m.Name), other, r.home.id(m.Name))
		if r.home.yields(m.Name) {
			detail += "; this one is not announced"
		}
		r.log.Error("another node has a device of the same identifier in Home Assistant: rename the model or the node of one of them; if the other one is gone, remove its retained message", "detail", detail, "topic", shortTopic(msg))
		r.event(m.Name, "homeassistant_clash", detail)
	}
	return nil
}

// meet notes the announcement of another node's device with the identifier of a model, and
// reports whether it is news.
func (h *homeAssistant) meet(model, other string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.others[model] == other
	h.others[model] = other
	if !h.precedes(other, model) {
		h.announceIn(0) // over that one
	}
	return !known
}

// leave notes that the broker keeps no announcement any more.
func (h *homeAssistant) leave(model string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.others[model] != "" {
		delete(h.others, model)
		h.announceIn(0)
	}
}

// yields reports whether a model is not announced.
func (h *homeAssistant) yields(model string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.others[model] != "" && h.precedes(h.others[model], model)
}

// precedes reports whether a device keeps an identifier rather than a model of this node.
func (h *homeAssistant) precedes(other, model string) bool { return other < h.name(model) }
