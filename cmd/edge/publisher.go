package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"edge/stream"
)

const (
	publisherInflight = 16 // messages on their way; brokers allow 20 and more
	drainPoll         = 10 * time.Millisecond
)

// Publisher sends messages to a broker in order, a few at a time, and sends
// again what a lost connection may have taken with it.
type Publisher struct {
	client   mqtt.Client
	store    mqtt.Store // messages that the broker has not acknowledged
	qos      byte
	inflight []mqtt.Token
	resumed  atomic.Bool // a connection was lost: what is in store goes first
}

// NewPublisher connects to the first server of cfg that answers. It subscribes
// watch, if that is not empty, on every connection, and gives heard what comes.
func NewPublisher(ctx context.Context, cfg stream.MQTT, qos byte, watch []string, heard func(topic string, payload []byte, retained bool), connected func()) (*Publisher, error) {
	opts, err := clientOptions(cfg)
	if err != nil {
		return nil, err
	}
	p := &Publisher{store: mqtt.NewOrderedMemoryStore(), qos: qos}
	opts.SetStore(p.store).SetAutoReconnect(true).SetMaxReconnectInterval(time.Second)
	opts.SetConnectionLostHandler(func(mqtt.Client, error) { p.resumed.Store(true) })
	opts.SetDefaultPublishHandler(func(_ mqtt.Client, m mqtt.Message) { heard(m.Topic(), m.Payload(), m.Retained()) })
	opts.SetOnConnectHandler(func(c mqtt.Client) {
		connected()
		filters := map[string]byte{}
		for _, f := range watch {
			filters[f] = 0
		}
		if len(filters) > 0 {
			c.SubscribeMultiple(filters, nil)
		}
	})
	p.client = mqtt.NewClient(opts)
	if err := connectClient(ctx, p.client, cfg); err != nil {
		return nil, err
	}
	return p, nil
}

// connectClient waits for the first connection.
func connectClient(ctx context.Context, client mqtt.Client, cfg stream.MQTT) error {
	token := client.Connect()
	select {
	case <-token.Done():
	case <-ctx.Done():
		client.Disconnect(0)
		return errors.New("connecting to the broker: interrupted")
	}
	if err := token.Error(); err != nil {
		return coded(exitBroker, fmt.Errorf("connect to the broker at %s: %w; is it running, and are address and credentials right?", cfg.Servers, err))
	}
	return nil
}

// clientOptions are those of a short-lived client beside the daemon's own.
func clientOptions(cfg stream.MQTT) (*mqtt.ClientOptions, error) {
	if err := cfg.Validate(); err != nil {
		return nil, coded(exitUsage, fmt.Errorf("broker: %w", err))
	}
	id := make([]byte, 6)
	rand.Read(id)
	opts, err := cfg.ClientOptions("edge-tool-" + hex.EncodeToString(id))
	return opts, coded(exitConfig, err)
}

// Publish sends a message once fewer than publisherInflight are on their way.
// While there is no connection it waits for one.
func (p *Publisher) Publish(ctx context.Context, topic string, payload []byte) error {
	for {
		if p.resumed.Load() || !p.client.IsConnectionOpen() {
			// What the broker did not acknowledge is sent again first: order.
			if err := p.Drain(ctx); err != nil {
				return err
			}
			p.resumed.Store(false)
		}
		if len(p.inflight) < publisherInflight {
			break
		}
		if err := p.settle(ctx); err != nil { // which a lost connection ends too
			return err
		}
	}
	p.inflight = append(p.inflight, p.client.Publish(topic, p.qos, false, payload))
	return nil
}

// settle waits for the oldest message on its way.
func (p *Publisher) settle(ctx context.Context) error {
	token := p.inflight[0]
	select {
	case <-token.Done():
	case <-ctx.Done():
		return ctx.Err()
	}
	p.inflight = append(p.inflight[:0], p.inflight[1:]...)
	err := token.Error()
	if lost := (*net.OpError)(nil); errors.As(err, &lost) {
		p.resumed.Store(true) // the store has it: it is sent again once there is a connection
		return nil
	}
	if err != nil {
		return coded(exitBroker, fmt.Errorf("publish: %w", err))
	}
	return nil
}

// Drain waits until the broker has acknowledged everything.
func (p *Publisher) Drain(ctx context.Context) error {
	for len(p.inflight) > 0 {
		if err := p.settle(ctx); err != nil {
			return err
		}
	}
	// A token is also done when its connection ends; the store knows better.
	poll := time.NewTicker(drainPoll)
	defer poll.Stop()
	for !p.client.IsConnectionOpen() || len(p.store.All()) > 0 {
		select {
		case <-poll.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Close disconnects; what was not drained may be lost.
func (p *Publisher) Close() { p.client.Disconnect(250) }

// Connected reports whether there is a connection now.
func (p *Publisher) Connected() bool { return p.client.IsConnectionOpen() }
