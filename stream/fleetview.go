package stream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"edge/online"
	"edge/online/fleet"
	"edge/stream/membership"
	"edge/stream/topic"
)

// Fleet describes a model's part in a fleet; false for a model without one. Any goroutine
// may call it.
func (n *Node) Fleet(model string) (v membership.View, ok bool) {
	m := n.fleets.member(model)
	if m == nil {
		return v, false
	}
	n.fleets.mu.Lock()
	defer n.fleets.mu.Unlock()
	return m.View(time.Now(), describeFleet(m.of.Model)), true
}

// member returns the part of a model, nil without one.
func (f *fleets) member(model string) *fleetMember {
	for _, m := range f.members {
		if m.of.Name == model {
			return m
		}
	}
	return nil
}

// describeFleet returns the figures of a model for a View.
func describeFleet(m Model) (of membership.Model) {
	status := m.Status()
	of.WarmedUp, of.Classes = status.WarmedUp, status.Classes.Names
	post := m.Snapshot()
	of.Answers = post.Fleet != nil && (post.Fleet.Guest != nil || post.Fleet.Horizons > 0)
	of.Weight = post.FleetWeight()
	return of
}

// errNoFleet reports that a model of the node is in no fleet.
func errNoFleet(model string) error {
	return fmt.Errorf("model %s is in no fleet: the configuration with which the daemon runs has no fleet.concept for it", model)
}

// forgetMember removes a member of a fleet, and its retained messages from the broker.
func (n *Node) forgetMember(model, member string) error {
	m := n.fleets.member(model)
	switch {
	case m == nil:
		return errNoFleet(model)
	case !topic.IsName(member) || member == n.cfg.Node || member == membership.BasisName:
		return fmt.Errorf("%.40q: want the name of another node", member)
	}
	n.fleets.mu.Lock()
	defer n.fleets.mu.Unlock()
	for _, p := range m.Forget(time.Now(), member) {
		n.fleets.push(p)
	}
	return nil
}

// rebase asks for a new common basis of a fleet.
func (n *Node) rebase(model string, how fleet.Rebase) error {
	m := n.fleets.member(model)
	switch {
	case m == nil:
		return errNoFleet(model)
	case !m.of.Model.Status().WarmedUp:
		return fmt.Errorf("the warm-up of model %s is not over: it has no basis to propose yet", model)
	}
	n.fleets.mu.Lock()
	defer n.fleets.mu.Unlock()
	return m.Rebase(how)
}

// fleetRebase is the command that asks for a new common basis.
func (n *Node) fleetRebase(r *request) (*mutation, error) {
	how, err := r.text("basis")
	if err != nil {
		return nil, err
	}
	return replyOnly(map[string]any{"basis": how}), n.rebase(r.models[0].Name, fleet.Rebase(how))
}

// fleetView is the command that describes a model's part in a fleet.
func (n *Node) fleetView(r *request) (*mutation, error) {
	v, ok := n.Fleet(r.models[0].Name)
	if !ok {
		return nil, errNoFleet(r.models[0].Name)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	data, from := map[string]any{}, json.NewDecoder(bytes.NewReader(text))
	from.UseNumber() // a float64 would round numbers above 2⁵³, which are then no uint64 for the reader
	return replyOnly(data), from.Decode(&data)
}

// fleetForget is the command that removes a member of a fleet.
func (n *Node) fleetForget(r *request) (*mutation, error) {
	member, err := r.text("member")
	if err != nil {
		return nil, err
	}
	return replyOnly(map[string]any{"member": member}), n.forgetMember(r.models[0].Name, member)
}

// leaveFleet ends the fleet of a model that is in none and whose state has the sums of one:
// of an earlier configuration, or one that a rollback has brought.
func (n *Node) leaveFleet(m *modelState) {
	if m.hasLeft() {
		n.commit(m, "fleet_end", func(c *committer) { c.leaveFleet(m) }, func() {})
	}
}

// hasLeft reports whether the model is in no fleet, and its state has the sums of one.
func (m *modelState) hasLeft() bool { return !m.Fleet.Enabled() && m.Model.Snapshot().Fleet != nil }

// leaveFleet lets the group end the fleet of a model that has left it.
func (c *committer) leaveFleet(m *modelState) {
	if m.hasLeft() {
		c.group.record(m, online.MergeEvent(&fleet.Merge{}))
	}
}
