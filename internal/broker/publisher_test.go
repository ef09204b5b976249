package broker_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"
	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	served "github.com/mochi-mqtt/server/v2/packets"

	"edge/internal/broker"
	"edge/internal/broker/brokertest"
	"edge/internal/broker/embedded"
	"edge/stream/mqtt"
)

// subscriptions notes how many filters each SUBSCRIBE has.
type subscriptions struct {
	mochi.HookBase
	filters chan int
}

func (s *subscriptions) Provides(b byte) bool { return b == mochi.OnSubscribe }

func (s *subscriptions) OnSubscribe(_ *mochi.Client, p served.Packet) served.Packet {
	s.filters <- len(p.Filters)
	return p
}

// AWS IoT Core ends the connection when a packet has more than 8 filters.
func TestPublisherSubscribesInSmallPackets(t *testing.T) {
	seen := &subscriptions{filters: make(chan int, 100)}
	b, err := embedded.Start(brokertest.FreeAddress(t), embedded.Options{Hooks: []mochi.Hook{new(auth.AllowHook), seen}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var filters []string
	for i := range 20 {
		filters = append(filters, fmt.Sprint("t/", i))
	}
	pub, err := broker.NewPublisher(t.Context(), brokertest.Config(b.URL()), 0, broker.Listener{Filters: filters, Receive: func(string, []byte, bool) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer pub.Close()
	for n := 0; n < len(filters); {
		one := <-seen.filters
		if n += one; one > 8 {
			t.Errorf("a SUBSCRIBE has %d filters", one)
		}
	}
}

// forbidding is a broker that ends the connection upon a message on the topic forbidden, as RabbitMQ does.
type forbidding struct{ mochi.HookBase }

func (forbidding) Provides(b byte) bool { return b == mochi.OnPublish }

func (forbidding) OnPublish(client *mochi.Client, p served.Packet) (served.Packet, error) {
	if p.TopicName == "forbidden" {
		client.Stop(errors.New("forbidden"))
		return p, served.ErrNotAuthorized
	}
	return p, nil
}

// A publisher whose message ends each connection says so, and does not connect for ever.
func TestPublisherGivesUp(t *testing.T) {
	t.Parallel()
	b, err := embedded.Start(brokertest.FreeAddress(t), embedded.Options{Hooks: []mochi.Hook{new(auth.AllowHook), new(forbidding)}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	pub, err := broker.NewPublisher(t.Context(), brokertest.Config(b.URL()), 1, broker.Listener{})
	if err != nil {
		t.Fatal(err)
	}
	defer pub.Close()
	for _, topic := range []string{"allowed", "forbidden"} {
		if err := pub.Publish(t.Context(), topic, []byte("1")); err != nil {
			t.Fatal(err)
		}
	}
	if err := pub.Drain(t.Context()); err == nil || !strings.Contains(err.Error(), "the broker ends each connection before it acknowledges the message on forbidden: may") {
		t.Errorf("%v", err)
	}
	if err := pub.Publish(t.Context(), "allowed", nil); err == nil {
		t.Error("a publisher that has given up takes a message")
	}
}

// TestPublisherKeepsOrder: a broker that is restarted several times receives every
// message, and new ones after those that a lost connection may have lost.
func TestPublisherKeepsOrder(t *testing.T) {
	b := brokertest.New(t, brokertest.Keeping(t.TempDir()))
	var (
		mu         sync.Mutex
		got        int // numbers 1 to got have arrived
		misordered []string
	)
	listener := paho.NewClient(paho.NewClientOptions().AddBroker("tcp://" + b.Addr).SetClientID("listener").
		SetCleanSession(false).SetMaxReconnectInterval(100 * time.Millisecond).
		SetDefaultPublishHandler(func(_ paho.Client, m paho.Message) {
			n, _ := strconv.Atoi(string(m.Payload()))
			mu.Lock()
			defer mu.Unlock()
			if n > got+1 {
				misordered = append(misordered, fmt.Sprintf("%d after %d", n, got))
			}
			got = max(got, n)
		}))
	if token := listener.Connect(); token.Wait() && token.Error() != nil {
		t.Fatal(token.Error())
	}
	defer listener.Disconnect(0)
	listener.Subscribe("numbers", 1, nil).Wait()

	pub := brokertest.Publisher(t, b.URL())
	restarted := make(chan struct{})
	go func() {
		defer close(restarted)
		for range brokertest.Brief(12, 3) {
			mu.Lock()
			before := got
			mu.Unlock()
			if !brokertest.Eventually(func() bool { // while messages are on their way
				mu.Lock()
				defer mu.Unlock()
				return got > before+100
			}) {
				t.Error("no message arrives between two restarts")
			}
			b.Restart(t)
		}
	}()
	sent := 0
	for more := true; more; {
		select {
		case <-restarted:
			more = false
		default:
		}
		sent++
		if err := pub.Publish(t.Context(), "numbers", []byte(strconv.Itoa(sent))); err != nil {
			t.Fatal(err)
		}
	}
	if err := pub.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return got == sent
	}
	if !brokertest.Eventually(all) {
		t.Errorf("%d of %d messages arrived", got, sent)
	}
	if len(misordered) > 0 {
		t.Errorf("out of order: %q", misordered)
	}
}

// What others publish once NewPublisher has returned arrives: the broker has answered the
// subscription before, however long that takes it.
func TestPublisherIsSubscribed(t *testing.T) {
	var answered atomic.Bool
	cfg := mqtt.DefaultConfig()
	cfg.Servers = []string{brokertest.Scripted(t, func(p packets.ControlPacket, send func(packets.ControlPacket)) {
		switch p := p.(type) {
		case *packets.ConnectPacket:
			send(packets.NewControlPacket(packets.Connack))
		case *packets.SubscribePacket:
			time.Sleep(100 * time.Millisecond) // less only lets the test miss an error
			answered.Store(true)
			send(brokertest.Suback(p, 0x80))
		}
	})}
	pub, err := broker.NewPublisher(t.Context(), cfg, 1, broker.Listener{Filters: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	defer pub.Close()
	if !answered.Load() {
		t.Error("it returns before the broker has answered the subscription")
	}
}

// A broker may send messages to which nobody has subscribed; a publisher without subscriptions drops them.
func TestPublisherIsSentAMessage(t *testing.T) {
	cfg := brokertest.Config(brokertest.Scripted(t, func(asked packets.ControlPacket, send func(packets.ControlPacket)) {
		switch p := asked.(type) {
		case *packets.ConnectPacket:
			send(packets.NewControlPacket(packets.Connack))
		case *packets.PublishPacket:
			message := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
			message.TopicName = "edge/pi1/state"
			send(message)
			answer := packets.NewControlPacket(packets.Puback).(*packets.PubackPacket)
			answer.MessageID = p.MessageID
			send(answer)
		}
	}))
	p, err := broker.NewPublisher(t.Context(), cfg, 1, broker.Listener{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for range 10 { // the later ones are acknowledged behind the messages before
		if err := p.Publish(t.Context(), "sensors/a", nil); err != nil {
			t.Fatal(err)
		}
		if err := p.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
