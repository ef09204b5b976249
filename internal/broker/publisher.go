package broker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"edge/internal/exit"
	"edge/internal/timing"
	"edge/stream/mqtt"
)

const (
	publisherInflight = 16 // unacknowledged messages; brokers allow 20 and more
	publisherPolling  = 10 * time.Millisecond
	firstReconnect    = 50 * time.Millisecond // doubled after each failure
	longestReconnect  = time.Second
	maxUnacknowledged = 8   // connections in a row that end without an acknowledgement before it gives up
	publisherClose    = 250 // milliseconds for packets on their way when it disconnects
)

// Publisher sends messages to a broker in order, a few at a time, and sends again
// those that a lost connection may have lost. Each connection is a Client of its
// own: a client that reconnects by itself may send new messages before the
// repeated ones. One goroutine publishes.
type Publisher struct {
	cfg    mqtt.Config
	qos    byte
	listen Listener
	open   context.Context // ends with Close
	end    context.CancelFunc

	mu       sync.Mutex
	client   *Client    // of the present connection; nil without a connection
	inflight []*publish // messages that the broker has not acknowledged, in order
	acked    int        // messages that it has acknowledged
	failed   error      // why there are no more connections
}

// publish is an unacknowledged message.
type publish struct {
	topic   string
	payload []byte
	token   paho.Token // of the latest attempt
}

// Listener has the subscriptions of a Publisher, and functions that may be nil. The zero value has none.
type Listener struct {
	Filters   []string // subscribed to at QoS 0, on every connection
	Receive   func(topic string, payload []byte, retained bool)
	Connected func() // called on every connection, before it subscribes
}

// NewPublisher connects to the first server of cfg that answers. When it returns, the
// broker has answered the subscriptions, or ctx has ended.
func NewPublisher(ctx context.Context, cfg mqtt.Config, qos byte, listen Listener) (*Publisher, error) {
	p := &Publisher{cfg: cfg, qos: qos, listen: listen}
	p.open, p.end = context.WithCancel(context.Background())
	lost, subscribed, err := p.connect(ctx)
	if err != nil {
		p.end()
		return nil, err
	}
	go p.reconnect(lost)
	for _, token := range subscribed {
		_ = wait(ctx, token) // a refused filter has no messages
	}
	return p, nil
}

// connect makes a connection and sends the unacknowledged messages again. lost is
// closed when the connection is lost.
func (p *Publisher) connect(ctx context.Context) (lost chan struct{}, subscribed []paho.Token, err error) {
	lost = make(chan struct{})
	o := Options{lost: func() { close(lost) }}
	if p.listen.Receive != nil { // a broker may also send what nobody has subscribed to
		o.Receive = func(m Message) { p.listen.Receive(m.Topic, m.Payload, m.Retained) }
	}
	c, err := Connect(ctx, p.cfg, o)
	if err != nil {
		return nil, nil, err
	}
	if p.listen.Connected != nil {
		p.listen.Connected()
	}
	for some := range slices.Chunk(p.listen.Filters, mqtt.MaxFilters) {
		subscribed = append(subscribed, c.paho.SubscribeMultiple(mqtt.AtMostOnce(some), nil))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open.Err() != nil {
		c.paho.Disconnect(0)
		return lost, subscribed, nil
	}
	for _, m := range p.inflight {
		m.token = c.paho.Publish(m.topic, p.qos, false, m.payload)
	}
	p.client = c
	return lost, subscribed, nil
}

// reconnect replaces each lost connection, until the publisher is closed. After connections that ended
// without an acknowledgement it waits, and gives up at last: RabbitMQ ends them upon a topic that its
// access list forbids, others upon a message that is too large.
func (p *Publisher) reconnect(lost chan struct{}) {
	for acked, ended := 0, 0; ; {
		select {
		case <-lost:
		case <-p.open.Done():
			return
		}
		p.mu.Lock()
		p.client = nil
		if ended++; p.acked > acked || len(p.inflight) == 0 {
			acked, ended = p.acked, 0
		}
		if ended >= maxUnacknowledged {
			p.failed = exit.With(exit.Broker, fmt.Errorf("the broker ends each connection before it acknowledges the message on %s: may this user publish there, and is it not too large? The broker's log has the reason", p.inflight[0].topic))
		}
		failed := p.failed != nil
		p.mu.Unlock()
		if failed || ended > 0 && timing.Sleep(p.open, min(firstReconnect<<ended, longestReconnect)) != nil {
			return
		}
		var err error
		for pause := firstReconnect; ; pause = min(2*pause, longestReconnect) {
			if lost, _, err = p.connect(p.open); err == nil {
				break
			}
			if timing.Sleep(p.open, pause) != nil {
				return
			}
		}
	}
}

// Publish sends a message once fewer than publisherInflight are unacknowledged. It
// waits for a connection.
func (p *Publisher) Publish(ctx context.Context, topic string, payload []byte) error {
	m := &publish{topic: topic, payload: slices.Clone(payload)}
	for {
		if err := p.waitFor(ctx, publisherInflight-1); err != nil {
			return err
		}
		if p.send(m) {
			return nil
		}
		if err := timing.Sleep(ctx, publisherPolling); err != nil {
			return err
		}
	}
}

// failure returns the error after which there are no more connections.
func (p *Publisher) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// send reports false without a connection.
func (p *Publisher) send(m *publish) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.client == nil {
		return false
	}
	m.token = p.client.paho.Publish(m.topic, p.qos, false, m.payload)
	p.inflight = append(p.inflight, m)
	return true
}

// waitFor waits until at most limit messages are unacknowledged.
func (p *Publisher) waitFor(ctx context.Context, limit int) error {
	for {
		if err := p.failure(); err != nil {
			return err
		}
		token := p.oldest(limit)
		if token == nil {
			return nil
		}
		select {
		case <-token.Done():
		case <-time.After(publisherPolling): // another connection may have replaced the token
			continue
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := p.acknowledge(token); err != nil {
			return err
		}
		if token.Error() != nil { // the next connection sends it again
			if err := timing.Sleep(ctx, publisherPolling); err != nil {
				return err
			}
		}
	}
}

// oldest returns the token of the oldest unacknowledged message, nil if at most
// limit messages are unacknowledged.
func (p *Publisher) oldest(limit int) paho.Token {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.inflight) <= limit {
		return nil
	}
	return p.inflight[0].token
}

// acknowledge removes the oldest message if the broker has acknowledged it. Its
// token is done.
func (p *Publisher) acknowledge(token paho.Token) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch err := token.Error(); {
	case p.inflight[0].token != token: // sent again meanwhile
		return nil
	case err == nil:
		p.inflight = slices.Delete(p.inflight, 0, 1)
		p.acked++
	case p.client != nil && p.client.paho.IsConnectionOpen():
		return exit.With(exit.Broker, fmt.Errorf("publish: %w", err))
	}
	return nil
}

// Drain waits until the broker has acknowledged every message.
func (p *Publisher) Drain(ctx context.Context) error { return p.waitFor(ctx, 0) }

// Close disconnects. Messages that were not drained may be lost.
func (p *Publisher) Close() {
	p.mu.Lock()
	p.end()
	c := p.client
	p.mu.Unlock()
	if c != nil {
		c.paho.Disconnect(publisherClose)
	}
}

// Connected reports whether the publisher has a connection now.
func (p *Publisher) Connected() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.client != nil && p.client.paho.IsConnectionOpen()
}
