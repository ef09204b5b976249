// Package embedded is an MQTT broker inside the process, for the demo and the tests.
package embedded

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"slices"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/packets"
)

// Broker is a running broker.
type Broker struct {
	server      *mochi.Server
	connections *connections
	addr        net.Addr
}

// Options are the settings of a Broker. The zero value accepts every client.
type Options struct {
	TLS   *tls.Config  // of all connections; none if nil
	Hooks []mochi.Hook // change the behaviour of the broker; one of them has to accept the clients. All are accepted if nil
}

// Start starts a broker on addr; "127.0.0.1:0" takes a free port. Callers let it
// listen on the loopback interface.
func Start(addr string, options Options) (*Broker, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	if options.TLS != nil {
		listener = tls.NewListener(listener, options.TLS)
	}
	b := &Broker{
		server:      mochi.New(&mochi.Options{Logger: slog.New(slog.DiscardHandler)}),
		connections: newConnections(listener),
		addr:        listener.Addr(),
	}
	if options.Hooks == nil {
		options.Hooks = []mochi.Hook{new(auth.AllowHook)}
	}
	if err := b.serve(options.Hooks); err != nil {
		listener.Close()
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	return b, nil
}

func (b *Broker) serve(hooks []mochi.Hook) error {
	for _, h := range append(slices.Clip(hooks), new(retained)) {
		if err := b.server.AddHook(h, nil); err != nil {
			return err
		}
	}
	if err := b.server.AddListener(b.connections); err != nil {
		return err
	}
	return b.server.Serve()
}

// URL returns the address for clients.
func (b *Broker) URL() string { return "mqtt://" + b.addr.String() }

// Close disconnects the clients and stops the broker.
func (b *Broker) Close() error {
	// A client that leaves while mochi looks for the clients to disconnect blocks mochi
	// forever (Clients.GetByListener of v2.7.9 locks twice): all have left before.
	b.connections.accepted.refuse()
	for _, c := range b.server.Clients.GetAll() {
		_ = b.server.DisconnectClient(c, packets.ErrServerShuttingDown) // the connection is closed below
	}
	b.connections.accepted.end()
	return b.server.Close()
}
