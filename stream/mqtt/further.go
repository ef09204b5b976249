package mqtt

import (
	"context"
	"slices"
	"sync"

	paho "github.com/eclipse/paho.mqtt.golang"
)

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
func (c *Client) wanted() []string {
	all := append(slices.Clone(c.Filters), c.further.all()...)
	if c.StateTopic != "" {
		all = append(all, c.StateTopic)
	}
	return all
}

// add adds filters, and returns those that are new.
func (f *further) add(filters []string) (added []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, filter := range filters {
		if !slices.Contains(f.filters, filter) {
			f.filters, added = append(f.filters, filter), append(added, filter)
		}
	}
	return added
}

// remove removes filters.
func (f *further) remove(filters []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.filters = slices.DeleteFunc(f.filters, func(filter string) bool { return slices.Contains(filters, filter) })
}

// Also subscribes to further filters with QoS 0, over this connection and those that
// follow, until Drop. It does not wait for the broker.
func (c *Client) Also(filters ...string) {
	conn, added := c.Conn(), c.further.add(filters)
	if len(added) == 0 || conn == nil {
		return
	}
	c.rememberFilters(nil, c.wanted())
	for some := range slices.Chunk(added, MaxFilters) {
		conn.paho.SubscribeMultiple(AtMostOnce(some), nil)
	}
}

// AtMostOnce returns a subscription to filters with QoS 0.
func AtMostOnce(filters []string) map[string]byte {
	ask := make(map[string]byte, len(filters))
	for _, f := range filters {
		ask[f] = 0
	}
	return ask
}

// Drop ends the subscription to further filters. It does not wait for the broker. If the
// connection ends first, the next one ends the subscription in the session.
func (c *Client) Drop(filters ...string) {
	if len(filters) == 0 {
		return
	}
	c.further.remove(filters)
	conn := c.Conn()
	if conn == nil {
		return
	}
	var tokens []paho.Token
	for some := range slices.Chunk(filters, MaxFilters) {
		tokens = append(tokens, conn.paho.Unsubscribe(some...))
	}
	select {
	case conn.dropped <- tokens:
	default: // the next connection takes them from the store
	}
}

// forget removes filters from the store, once the broker has ended the subscriptions.
func (c *Client) forget(ctx context.Context, conn *Conn, ended []paho.Token) {
	for _, token := range ended {
		if !conn.await(ctx, token.Done(), subscribeTimeout) || token.Error() != nil {
			return
		}
	}
	c.rememberFilters(nil, c.wanted())
}
