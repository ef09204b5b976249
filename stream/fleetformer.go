package stream

import (
	"fmt"
	"slices"
	"strings"

	"edge/stream/homeassistant"
	"edge/stream/membership"
	"edge/stream/mqtt"
)

// formerParts bounds the parts of a contribution that are removed without knowing how many
// there are.
const formerParts = 16

// leaveFormerFleets looks in the filters of the latest run for changes that a reload reports: a
// fleet in which no model is any more, of which the own contribution is removed from the broker;
// one in which a model was not; and another name or base topic of this node. What the broker keeps
// there may be of another device by now, as where a card was copied, so that a person has to decide.
func (n *Node) leaveFormerFleets(known []string) {
	var names []string
	for _, filter := range known {
		rest, own := strings.CutPrefix(filter, n.cfg.MQTT.BaseTopic+"/")
		switch levels := strings.Split(rest, "/"); {
		case !own:
		case len(levels) == 3 && levels[0] == membership.Level && levels[2] == "+":
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
		n.renamed(n.cfg.MQTT.BaseTopic, name, known)
	}
	if base, name := n.formerBase(known); base != "" {
		n.renamed(base, name, known)
	}
}

// formerBase returns base topic and name of this node in its latest run, if no filter of that has
// the present base topic; otherwise "".
func (n *Node) formerBase(known []string) (base, name string) {
	for _, filter := range known {
		levels := strings.Split(filter, "/")
		if len(levels) < 5 || !strings.HasSuffix(filter, "/label/#") {
			continue
		}
		at := len(levels) - 4 // of the name
		switch of := strings.Join(levels[:at], "/"); {
		case of == n.cfg.MQTT.BaseTopic:
			return "", ""
		case n.model(levels[at+1]) != nil && !slices.Contains(n.client.Filters, filter):
			base, name = of, levels[at]
		}
	}
	return base, name
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

// renamed logs that this node had another name or base topic, under which the broker keeps what it
// has published; in a fleet that counts beside what it publishes now. The devices of Home Assistant
// do not depend on the base topic. Another name without mqtt.client_id is another client, for whose
// former session the broker goes on to keep messages.
func (n *Node) renamed(base, former string, known []string) {
	topics, ends := " -t '"+base+"/"+former+"/#'", ""
	if id := mqtt.DefaultClientID(former); n.cfg.MQTT.PersistentSession && n.cfg.MQTT.ClientID == "" && id != n.client.ID {
		topics, ends = " -i "+id+topics, ", and ends the session in which messages wait for it"
	}
	for _, filter := range known {
		rest, ours := strings.CutPrefix(filter, base+"/"+membership.Level+"/")
		concept, whole := strings.CutSuffix(rest, "/+")
		switch {
		case ours && whole && !strings.Contains(concept, "/"):
			topics += " -t '" + membership.NewTopics(base, concept).Contribution(former) + "/#'"
		case former != n.cfg.Node && strings.Contains(filter, "/device/"+homeassistant.DeviceID(former, "")):
			topics += " -t '" + filter + "'"
		}
	}
	if base != n.cfg.MQTT.BaseTopic {
		former = base + "/" + former
	}
	detail := fmt.Sprintf("this node was %s before, and the broker keeps what it has published so, which counts in a fleet: unless another device has that name now, mosquitto_sub%s --retained-only --remove-retained -W 3 removes it%s", former, topics, ends)
	n.log.Warn("the node has another name or base topic", "detail", detail)
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
