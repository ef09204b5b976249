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

// MaxFilters is the largest number of filters in one SUBSCRIBE or UNSUBSCRIBE. AWS IoT Core
// ends the connection of a client that sends more.
const MaxFilters = 8

const subscribeTimeout = 15 * time.Second // longest silence of the broker

const resubscribeFirst = time.Second // first pause before a refused subscription is requested again; doubled

const resubscribeLast = time.Minute

// Subscriptions stores the subscriptions, so that they survive a restart: those of a session that
// persists may have to be ended, and a node has to leave a fleet in which it is no more. Filters
// returns the stored ones, nil at first.
type Subscriptions interface {
	Filters() ([]string, error)
	RememberFilters([]string) error
}

// formerFilters returns the filters of an earlier configuration that the session may
// still be subscribed to and that this client does not want. It stores all filters
// before the client subscribes. A session that does not persist has no former filters.
func (c *Client) formerFilters() (former []string) {
	if c.Memory == nil {
		return nil
	}
	known, err := c.Memory.Filters()
	if err != nil {
		c.Log.Warn("cannot read the subscriptions of an earlier configuration; if the session persists, messages on its topics may still arrive, as unrouted", "error", err)
	}
	wanted := c.wanted()
	for _, f := range known {
		if c.Config.PersistentSession && !slices.Contains(wanted, f) {
			former = append(former, f)
		}
	}
	c.rememberFilters(known, append(wanted, former...))
	return former
}

// unsubscribe ends subscriptions, and removes them from the store on success.
func (c *Client) unsubscribe(ctx context.Context, conn *Conn, former []string) {
	if len(former) == 0 {
		return
	}
	for some := range slices.Chunk(former, MaxFilters) {
		token := conn.paho.Unsubscribe(some...)
		if !conn.await(ctx, token.Done(), subscribeTimeout) || token.Error() != nil {
			return // no answer, or no connection; the next one tries again
		}
	}
	c.Log.Info("ended subscriptions of an earlier run, which this one does not need", "filters", former)
	c.rememberFilters(nil, c.wanted())
}

// rememberFilters stores the filters, if they differ from the known ones.
func (c *Client) rememberFilters(known, filters []string) {
	if c.Memory == nil {
		return
	}
	known, filters = slices.Sorted(slices.Values(known)), slices.Sorted(slices.Values(filters))
	if slices.Equal(known, filters) {
		return
	}
	if err := c.Memory.RememberFilters(filters); err != nil {
		c.Log.Warn("cannot store the subscriptions; a restart with other topics or fleets cannot tell which ones it has left", "error", err)
	}
}

// subscribe returns the filters that the broker refused. If a request itself
// fails, it ends the connection.
func (c *Client) subscribe(ctx context.Context, conn *Conn, filters []string) (refused []string) {
	if len(filters) == 0 {
		return nil
	}
	var lowered []string
	for some := range slices.Chunk(filters, MaxFilters) {
		not, lower, err := c.request(ctx, conn, some)
		if err != nil {
			conn.fail(fmt.Errorf("mqtt: subscribe: %w", err))
			return nil
		}
		refused, lowered = append(refused, not...), append(lowered, lower...)
	}
	slices.Sort(refused)
	slices.Sort(lowered)
	if previous := c.lowered.Swap(&lowered); len(lowered) > 0 && (previous == nil || !slices.Equal(*previous, lowered)) {
		c.Log.Warn("the broker grants a lower quality of service than mqtt.qos or the stream's qos: messages that are on their way when a connection or the node ends are lost", "filters", lowered)
		c.Event("subscription_lowered", strings.Join(lowered, ", "))
	}
	conn.granted.Store(len(refused) == 0)
	if previous := c.refused.Swap(&refused); len(refused) > 0 && (previous == nil || !slices.Equal(*previous, refused)) {
		c.Log.Error("the broker refused a subscription: allow it in the broker's access list"+WordsAdvice(refused...), "filters", refused, "client_id", c.ID, "username", c.Config.Username)
		c.Event("subscription_refused", strings.Join(refused, ", "))
	}
	return refused
}

// ErrLost is the error of a request whose connection ended before the broker had answered.
var ErrLost = errors.New("the connection was lost before the broker answered")

// request subscribes to filters with one packet, and returns those that the broker refused,
// and those that it grants with a lower quality of service.
func (c *Client) request(ctx context.Context, conn *Conn, filters []string) (refused, lowered []string, err error) {
	ask := make(map[string]byte, len(filters))
	further := c.further.all()
	for _, f := range filters {
		qos, own := c.QoS[f]
		if !own && f != c.StateTopic && !slices.Contains(further, f) { // those have QoS 0
			qos = byte(c.Config.QoS)
		}
		ask[f] = qos
	}
	token := conn.paho.SubscribeMultiple(ask, nil)
	if !conn.await(ctx, token.Done(), subscribeTimeout) {
		return nil, nil, errors.New("no answer from the broker")
	}
	if token.Error() != nil { // the connection is lost, of which paho tells the reason a moment later
		conn.await(ctx, conn.lost, subscribeTimeout)
		return nil, nil, ErrLost
	}
	for f, granted := range token.(*paho.SubscribeToken).Result() {
		switch {
		case granted > 2 && f == c.StateTopic: // nothing depends on it
		case granted > 2:
			refused = append(refused, f)
		case granted < ask[f]:
			lowered = append(lowered, f)
		}
	}
	return refused, lowered, nil
}

// WordsAdvice completes the advice about topics that a broker refuses: "; …" where one has a
// character that MQTT allows and NATS does not; "" otherwise.
func WordsAdvice(topics ...string) string {
	if slices.ContainsFunc(topics, func(t string) bool { return strings.ContainsAny(t, " .") }) {
		return "; NATS allows no topic with a space, and before version 2.10 none with a point"
	}
	return ""
}
