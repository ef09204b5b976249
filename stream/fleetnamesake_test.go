package stream

import (
	"slices"
	"strings"
	"testing"
	"time"

	"edge/online/fleet"
	"edge/stream/membership"
	"edge/stream/mqtt"
)

// Of two nodes with one name the later one publishes nothing more, until the other one says on the
// topic of their state that it has ended.
func TestNamesake(t *testing.T) {
	in("", t, func(t *testing.T) {
		s := newFleetSim(t, 1)
		first := s.add("a", membership.RoleMember)
		s.pass(3*time.Minute, func() { first.learn("a", "b") })
		later := s.add("a", membership.RoleMember)
		s.pass(6*time.Minute, func() {
			first.learn("a", "b")
			later.learn("a", "b")
		})
		view := func() membership.View {
			v, _ := later.node.Fleet("bearing")
			return v
		}
		if v := view(); !strings.Contains(v.Stopped, "another process publishes as a") {
			t.Fatalf("the later one is not stopped: %+v, %q", v.Own, later.events)
		}
		first.end(true)
		s.nodes = slices.DeleteFunc(s.nodes, func(n *simNode) bool { return n == first })
		later.node.fleets.aside()(&mqtt.Message{Topic: "edge/a/state", Payload: []byte("offline"), From: later.conn})
		s.pass(time.Minute, nil)
		c, err := fleet.Decode(s.kept["edge/fleet/c/a"])
		if v := view(); err != nil || v.Stopped != "" || !v.Kept || c.N != v.N || c.Version != (fleet.Version{Epoch: v.Epoch, Sequence: v.Sequence}) {
			t.Errorf("the broker keeps version %v with %d labels (%v), the node says %+v", c.Version, c.N, err, v.Own)
		}
		later.end(true)
	})
}
