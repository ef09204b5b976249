package stream

import (
	"fmt"
	"slices"
	"strings"

	"edge/stream/homeassistant"
	"edge/stream/membership"
)

// formerParts bounds the parts of a contribution that are removed without knowing how many
// there are.
const formerParts = 16

// leaveFormerFleets looks in the filters of the latest run for changes that a reload reports: a
// fleet in which no model is any more, of which the own contribution is removed from the broker;
// one in which a model was not; and another name of this node. What the broker keeps of that name
// may be of another device by now, as where a card was copied, so that a person has to decide.
func (n *Node) leaveFormerFleets(known []string) {
	var names, concepts []string
	for _, filter := range known {
		rest, own := strings.CutPrefix(filter, n.cfg.MQTT.BaseTopic+"/")
		switch levels := strings.Split(rest, "/"); {
		case !own:
		case len(levels) == 3 && levels[0] == membership.Level && levels[2] == "+":
			concepts = append(concepts, levels[1])
			if !slices.Contains(n.client.Filters, filter) {
				n.leaveFormerFleet(membership.NewTopics(n.cfg.MQTT.BaseTopic, levels[1]), known)
			}
		case len(levels) != 4 || levels[2] != "label" || levels[3] != "#" || slices.Contains(n.client.Filters, filter):
		case levels[0] == n.cfg.Node:
			n.leaveModel(levels[1], known)
		case !slices.Contains(names, levels[0]):
			names = append(names, levels[0])
		}
	}
	if len(known) > 0 {
		for _, m := range n.fleets.members {
			if !slices.Contains(known, m.Topics().Filter()) {
				m.Moved()
			}
		}
	}
	for _, name := range names {
		n.renamed(name, concepts, known)
	}
}

// leaveModel removes from the broker what it keeps of a model that the configuration has no more.
func (n *Node) leaveModel(name string, known []string) {
	n.report.retain(n.report.prefix+name+"/latest", nil)
	n.report.retain(n.report.prefix+name+"/metrics", nil)
	if device := n.report.home.Topic(name); slices.Contains(known, device) {
		n.report.retain(device, nil)
	}
	n.log.Info("the configuration has a model no more: what the broker keeps of it is removed", "model", name)
}

// renamed tells that this node had another name, under which the broker keeps what it has published;
// in a fleet that counts beside what it publishes now.
func (n *Node) renamed(former string, concepts, known []string) {
	base := n.cfg.MQTT.BaseTopic
	topics := " -t '" + base + "/" + former + "/#'"
	for _, concept := range concepts {
		topics += " -t '" + membership.NewTopics(base, concept).Contribution(former) + "/#'"
	}
	for _, filter := range known {
		if strings.Contains(filter, "/device/"+homeassistant.DeviceID(former, "")) {
			topics += " -t '" + filter + "'"
		}
	}
	detail := fmt.Sprintf("this node was %s before, and the broker keeps what it has published so, which counts in a fleet: unless another device has that name now, mosquitto_sub%s --retained-only --remove-retained -W 3 removes it", former, topics)
	n.log.Warn("the node has another name", "detail", detail)
	n.report.event("", "node_renamed", detail)
}

// leaveFormerFleet removes the own contribution of a fleet from the broker.
func (n *Node) leaveFormerFleet(topics membership.Topics, known []string) {
	n.log.Info("fleet: no model is in it any more, the own contribution is removed", "topic", topics.Contribution(n.cfg.Node))
	n.report.retain(topics.Contribution(n.cfg.Node), nil)
	if !slices.Contains(known, topics.Parts()) {
		return
	}
	for i := range formerParts {
		n.report.retain(topics.Part(n.cfg.Node, i), nil)
	}
}
