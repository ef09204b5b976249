package brokertest

import (
	"net"
	"sync"
	"testing"

	"edge/internal/broker/embedded"
)

// Broker is a broker that tests stop and start again.
type Broker struct {
	Addr  string
	Start func(t *testing.T, addr string) (stop func())
	Stop  func()
}

// ForEach runs a test against the embedded broker and, with the build tag
// slow, against mosquitto with its default settings.
func ForEach(t *testing.T, test func(t *testing.T, b *Broker)) {
	t.Run("embedded", func(t *testing.T) { test(t, New(t, Embedded)) })
	if Slow {
		WithMosquitto(t, test)
	}
}

// WithMosquitto runs a test against mosquitto alone: the embedded broker loses
// messages that arrive while a client takes its session over, and repeats
// others out of order.
func WithMosquitto(t *testing.T, test func(t *testing.T, b *Broker)) {
	t.Run("mosquitto", func(t *testing.T) { test(t, New(t, Mosquitto)) })
}

// New starts a broker by start on a free port. The end of the test stops it.
func New(t *testing.T, start func(*testing.T, string) func()) *Broker {
	t.Helper()
	b := &Broker{Addr: FreeAddress(t), Start: start}
	b.Stop = start(t, b.Addr)
	t.Cleanup(func() { b.Stop() })
	return b
}

// FreeAddress returns an address of the loopback interface on which nothing listened a moment ago.
func FreeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Embedded starts the embedded broker.
func Embedded(t *testing.T, addr string) (stop func()) {
	t.Helper()
	b, err := embedded.Start(addr, embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return sync.OnceFunc(func() { b.Close() })
}

// URL returns the address for clients.
func (b *Broker) URL() string { return "mqtt://" + b.Addr }

// Restart stops the broker and starts it on the same address.
func (b *Broker) Restart(t *testing.T) {
	b.Stop()
	b.Stop = b.Start(t, b.Addr)
}
