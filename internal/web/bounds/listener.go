package bounds

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	sendBuffer      = 64 << 10
	firstByteWithin = 20 * time.Millisecond  // for the first byte to arrive
	unreadWithin    = 250 * time.Millisecond // for bytes that have arrived to be read
	retryAdmission  = 5 * time.Millisecond
)

// Stats counts the connections of a Listener.
type Stats interface {
	Connected(change int) // the number of open connections has changed
	Replaced()            // a connection was closed for a new one
}

// Listener is a TCP listener that bounds its open connections, in total and
// for each address. At the bound a new connection replaces one without a request in
// progress: of the address with the most connections, the one that has been silent
// longest. No client can therefore keep others out by connections that it does not
// use, not even others at its own address.
type Listener struct {
	net.Listener
	max, each int // connections: in total, from one address
	stats     Stats

	mu     sync.Mutex
	open   map[*Conn]struct{}
	closed chan struct{} // by Close
	once   sync.Once
}

// Conn is an open connection of a Listener.
type Conn struct {
	*net.TCPConn
	of   *Listener
	from netip.Prefix

	// Guarded by of.mu.
	active   time.Time // when it was opened, the last byte arrived or a request ended
	received bool      // a byte has arrived
	serving  bool      // a request is in progress
}

// NewListener bounds the connections of l to limit, and to each from one
// address.
func NewListener(l net.Listener, limit, each int, stats Stats) *Listener {
	return &Listener{Listener: l, max: limit, each: each, stats: stats, open: map[*Conn]struct{}{}, closed: make(chan struct{})}
}

// Accept returns the next connection once it is admitted. That takes no longer than
// unreadWithin while fewer requests are in progress than connections are allowed.
func (l *Listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		conn.Close()
		return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.Addr(), Err: net.UnknownNetworkError(conn.LocalAddr().Network())}
	}
	_ = tcp.SetWriteBuffer(sendBuffer) // else the system's own bound holds
	c := &Conn{TCPConn: tcp, of: l, from: SourceOf(conn.RemoteAddr().String())}
	for {
		admitted, silent := l.admit(c)
		switch {
		case admitted:
			return c, nil
		case silent != nil:
			l.stats.Replaced()
			silent.Close()
			continue
		}
		select {
		case <-time.After(retryAdmission):
		case <-l.closed:
			conn.Close()
			return nil, net.ErrClosed
		}
	}
}

// Close stops listening. Connections stay open.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// admit adds a connection if the bounds allow it. Otherwise it returns the connection
// to close first, nil if no connection may be closed now.
func (l *Listener) admit(c *Conn) (admitted bool, silent *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := map[netip.Prefix]int{}
	for other := range l.open {
		held[other.from]++
	}
	own := held[c.from] >= l.each // then it replaces one of its own address
	now := time.Now()
	if !own && len(l.open) < l.max {
		c.active = now
		l.open[c] = struct{}{}
		l.stats.Connected(1)
		return true, nil
	}
	var waiting []*Conn
	for other := range l.open {
		if !other.serving && (!own || other.from == c.from) {
			waiting = append(waiting, other)
		}
	}
	slices.SortStableFunc(waiting, func(a, b *Conn) int {
		return cmp.Or(cmp.Compare(held[b.from], held[a.from]), a.active.Compare(b.active))
	})
	for _, other := range waiting {
		if !other.arriving(now) {
			return false, other
		}
	}
	return false, nil
}

// arriving reports whether a request may be on its way: a new connection has
// firstByteWithin to send one, and arrived bytes are read first. c.of.mu is held.
func (c *Conn) arriving(now time.Time) bool {
	age := now.Sub(c.active)
	return !c.received && age < firstByteWithin || age < unreadWithin && unread(c.TCPConn)
}

// Read notes the time of the last byte.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if n > 0 {
		c.of.mu.Lock()
		c.active, c.received = time.Now(), true
		c.of.mu.Unlock()
	}
	return n, err
}

// Close removes the connection from the listener.
func (c *Conn) Close() error {
	c.of.mu.Lock()
	if _, ok := c.of.open[c]; ok {
		delete(c.of.open, c)
		c.of.stats.Connected(-1)
	}
	c.of.mu.Unlock()
	return c.TCPConn.Close()
}

// Serve protects the connection from replacement until done is called.
func (c *Conn) Serve() (done func()) {
	set := func(serving bool) {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		c.serving, c.active = serving, time.Now()
	}
	set(true)
	return func() { set(false) }
}

// connKey is the key of a connection in a context.
type connKey struct{}

// ConnContext puts a connection of a Listener, or one of TLS over it, into the context of its
// requests, as ConnContext of http.Server.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if encrypted, ok := c.(*tls.Conn); ok {
		c = encrypted.NetConn()
	}
	return context.WithValue(ctx, connKey{}, c)
}

// ConnOf returns the connection of a request by its context, nil on another kind of listener.
func ConnOf(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}

// SourceOf returns the network of one client at host:port: an IPv4 address, or a /64
// of IPv6. The zero value is an unknown address.
func SourceOf(hostport string) netip.Prefix {
	at, err := netip.ParseAddrPort(hostport)
	if err != nil {
		return netip.Prefix{}
	}
	addr, bits := at.Addr().Unmap().WithZone(""), 64
	if addr.Is4() {
		bits = 32
	}
	return netip.PrefixFrom(addr, bits).Masked()
}
