package broker

import (
	"fmt"
	"log/slog"
	"net"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"
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
func (b *Server) Close() error { return b.server.Close() }
