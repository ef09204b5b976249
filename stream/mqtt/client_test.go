package mqtt

import (
	"net"
	"slices"
	"strings"
	"testing"
)

func TestDefaultClientID(t *testing.T) {
	id := DefaultClientID("pi4-hall")
	if id != DefaultClientID("pi4-hall") || !strings.HasPrefix(id, "edge-pi4-hall-") || len(id) != len("edge-pi4-hall-0000") {
		t.Errorf("default client id %q", id)
	}
}

var _ net.Conn = (*frameConn)(nil)

// Deferred messages are bounded: the oldest make room for the newest, and are counted.
func TestDeferredAreBounded(t *testing.T) {
	c := NewClient(Options{Deferred: NewQueue(3, 1<<20, func(*Message) int { return 1 }), Counters: new(Counters)})
	for i := range 5 {
		c.deferMessage(&Message{ID: uint16(i)})
	}
	c.deferMessage(&Message{ID: 5, Dup: true}) // it had its answer when it came first
	var left []uint16
	for m, ok := c.Deferred.Pop(); ok; m, ok = c.Deferred.Pop() {
		left = append(left, m.ID)
	}
	if n := c.Counters.DeferredDropped.Load(); !slices.Equal(left, []uint16{2, 3, 4}) || n != 2 {
		t.Errorf("%v are left, %d dropped", left, n)
	}
}

// The port of a server may be left out.
func TestServerPorts(t *testing.T) {
	for scheme, port := range map[string]string{"tcp": "1883", "mqtt": "1883", "mqtts": "8883", "ssl": "8883", "ws": "80", "wss": "443"} {
		if got := serverPorts[scheme]; got != port {
			t.Errorf("usual port of %s is %s, want %s", scheme, got, port)
		}
	}
}
