package mqtt

import (
	"slices"
	"sync"
)

// Aside takes messages of QoS 0 that do not go to the queue; it reports whether it has
// taken one. It must not wait. It owns a message that it has taken, and frees it.
type Aside func(*Message) bool

// further are filters that a client subscribes to after its start.
type further struct {
	mu      sync.Mutex
	filters []string
}

// all returns the filters.
func (f *further) all() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.filters)
}

// wanted returns all filters.
func (c *Client) wanted() []string { return append(slices.Clone(c.Filters), c.further.all()...) }

// Also subscribes to a further filter, over this connection and those that follow. The
// quality of service is that of QoS. It does not wait for the broker.
func (c *Client) Also(filter string) {
	c.further.mu.Lock()
	known := slices.Contains(c.further.filters, filter)
	if !known {
		c.further.filters = append(c.further.filters, filter)
	}
	c.further.mu.Unlock()
	conn := c.Conn()
	if known || conn == nil {
		return
	}
	if c.Memory != nil && c.Config.PersistentSession {
		c.rememberFilters(nil, c.wanted())
	}
	conn.paho.Subscribe(filter, c.QoS[filter], nil)
}

// Remove drops the waiting publications of topics.
func (o *Outbox) Remove(topics []string) {
	o.queue.remove(func(m *Publication) bool { return slices.Contains(topics, m.Topic) })
}

// remove drops the items for which gone is true.
func (q *Queue[T]) remove(gone func(T) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	kept := slices.DeleteFunc(slices.Clone(q.items[q.head:]), func(v T) bool {
		if gone(v) {
			q.bytes -= q.Size(v)
			return true
		}
		return false
	})
	q.items, q.head = kept, 0
}
