package homeassistant

import (
	"fmt"

	"github.com/tidwall/gjson"
)

const maxDeviceName = 256 // bytes of the name of another node's device that are kept

// name returns the name of a model's device. Unlike id, it is that of no other node and
// model: model b_c of node a has the identifier of model c of node a_b.
func (d *Devices) name(model string) string { return model + " (" + d.Node + ")" }

// Read takes an announcement on the topic of a model. If it is of another node, the model whose
// name is the later one in order is not announced until the broker keeps that announcement no
// longer: Home Assistant would give the entities of both to the latest. clash says so, once.
func (d *Devices) Read(model string, payload []byte, retained bool) (clash string) {
	name := gjson.GetBytes(payload, "device.name").Str
	switch other := name[:min(len(name), maxDeviceName)]; {
	case len(payload) == 0:
		d.leave(model)
	case other == "" || other == d.name(model):
		if retained { // else this node has published it
			d.readOwn(model, payload)
		}
	case d.meet(model, other):
		clash = fmt.Sprintf("%s and %s have the same identifier, %s", d.name(model), other, d.id(model))
		if d.Yields(model) {
			clash += "; this one is not announced"
		}
	}
	return clash
}

// meet notes the announcement of another node's device with the identifier of a model, and
// reports whether it is news.
func (d *Devices) meet(model, other string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.others[model] == other
	d.others[model] = other
	if !d.precedes(other, model) {
		d.AnnounceIn(0) // over that one
	}
	return !known
}

// leave notes that the broker keeps no announcement any more.
func (d *Devices) leave(model string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.others[model] != "" {
		delete(d.others, model)
		d.AnnounceIn(0)
	}
}

// Yields reports whether a model is not announced.
func (d *Devices) Yields(model string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.others[model] != "" && d.precedes(d.others[model], model)
}

// precedes reports whether a device keeps an identifier rather than a model of this node.
func (d *Devices) precedes(other, model string) bool { return other < d.name(model) }
