package mqtt

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"edge/stream/field"
)

// Messages of QoS 0 can be taken aside; all others go to the queue.
func TestAside(t *testing.T) {
	queue := NewQueue(10, field.MiB, MessageSize)
	var aside []string
	c := NewClient(Options{Counters: new(Counters), Dropped: new(atomic.Uint64), Queue: queue, Aside: func(m *Message) bool {
		taken := strings.HasPrefix(m.Topic, "fleet/")
		if taken {
			aside = append(aside, m.Topic)
		}
		return taken
	}})
	conn := &Conn{client: c, net: newFrameConn(sink{}, 1000, 0)}
	for _, m := range []Message{{Topic: "fleet/a"}, {Topic: "fleet/b", QoS: 1}, {Topic: "other"}} {
		conn.receive(&m)
	}
	if got := fmt.Sprint(aside, queue.Len()); got != "[fleet/a] 2" {
		t.Errorf("aside and queued: %s", got)
	}
}

// A withdrawn publication leaves the outbox, with its bytes.
func TestOutboxRemove(t *testing.T) {
	o := newTestOutbox(4)
	for _, topic := range []string{"a", "b", "c", "b"} {
		o.Push(&Publication{Topic: topic, Payload: []byte(topic)})
	}
	o.Pop()
	o.Remove([]string{"b", "x"})
	if m, ok := o.Pop(); !ok || m.Topic != "c" {
		t.Errorf("the first publication is %+v", m)
	}
	if o.Len() != 0 || o.queue.bytes != 0 {
		t.Errorf("%d publications with %d bytes are left", o.Len(), o.queue.bytes)
	}
}

// A further filter is among those of each connection that follows.
func TestAlso(t *testing.T) {
	c := NewClient(Options{Filters: []string{"a/+"}})
	c.Also("a/+/+")
	c.Also("a/+/+")
	if got := fmt.Sprint(c.wanted(), c.Filters); got != "[a/+ a/+/+] [a/+]" {
		t.Errorf("the filters are %s", got)
	}
}
