package embedded

import (
	"net"
	"sync"

	"github.com/mochi-mqtt/server/v2/listeners"
)

// connections is a listener that knows its connections, so that a broker can end each
// of them before it ends itself: mochi v2.7.9 does not wait for a connection that it
// has accepted and not yet begun to serve.
type connections struct {
	*listeners.Net
	accepted *accepted
}

func newConnections(l net.Listener) *connections {
	a := &accepted{Listener: l, open: map[net.Conn]bool{}}
	return &connections{Net: listeners.NewNet("loopback", a), accepted: a}
}

func (c *connections) Serve(establish listeners.EstablishFn) {
	c.Net.Serve(func(id string, conn net.Conn) error {
		defer c.accepted.done(conn)
		return establish(id, conn)
	})
}

// accepted is a network listener that knows the connections that are served.
type accepted struct {
	net.Listener

	mu     sync.Mutex
	open   map[net.Conn]bool
	ended  bool
	served sync.WaitGroup
}

func (a *accepted) Accept() (net.Conn, error) {
	conn, err := a.Listener.Accept()
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		conn.Close()
		return nil, net.ErrClosed
	}
	a.open[conn] = true
	a.served.Add(1)
	return conn, nil
}

func (a *accepted) done(conn net.Conn) {
	a.mu.Lock()
	delete(a.open, conn)
	a.mu.Unlock()
	a.served.Done()
}

// refuse lets no further connection in.
func (a *accepted) refuse() {
	a.mu.Lock()
	a.ended = true
	a.mu.Unlock()
	a.Listener.Close()
}

// end closes all connections, and returns when none is served.
func (a *accepted) end() {
	a.mu.Lock()
	for conn := range a.open {
		conn.Close()
	}
	a.mu.Unlock()
	a.served.Wait()
}
