package mqtt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
)

const maxLogged = 8 // reasons for losses and failures; more are logged again

const (
	clashAdvice   = "the broker ends the connection repeatedly within seconds; its log has the reason: does another client use the same client_id? Set mqtt.client_id to a value that no other client has, or mqtt.username where the broker takes that for it (mosquitto: use_username_as_clientid)."
	refusalAdvice = "the broker ends the connection repeatedly, and before it has granted the subscriptions; its log has the reason: does its access list forbid a topic? edge check --connect names it."
)

// reportLoss notes why there is no connection, and reports a clash of clients, or a topic that the
// broker forbids in this way, as RabbitMQ does; taken is the number of connections in a row that
// another client may have taken over; asking: the latest ones ended before the subscriptions were granted.
func (c *Client) reportLoss(err error, taken int, asking bool) {
	event, detail, advice := "client_id_clash", c.ID, clashAdvice
	if asking {
		event, detail, advice = "subscription_refused", strings.Join(c.wanted(), ", "), refusalAdvice
	}
	why := fmt.Sprintf("lost: %v", err)
	if taken >= clashAfter {
		why += "; " + advice
	}
	c.failure.Store(&why)
	if taken == clashAfter {
		c.Event(event, detail)
		c.Log.Error(advice, "client_id", c.ID)
	}
}

// lost counts and logs the end of a connection, and reports whether a protocol
// error of the broker ended it. Of connections that do not last, each reason is logged once.
func (c *Client) lost(err error, lasted time.Duration) (broken bool) {
	c.Counters.Reconnects.Add(1)
	broken = c.countProtocolError(err)
	level := c.lossLevel(err)
	c.Log.Log(context.Background(), level, "connection to the broker lost", "after", lasted.Round(time.Millisecond), "reason", err)
	c.quiet = lasted <= shortConnection && (broken || level < slog.LevelWarn)
	return broken
}

// failed counts an attempt that has failed, and logs it once for each reason.
func (c *Client) failed(err error) {
	c.attempts++
	c.Counters.ConnectFailures.Add(1)
	c.countProtocolError(err)
	words := withoutDetails(err.Error())
	c.failure.Store(&words)
	c.Log.Log(context.Background(), c.lossLevel(err), "cannot connect to the broker; will keep trying", "servers", c.Config.Servers, "error", err)
}

// lossLevel returns the level at which err is logged: that of a warning, unless it was logged since a connection lasted.
func (c *Client) lossLevel(err error) slog.Level {
	words := withoutDetails(err.Error())
	if slices.Contains(c.logged, words) {
		return slog.LevelDebug
	}
	if len(c.logged) == maxLogged {
		c.logged = c.logged[:0]
	}
	c.logged = append(c.logged, words)
	return slog.LevelWarn
}

// withoutDetails removes from the text of an error what differs at each attempt: the local address
// with its port, and the time at which a certificate was not valid.
func withoutDetails(text string) string {
	if before, after, found := strings.Cut(text, "->"); found {
		text = before[:strings.LastIndexByte(before, ' ')+1] + after
	}
	const now = "current time "
	if before, after, found := strings.Cut(text, now); found {
		_, after, _ = strings.Cut(after, " ")
		text = before + now + after
	}
	return text
}

// countProtocolError counts err if it is a protocol error of the broker, and
// reports whether it is. It publishes an event for each error that differs from
// the one before.
func (c *Client) countProtocolError(err error) (broken bool) {
	var why *ProtocolError
	if !errors.As(err, &why) {
		return false
	}
	c.Counters.ProtocolErrors.Add(1)
	if c.broken != *why {
		c.broken = *why
		c.Log.Error("the broker violates MQTT 3.1.1: check its address, update it, or use another; the node keeps trying", "packet", why.Packet, "reason", why.Reason)
		c.Event("protocol_error", why.Packet+" "+why.Reason)
	}
	return true
}
