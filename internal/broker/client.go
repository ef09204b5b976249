package broker

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"edge/internal/exit"
	"edge/stream/mqtt"
)

const (
	closePause  = 100 * time.Millisecond // for packets on their way when a client disconnects
	refusedFrom = 3                      // the smallest return code of a SUBACK that is not a granted QoS
)

// Client is one connection to a broker, which is not repeated once it is lost.
// Any goroutine may call its methods.
type Client struct {
	Resumed bool                // the broker has kept a session of this identifier
	TLS     tls.ConnectionState // zero without TLS

	paho    paho.Client
	conn    interface{ Passed() uint64 } // the messages that have come from the broker
	taken   atomic.Uint64                // those that Receive has taken
	further chan struct{}                // has an element once it has taken another one
}

// Options are the properties of a connection that differ between tools. The zero
// value is a clean session under a random identifier.
type Options struct {
	ID          string        // client identifier; random if ""
	KeepSession bool          // the broker keeps the session when the connection ends
	NoAcks      bool          // received messages of QoS 1 are not acknowledged
	Receive     func(Message) // is called with each message, in order; may be nil
	lost        func()        // is called when the connection is lost; may be nil
}

// Message is a received message.
type Message struct {
	Topic    string
	Payload  []byte
	Retained bool
	ID       uint16 // packet identifier; 0 for a message of QoS 0
}

// Dial connects to the first server of cfg that answers. If ctx ends before, the
// error is its cause.
func Dial(ctx context.Context, cfg mqtt.Config, o Options) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, exit.With(exit.Usage, fmt.Errorf("broker: %w", err))
	}
	if o.ID == "" {
		o.ID = randomID()
	}
	opts, err := cfg.ClientOptions(o.ID)
	if err != nil {
		return nil, exit.With(exit.Config, err)
	}
	c := &Client{further: make(chan struct{}, 1)}
	opts.SetAutoReconnect(false).SetCleanSession(!o.KeepSession).SetAutoAckDisabled(o.NoAcks)
	opts.TLSConfig.VerifyConnection = func(state tls.ConnectionState) error {
		c.TLS = state
		return nil
	}
	opts.SetDefaultPublishHandler(func(_ paho.Client, m paho.Message) {
		if o.Receive != nil {
			o.Receive(Message{m.Topic(), m.Payload(), m.Retained(), m.MessageID()})
		}
		c.taken.Add(1)
		select {
		case c.further <- struct{}{}:
		default:
		}
	})
	open := opts.CustomOpenConnectionFn
	opts.SetCustomOpenConnectionFn(func(u *url.URL, o paho.ClientOptions) (net.Conn, error) {
		nc, err := open(u, o)
		c.conn, _ = nc.(interface{ Passed() uint64 })
		return nc, err
	})
	if o.lost != nil {
		opts.SetConnectionLostHandler(func(paho.Client, error) { o.lost() })
	}
	c.paho = paho.NewClient(opts)
	token := c.paho.Connect()
	select {
	case <-token.Done():
	case <-ctx.Done():
		c.paho.Disconnect(0)
		return nil, context.Cause(ctx)
	}
	if err := mqtt.ConnectError(token.Error()); err != nil {
		return nil, err
	}
	c.Resumed = token.(*paho.ConnectToken).SessionPresent()
	return c, nil
}

// randomID returns a client identifier that no other client has.
func randomID() string {
	id := make([]byte, 6)
	rand.Read(id)
	return "edge-tool-" + hex.EncodeToString(id)
}

// Connect is Dial for a command that ends with the error.
func Connect(ctx context.Context, cfg mqtt.Config, o Options) (*Client, error) {
	c, err := Dial(ctx, cfg, o)
	servers := strings.Join(cfg.Servers, ", ")
	switch {
	case err == nil:
		return c, nil
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return nil, exit.With(exit.Broker, fmt.Errorf("connect to the broker at %s: it has not answered in time; is it an MQTT broker, is the address right, and the time to wait not too short?", servers))
	case ctx.Err() != nil:
		return nil, errors.New("connecting to the broker: interrupted")
	case errors.As(err, new(*exit.Error)): // of the configuration
		return nil, err
	}
	return nil, exit.With(exit.Broker, fmt.Errorf("connect to the broker at %s: %w; %s", servers, err, cmp.Or(mqtt.Advice(err), "is it running, and are address and credentials right?")))
}

// Failure returns the error of a command whose exchange with the broker failed with err: that with
// the exit code of the broker's failures, or the reason for which ctx has ended before, as a signal
// to the command.
func Failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return unanswered(ctx, fmt.Errorf("the time to wait was over before the broker had answered: %w", err))
	}
	return exit.With(exit.Broker, err)
}

// unanswered returns err with the exit code of the broker's failures if the time to wait was over, or
// else the reason for which ctx has ended.
func unanswered(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return exit.With(exit.Broker, err)
}

// Subscribe subscribes to a filter and reports whether the broker grants it.
func (c *Client) Subscribe(ctx context.Context, filter string, qos byte) (granted bool, err error) {
	refused, err := c.SubscribeAll(ctx, []string{filter}, qos)
	return err == nil && len(refused) == 0, err
}

// SubscribeAll subscribes to filters with one packet, so that no message of one comes before the
// answer for another, and returns those that the broker refuses.
func (c *Client) SubscribeAll(ctx context.Context, filters []string, qos byte) (refused []string, err error) {
	of := map[string]byte{}
	for _, f := range filters {
		of[f] = qos
	}
	token := c.paho.SubscribeMultiple(of, nil)
	err = wait(ctx, token)
	select {
	case <-token.Done():
		for f, code := range token.(*paho.SubscribeToken).Result() {
			if code >= refusedFrom {
				refused = append(refused, f)
			}
		}
	default:
	}
	if err != nil && len(refused) == 0 { // a refusal is an error of paho
		return nil, fmt.Errorf("subscribe to %s: %w", strings.Join(filters, ", "), err)
	}
	slices.Sort(refused)
	return refused, nil
}

// Unsubscribe ends a subscription.
func (c *Client) Unsubscribe(ctx context.Context, filter string) error {
	return wait(ctx, c.paho.Unsubscribe(filter))
}

// Answer waits for an answer of the broker, and until Receive has taken the messages that have come before it: of
// mosquitto and NATS all that a subscription before it brings. Only one goroutine may call it.
func (c *Client) Answer(ctx context.Context) error {
	if err := c.Unsubscribe(ctx, randomID()); err != nil { // from nothing, which each broker allows
		return err
	}
	for before := c.conn.Passed(); c.taken.Load() < before; { // paho may be handing them over
		select {
		case <-c.further:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Publish publishes a message and waits until the broker has acknowledged it; with
// QoS 0, until it is written.
func (c *Client) Publish(ctx context.Context, topic string, qos byte, retained bool, payload []byte) error {
	return wait(ctx, c.paho.Publish(topic, qos, retained, payload))
}

// Close disconnects. It is not inlined: many commands call it.
//
//go:noinline
func (c *Client) Close() { c.paho.Disconnect(uint(closePause.Milliseconds())) }

// wait waits for the broker's answer. If ctx ends before, the error is its cause.
func wait(ctx context.Context, token paho.Token) error {
	select {
	case <-token.Done():
	case <-ctx.Done():
		select {
		case <-token.Done(): // before it
		default:
			return context.Cause(ctx)
		}
	}
	if token.Error() != nil { // paho has no other reason once a connection is open
		return mqtt.ErrLost
	}
	return nil
}
