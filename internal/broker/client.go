package broker

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"edge/internal/exit"
	"edge/stream/mqtt"
)

// closeWithin is how long a connection may take to end, in milliseconds.
const closeWithin = 100

// Options of a connection. The zero value is a clean session under a client id of
// its own, whose messages nothing receives.
type Options struct {
	ID          string        // client id; "": a random one
	KeepSession bool          // the broker keeps the session under ID after the end
	NoAck       bool          // no message is acknowledged
	Answer      time.Duration // bound of each answer of the broker; 0: the context's alone

	// Receive is called with each message, one after the other.
	Receive func(topic string, payload []byte, retained bool)
	// Lost is called once the connection ends without Close.
	Lost func()
}

// Client is one connection to a broker. It does not connect again.
type Client struct {
	id      string
	paho    paho.Client
	answer  time.Duration
	resumed bool
	tls     tls.ConnectionState
}

// Dial connects to the first server of cfg that answers. Its errors about cfg
// have an exit code; others are those of the network and the broker.
func Dial(ctx context.Context, cfg mqtt.Config, o Options) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, exit.With(exit.Usage, fmt.Errorf("broker: %w", err))
	}
	c := &Client{id: o.ID, answer: o.Answer}
	if c.id == "" {
		id := make([]byte, 6)
		rand.Read(id)
		c.id = "edge-tool-" + hex.EncodeToString(id)
	}
	opts, err := cfg.ClientOptions(c.id)
	if err != nil {
		return nil, exit.With(exit.Config, err)
	}
	opts.SetCleanSession(!o.KeepSession).SetAutoReconnect(false).SetAutoAckDisabled(o.NoAck)
	opts.TLSConfig.VerifyConnection = func(state tls.ConnectionState) error {
		c.tls = state
		return nil
	}
	opts.SetDefaultPublishHandler(func(_ paho.Client, m paho.Message) {
		if o.Receive != nil {
			o.Receive(m.Topic(), m.Payload(), m.Retained())
		}
	})
	if o.Lost != nil {
		opts.SetConnectionLostHandler(func(paho.Client, error) { o.Lost() })
	}
	c.paho = paho.NewClient(opts)
	token := c.paho.Connect()
	select {
	case <-token.Done():
	case <-ctx.Done():
		c.paho.Disconnect(0)
		return nil, ctx.Err()
	}
	if err := token.Error(); err != nil {
		return nil, err
	}
	c.resumed = token.(*paho.ConnectToken).SessionPresent()
	return c, nil
}

// dialTool is Dial with errors for the user of a command.
func dialTool(ctx context.Context, cfg mqtt.Config, o Options) (*Client, error) {
	c, err := Dial(ctx, cfg, o)
	var coded *exit.Error
	switch {
	case err == nil || errors.As(err, &coded):
		return c, err
	case ctx.Err() != nil:
		return nil, errors.New("connecting to the broker: interrupted")
	}
	return nil, exit.With(exit.Broker, fmt.Errorf("connect to the broker at %s: %w; is it running, and are address and credentials right?", cfg.Servers, err))
}

// ID returns the client id.
func (c *Client) ID() string { return c.id }

// Resumed reports whether the broker had kept a session.
func (c *Client) Resumed() bool { return c.resumed }

// TLS returns the state of the TLS connection, the zero value without one.
func (c *Client) TLS() tls.ConnectionState { return c.tls }

// Subscribe subscribes to a filter and reports whether the broker grants it.
func (c *Client) Subscribe(ctx context.Context, filter string, qos byte) (granted bool, err error) {
	const refused = 0x80
	token := c.paho.Subscribe(filter, qos, nil)
	err = c.wait(ctx, token)
	code, answered := token.(*paho.SubscribeToken).Result()[filter]
	if err != nil && answered && code == refused {
		return false, nil // paho returns an error for a refusal as well
	}
	return err == nil && code != refused, err
}

// Unsubscribe ends a subscription.
func (c *Client) Unsubscribe(ctx context.Context, filter string) error {
	return c.wait(ctx, c.paho.Unsubscribe(filter))
}

// Publish sends a message and waits until the broker has acknowledged it.
func (c *Client) Publish(ctx context.Context, topic string, qos byte, retained bool, payload []byte) error {
	return c.wait(ctx, c.paho.Publish(topic, qos, retained, payload))
}

// wait waits for an answer of the broker.
func (c *Client) wait(ctx context.Context, token paho.Token) error {
	var late <-chan time.Time
	if c.answer > 0 {
		late = time.After(c.answer)
	}
	select {
	case <-token.Done():
		return token.Error()
	case <-late:
		return fmt.Errorf("no answer within %v", c.answer)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends the connection.
func (c *Client) Close() { c.paho.Disconnect(closeWithin) }
