package stream

import (
	"net"
	"slices"
	"strings"
	"testing"
)

func TestDefaultClientID(t *testing.T) {
	id := defaultClientID("pi4-hall")
	if id != defaultClientID("pi4-hall") || !strings.HasPrefix(id, "edge-pi4-hall-") || len(id) != len("edge-pi4-hall-0000") {
		t.Errorf("default client id %q", id)
	}
}

var _ net.Conn = (*frameConn)(nil)

// What must be sent again has its answer now as far as there is room: the oldest
// make room for the newest, and are counted.
func TestSkippedAreBounded(t *testing.T) {
	c := newClient(clientOptions{deferred: newFifo(3, 1<<20, func(*message) int { return 1 }), counters: new(netCounters)})
	for i := range 5 {
		c.skip(&message{id: uint16(i)})
	}
	c.skip(&message{id: 5, dup: true}) // it had its answer when it came first
	var left []uint16
	for m, ok := c.deferred.pop(); ok; m, ok = c.deferred.pop() {
		left = append(left, m.id)
	}
	if n := c.counters.deferredDropped.Load(); !slices.Equal(left, []uint16{2, 3, 4}) || n != 2 {
		t.Errorf("%v are left, %d dropped", left, n)
	}
}
