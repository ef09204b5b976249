package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
)

const subscribeTimeout = 15 * time.Second // without anything from the broker

const resubscribeFirst = time.Second // pause before what the broker refused is asked for again; doubled

const resubscribeLast = time.Minute

// Subscriptions remembers, over restarts, what the broker's session is
// subscribed to. Filters returns what was remembered last, nil at first.
type Subscriptions interface {
	Filters() ([]string, error)
	RememberFilters([]string) error
}

// expect returns the filters that the session of an earlier configuration may
// still have, and that this one has not; what is about to be asked for is
// remembered before. A session that is not kept has none.
func (c *client) expect() (former []string) {
	if c.memory == nil || !c.cfg.PersistentSession {
		return nil
	}
	known, err := c.memory.Filters()
	if err != nil {
		c.log.Warn("cannot tell what an earlier configuration subscribed to; its topics may still arrive, as unrouted", "error", err)
	}
	for _, f := range known {
		if !slices.Contains(c.filters, f) {
			former = append(former, f)
		}
	}
	c.remember(known, append(slices.Clone(c.filters), former...))
	return former
}

// giveBack ends subscriptions, and forgets them once the broker has.
func (c *client) giveBack(conn *connection, former []string) {
	if len(former) == 0 {
		return
	}
	token := conn.paho.Unsubscribe(former...)
	if !conn.awaits(context.Background(), token.Done(), subscribeTimeout) {
		return // the next connection tries again
	}
	if err := token.Error(); err != nil {
		c.log.Warn("cannot give back the subscriptions of an earlier configuration; the next connection tries again", "filters", former, "error", err)
		return
	}
	c.log.Info("gave back the subscriptions of an earlier configuration", "filters", former)
	c.remember(nil, c.filters)
}

// remember writes filters, unless they are known.
func (c *client) remember(known, filters []string) {
	known, filters = slices.Sorted(slices.Values(known)), slices.Sorted(slices.Values(filters))
	if slices.Equal(known, filters) {
		return
	}
	if err := c.memory.RememberFilters(filters); err != nil {
		c.log.Warn("cannot remember what is subscribed to; should the topics change, old ones may still arrive, as unrouted", "error", err)
	}
}

// subscribe returns the filters that the broker refused. A failure of the
// request itself ends the connection.
func (c *client) subscribe(conn *connection, filters []string) (refused []string) {
	if len(filters) == 0 {
		return nil
	}
	ask := make(map[string]byte, len(filters))
	for _, f := range filters {
		ask[f] = byte(c.cfg.QoS)
	}
	token := conn.paho.SubscribeMultiple(ask, nil)
	if !conn.awaits(context.Background(), token.Done(), subscribeTimeout) {
		conn.fail(errors.New("stream: subscribe: no answer from the broker"))
		return nil
	}
	if err := token.Error(); err != nil {
		conn.fail(fmt.Errorf("stream: subscribe: %w", err))
		return nil
	}
	for f, granted := range token.(*paho.SubscribeToken).Result() {
		if granted > 2 {
			refused = append(refused, f)
		}
	}
	slices.Sort(refused)
	conn.granted.Store(len(refused) == 0)
	if previous := c.refused.Swap(&refused); len(refused) > 0 && (previous == nil || !slices.Equal(*previous, refused)) {
		c.log.Error("the broker refused a subscription: allow it in the broker's access list", "filters", refused, "client_id", c.id, "username", c.cfg.Username)
		c.event("subscription_refused", strings.Join(refused, ", "))
	}
	return refused
}
