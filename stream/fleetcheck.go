package stream

import (
	"fmt"

	"edge/online/fleet"
	"edge/stream/field"
	"edge/stream/membership"
)

// checkFleets returns the errors in the models' parts in fleets.
func (n *Node) checkFleets() error {
	var errs []error
	for i, m := range n.models {
		key := "models." + m.Name + ".fleet"
		errs = append(errs, field.Within(key, m.Fleet.Validate()))
		if m.Fleet.Enabled() {
			errs = append(errs,
				field.Check(n.cfg.Node != membership.BasisName, "node", n.cfg.Node, "another name: that is the topic of a fleet's common basis"),
				field.Check(len(n.cfg.Node) <= fleet.MaxName, "node", n.cfg.Node, fmt.Sprintf("at most %d bytes in a fleet", fleet.MaxName)))
		}
		if m.Fleet.Follows() && m.Active.Enabled() {
			errs = append(errs, fmt.Errorf("models.%s.active: a follower learns no label: remove active, or let fleet.role be member", m.Name))
		}
		for _, other := range n.models[:i] {
			if m.Fleet.Enabled() && m.Fleet.Concept == other.Fleet.Concept {
				errs = append(errs, fmt.Errorf("%s.concept %s: model %s has it as well; two models of one node need two", key, m.Fleet.Concept, other.Name))
			}
		}
	}
	return field.Join(errs...)
}

// fleetTopics returns filters for the topics of fleets that the node publishes on.
func (n *Node) fleetTopics() (filters []string) {
	for _, m := range n.models {
		if m.Fleet.Enabled() {
			topics := membership.NewTopics(n.cfg.MQTT.BaseTopic, m.Fleet.Concept)
			filters = append(filters, topics.Contribution(n.cfg.Node)+"/#", topics.Contribution(membership.BasisName)+"/#") // match those without a part as well
		}
	}
	return filters
}
