package mqtt

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"edge/stream/field"
)

// burstBroker is a broker that sends messages without an end upon each subscription. For the first
// five seconds it drops its answers to what it receives, as mosquitto does where too many packets wait.
type burstBroker struct {
	mu       sync.Mutex
	begun    int // connections
	answered int // publications on topic p that were acknowledged, or had no need of it
	all      sync.WaitGroup
}

func (b *burstBroker) dial(context.Context, *url.URL, *tls.Config, time.Duration) (net.Conn, error) {
	client, broker := net.Pipe()
	b.all.Go(func() { b.serve(broker) })
	b.mu.Lock()
	defer b.mu.Unlock()
	b.begun++
	return client, nil
}

func (b *burstBroker) serve(nc net.Conn) {
	var full atomic.Bool
	serveClient(nc, func(p packets.ControlPacket) bool {
		switch p := p.(type) {
		case *packets.SubscribePacket:
			answer := packets.NewControlPacket(packets.Suback).(*packets.SubackPacket)
			answer.MessageID, answer.ReturnCodes = p.MessageID, make([]byte, len(p.Topics))
			full.Store(true)
			answer.Write(nc)
			b.all.Go(func() {
				for began := time.Now(); ; {
					time.Sleep(100 * time.Millisecond)
					full.Store(time.Since(began) < 5*time.Second)
					if _, err := io.WriteString(nc, "\x31\x04\x00\x01ak"); err != nil {
						return
					}
				}
			})
		case *packets.PublishPacket:
			if full.Load() {
				return true
			}
			if p.Qos > 0 {
				answer := packets.NewControlPacket(packets.Puback).(*packets.PubackPacket)
				answer.MessageID = p.MessageID
				answer.Write(nc)
			}
			if p.TopicName == "p" {
				b.mu.Lock()
				b.answered++
				b.mu.Unlock()
			}
		case *packets.PingreqPacket:
			if !full.Load() {
				io.WriteString(nc, "\xd0\x00")
			}
		}
		return true
	})
}

// burst lets a client publish at the broker for ten minutes.
func (b *burstBroker) burst(t *testing.T, outbox *Outbox, qos int) {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Servers, cfg.QoS, cfg.Keepalive = []string{"mqtt://broker"}, qos, time.Hour
	c := NewClient(Options{
		Config: cfg, StateTopic: "state", Filters: []string{"a"}, QoS: map[string]byte{"a": 0}, Dial: b.dial, Counters: new(Counters), Dropped: new(atomic.Uint64),
		Queue: NewQueue(10, field.MiB, MessageSize), Log: slog.New(slog.DiscardHandler), Event: func(string, string) {},
		Serve: func(ctx context.Context, conn *Conn) { outbox.Serve(ctx, conn) },
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { c.Run(ctx) })
	outbox.Push(&Publication{Topic: "p", QoS: byte(qos)})
	time.Sleep(10 * time.Minute)
	cancel()
	running.Wait()
	b.all.Wait()
}

// A client whose publication the broker did not acknowledge publishes nothing over the
// connections that follow until the broker answers: they last.
func TestPublishesOnceTheBrokerAnswers(t *testing.T) {
	bubble("", t, func(t *testing.T) {
		broker := &burstBroker{}
		broker.burst(t, newTestOutbox(4), 1)
		if broker.begun != 2 || broker.answered != 1 {
			t.Errorf("%d connections, %d publications acknowledged, want 2 and 1", broker.begun, broker.answered)
		}
	})
	bubble("at QoS 0 the pings without an answer are not taken for the one that proves a publication", t, func(t *testing.T) {
		broker, outbox := &burstBroker{}, newTestOutbox(4)
		outbox.culprit.single = 1 // an earlier connection has ended
		broker.burst(t, outbox, 0)
		if broker.begun != 2 || broker.answered != 1 || outbox.culprit.single != 0 {
			t.Errorf("%d connections, %d publications arrived, %d are suspected, want 2, 1 and 0", broker.begun, broker.answered, outbox.culprit.single)
		}
	})
}
