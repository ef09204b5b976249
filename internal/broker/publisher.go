package broker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"edge/internal/exit"
	"edge/stream/mqtt"
)

const (
	publisherInflight = 16 // messages on their way; brokers allow 20 and more
	publisherPolling  = 10 * time.Millisecond
	firstReconnect    = 50 * time.Millisecond // doubled
	longestReconnect  = time.Second
)

// Publisher sends messages to a broker in order, a few at a time, and sends
// again what a lost connection may have taken with it. Each connection is a paho
// client of its own: one that reconnects by itself may send what is new before
// what is sent again. One goroutine publishes.
type Publisher struct {
	cfg       mqtt.Config
	qos       byte
	watch     map[string]byte // filters
	heard     func(topic string, payload []byte, retained bool)
	connected func()
	end       chan struct{} // closed by Close

	mu     sync.Mutex
	client paho.Client // of the present connection; nil while there is none
	flying []*flight   // what the broker has not acknowledged, in order
}

// flight is a message on its way.
type flight struct {
	topic   string
	payload []byte
	token   paho.Token
}

// NewPublisher connects to the first server of cfg that answers. It subscribes
// watch, if that is not empty, on every connection, and gives heard what comes.
func NewPublisher(ctx context.Context, cfg mqtt.Config, qos byte, watch []string, heard func(topic string, payload []byte, retained bool), connected func()) (*Publisher, error) {
	p := &Publisher{cfg: cfg, qos: qos, watch: map[string]byte{}, heard: heard, connected: connected, end: make(chan struct{})}
	for _, f := range watch {
		p.watch[f] = 0
	}
	lost, err := p.connect(ctx)
	if err != nil {
		return nil, err
	}
	go p.keep(lost)
	return p, nil
}

// connect makes a connection, and sends again over it what is on its way. lost
// is closed when the connection is.
func (p *Publisher) connect(ctx context.Context) (lost chan struct{}, err error) {
	lost = make(chan struct{})
	one, err := dialTool(ctx, p.cfg, Options{Receive: p.heard, Lost: func() { close(lost) }})
	if err != nil {
		return nil, err
	}
	c := one.paho
	p.connected()
	if len(p.watch) > 0 {
		c.SubscribeMultiple(p.watch, nil)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed() {
		c.Disconnect(0)
		return lost, nil
	}
	for _, f := range p.flying {
		f.token = c.Publish(f.topic, p.qos, false, f.payload)
	}
	p.client = c
	return lost, nil
}

// keep lets another connection follow each that is lost, until the publisher is
// closed.
func (p *Publisher) keep(lost chan struct{}) {
	for {
		select {
		case <-lost:
		case <-p.end:
			return
		}
		p.mu.Lock()
		p.client = nil
		p.mu.Unlock()
		var err error
		for pause := firstReconnect; ; pause = min(2*pause, longestReconnect) {
			if lost, err = p.connect(context.Background()); err == nil {
				break
			}
			select {
			case <-time.After(pause):
			case <-p.end:
				return
			}
		}
	}
}

// Publish sends a message once fewer than publisherInflight are on their way.
// While there is no connection it waits for one.
func (p *Publisher) Publish(ctx context.Context, topic string, payload []byte) error {
	f := &flight{topic: topic, payload: slices.Clone(payload)}
	for {
		if err := p.settle(ctx, publisherInflight-1); err != nil {
			return err
		}
		if p.send(f) {
			return nil
		}
		if err := p.pause(ctx); err != nil {
			return err
		}
	}
}

// send reports false if there is no connection.
func (p *Publisher) send(f *flight) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.client == nil {
		return false
	}
	f.token = p.client.Publish(f.topic, p.qos, false, f.payload)
	p.flying = append(p.flying, f)
	return true
}

func (p *Publisher) pause(ctx context.Context) error {
	select {
	case <-time.After(publisherPolling):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// settle waits until at most most messages are on their way.
func (p *Publisher) settle(ctx context.Context, most int) error {
	for {
		token := p.oldest(most)
		if token == nil {
			return nil
		}
		select {
		case <-token.Done():
		case <-time.After(publisherPolling): // there may be another connection, and another token
			continue
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := p.landed(token); err != nil {
			return err
		}
		if token.Error() != nil { // the next connection sends it again
			if err := p.pause(ctx); err != nil {
				return err
			}
		}
	}
}

// oldest returns the token of the oldest message on its way; nil if there are at
// most most of them.
func (p *Publisher) oldest(most int) paho.Token {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.flying) <= most {
		return nil
	}
	return p.flying[0].token
}

// landed forgets the oldest message once the broker has it. Its token has ended.
func (p *Publisher) landed(token paho.Token) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch err := token.Error(); {
	case p.flying[0].token != token: // it is sent again
		return nil
	case err == nil:
		p.flying = slices.Delete(p.flying, 0, 1)
	case p.client != nil && p.client.IsConnectionOpen():
		return exit.With(exit.Broker, fmt.Errorf("publish: %w", err))
	}
	return nil
}

// Drain waits until the broker has acknowledged everything.
func (p *Publisher) Drain(ctx context.Context) error { return p.settle(ctx, 0) }

// Close disconnects; what was not drained may be lost.
func (p *Publisher) Close() {
	p.mu.Lock()
	if !p.closed() {
		close(p.end)
	}
	c := p.client
	p.mu.Unlock()
	if c != nil {
		c.Disconnect(250)
	}
}

func (p *Publisher) closed() bool {
	select {
	case <-p.end:
		return true
	default:
		return false
	}
}

// Connected reports whether there is a connection now.
func (p *Publisher) Connected() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.client != nil && p.client.IsConnectionOpen()
}
