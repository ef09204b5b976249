package homeassistant

import (
	"fmt"

	"github.com/tidwall/gjson"
)

const maxDeviceName = 256 // bytes of the name of another node's device that are kept

// name returns the name of a model's device. Unlike id, it is that of no other node and
// model: model b_c of node a has the identifier of model c of node a_b.
func (h *Devices) name(model string) string { return model + " (" + h.Node + ")" }

// Read takes an announcement on the topic of a model. If it is of another node, the model whose
// name is the later one in order is not announced until the broker keeps that announcement no
// longer: Home Assistant would give the entities of both to the latest. clash says so, once.
func (h *Devices) Read(model string, payload []byte, retained bool) (clash string) {
	name := gjson.GetBytes(payload, "device.name").Str
	switch other := name[:min(len(name), maxDeviceName)]; {
	case len(payload) == 0:
		h.leave(model)
	case other == "" || other == h.name(model):
		if retained { // else this node has published it
			h.readOwn(model, payload)
		}
	case h.meet(model, other):
		clash = fmt.Sprintf("%s and %s have the same identifier, %s", h.name(model), other, h.id(model))
		if h.Yields(model) {
			clash += "; this one is not announced"
		}
	}
	return clash
}

// meet notes the announcement of another node's device with the identifier of a model, and
// reports whether it is news.
func (h *Devices) meet(model, other string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.others[model] == other
	h.others[model] = other
	if !h.precedes(other, model) {
		h.AnnounceIn(0) // over that one
	}
	return !known
}

// leave notes that the broker keeps no announcement any more.
func (h *Devices) leave(model string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.others[model] != "" {
		delete(h.others, model)
		h.AnnounceIn(0)
	}
}

// Yields reports whether a model is not announced.
func (h *Devices) Yields(model string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.others[model] != "" && h.precedes(h.others[model], model)
}

// precedes reports whether a device keeps an identifier rather than a model of this node.
func (h *Devices) precedes(other, model string) bool { return other < h.name(model) }
