package broker

import (
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"
)

// Server is an MQTT broker inside this process, for the demo and for tests. It
// accepts every client; callers let it listen on the loopback interface.
type Server struct {
	server *mochi.Server
	addr   net.Addr
}

// StartServer starts a broker on addr; "127.0.0.1:0" takes a free port. Hooks
// change its behaviour.
func StartServer(addr string, log *slog.Logger, hooks ...mochi.Hook) (*Server, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	b := &Server{
		server: mochi.New(&mochi.Options{Logger: log}),
		addr:   listener.Addr(),
	}
	for _, h := range append([]mochi.Hook{new(auth.AllowHook)}, hooks...) {
		if err := b.server.AddHook(h, nil); err != nil {
			listener.Close()
			return nil, fmt.Errorf("embedded broker: %w", err)
		}
	}
	if err := b.server.AddListener(listeners.NewNet("loopback", listener)); err != nil {
		listener.Close()
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	if err := b.server.Serve(); err != nil {
		listener.Close()
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	return b, nil
}

// URL returns the address for clients.
func (b *Server) URL() string { return "mqtt://" + b.addr.String() }

// Close disconnects the clients and stops the broker.
func (b *Server) Close() error {
	// A client that leaves while mochi looks for the clients to disconnect blocks mochi
	// forever (Clients.GetByListener of v2.7.9 locks twice).
	for _, c := range b.server.Clients.GetAll() {
		_ = b.server.DisconnectClient(c, packets.ErrServerShuttingDown) // Close tries again
	}
	for late := time.Now().Add(time.Second); atomic.LoadInt64(&b.server.Info.ClientsConnected) > 0 && time.Now().Before(late); {
		time.Sleep(time.Millisecond)
	}
	return b.server.Close()
}
