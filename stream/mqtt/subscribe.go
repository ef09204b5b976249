package mqtt

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
func (c *Client) formerFilters() (former []string) {
	if c.Memory == nil || !c.Config.PersistentSession {
		return nil
	}
	known, err := c.Memory.Filters()
	if err != nil {
		c.Log.Warn("cannot tell what an earlier configuration subscribed to; its topics may still arrive, as unrouted", "error", err)
	}
	for _, f := range known {
		if !slices.Contains(c.Filters, f) {
			former = append(former, f)
		}
	}
	c.rememberFilters(known, append(slices.Clone(c.Filters), former...))
	return former
}

// giveBack ends subscriptions, and forgets them once the broker has.
func (c *Client) unsubscribe(conn *Conn, former []string) {
	if len(former) == 0 {
		return
	}
	token := conn.paho.Unsubscribe(former...)
	if !conn.await(context.Background(), token.Done(), subscribeTimeout) {
		return // the next connection tries again
	}
	if err := token.Error(); err != nil {
		c.Log.Warn("cannot give back the subscriptions of an earlier configuration; the next connection tries again", "filters", former, "error", err)
		return
	}
	c.Log.Info("gave back the subscriptions of an earlier configuration", "filters", former)
	c.rememberFilters(nil, c.Filters)
}

// remember writes filters, unless they are known.
func (c *Client) rememberFilters(known, filters []string) {
	known, filters = slices.Sorted(slices.Values(known)), slices.Sorted(slices.Values(filters))
	if slices.Equal(known, filters) {
		return
	}
	if err := c.Memory.RememberFilters(filters); err != nil {
		c.Log.Warn("cannot remember what is subscribed to; should the topics change, old ones may still arrive, as unrouted", "error", err)
	}
}

// subscribe returns the filters that the broker refused. A failure of the
// request itself ends the connection.
func (c *Client) subscribe(conn *Conn, filters []string) (refused []string) {
	if len(filters) == 0 {
		return nil
	}
	ask := make(map[string]byte, len(filters))
	for _, f := range filters {
		ask[f] = byte(c.Config.QoS)
	}
	token := conn.paho.SubscribeMultiple(ask, nil)
	if !conn.await(context.Background(), token.Done(), subscribeTimeout) {
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
		c.Log.Error("the broker refused a subscription: allow it in the broker's access list", "filters", refused, "client_id", c.ID, "username", c.Config.Username)
		c.Event("subscription_refused", strings.Join(refused, ", "))
	}
	return refused
}
