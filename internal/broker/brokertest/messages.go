package brokertest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"edge/internal/broker"
	"edge/stream/mqtt"
)

// Await waits for a message on a topic, retained or not, that is good, and
// returns it, or else the newest.
func Await(t *testing.T, b *Broker, topic string, good func(payload string) bool) (newest string, ok bool) {
	t.Helper()
	var mu sync.Mutex
	pub := Subscribe(t, b.URL(), []string{topic}, func(_ string, payload []byte) {
		mu.Lock()
		defer mu.Unlock()
		if !ok { // an older one that was retained may come after it
			newest, ok = string(payload), good(string(payload))
		}
	})
	defer pub.Close()
	Eventually(func() bool {
		mu.Lock()
		defer mu.Unlock()
		return ok
	})
	mu.Lock()
	defer mu.Unlock()
	return newest, ok
}

// Retained returns the retained message of a topic, "" without one. A broker sends
// retained messages before those that are published later.
func Retained(t *testing.T, broker, topic string) string {
	t.Helper()
	var (
		mu   sync.Mutex
		kept string
		all  bool
	)
	mark := fmt.Sprintf("mark/%016x", rand.Uint64())
	pub := Subscribe(t, broker, []string{topic, mark}, func(on string, payload []byte) {
		mu.Lock()
		defer mu.Unlock()
		if on == mark {
			all = true
		} else if !all {
			kept = string(payload)
		}
	})
	defer pub.Close()
	if err := pub.Publish(t.Context(), mark, nil); err != nil {
		t.Fatal(err)
	}
	if !Eventually(func() bool {
		mu.Lock()
		defer mu.Unlock()
		return all
	}) {
		t.Fatalf("the broker does not send what was published on %s", mark)
	}
	mu.Lock()
	defer mu.Unlock()
	return kept
}

// Subscribe subscribes at QoS 0 and publishes at QoS 1.
func Subscribe(t *testing.T, connection string, filters []string, heard func(topic string, payload []byte)) *broker.Publisher {
	t.Helper()
	pub, err := broker.NewPublisher(t.Context(), Config(connection), 1, broker.Listener{Filters: filters, Receive: func(topic string, payload []byte, _ bool) { heard(topic, payload) }})
	if err != nil {
		t.Fatal(err)
	}
	return pub
}

// Config is the configuration of a client of the broker at an address.
func Config(url string) mqtt.Config {
	cfg := mqtt.DefaultConfig()
	cfg.Servers = []string{url}
	return cfg
}

// Publisher returns a publisher at QoS 1, which is closed at the end of the test.
func Publisher(t testing.TB, url string) *broker.Publisher {
	t.Helper()
	pub, err := broker.NewPublisher(t.Context(), Config(url), 1, broker.Listener{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pub.Close)
	return pub
}

// Retain lets the broker keep a message.
func (b *Broker) Retain(t testing.TB, topic, payload string) {
	t.Helper()
	client, err := broker.Dial(t.Context(), Config(b.URL()), broker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Publish(t.Context(), topic, 1, true, []byte(payload)); err != nil {
		t.Fatalf("publish on %s: %v", topic, err)
	}
}
