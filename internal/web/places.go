package web

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	maxConnections = 128 // that are open at a time
	MaxFromAddress = 96  // of them from one address
	sendBuffer     = 64 << 10
	firstWithin    = 20 * time.Millisecond  // for the first byte to come
	unreadWithin   = 250 * time.Millisecond // for bytes that have arrived to be read
	lookForPlace   = 5 * time.Millisecond
)

// places is a TCP listener that bounds its open connections, in all and for each
// address. When all places are taken, a new connection gets the place of one
// whose request is not being handled: of the address that has most of them, the
// one that has been silent longest. No client can therefore keep others out by
// connections that it does not use, also not from the same address.
type places struct {
	net.Listener
	max, each int // connections: in all, from one address
	stats     *httpStats

	mu     sync.Mutex
	open   map[*place]struct{}
	closed chan struct{} // by Close
	once   sync.Once
}

// place is an open connection of places.
type place struct {
	*net.TCPConn
	of   *places
	from netip.Prefix

	// Guarded by of.mu.
	heard   time.Time // when it was opened, the last byte came or a request was done
	spoke   bool      // a byte has come
	serving bool      // a request is being handled
}

func newPlaces(l net.Listener, most, each int, stats *httpStats) *places {
	return &places{Listener: l, max: most, each: each, stats: stats, open: map[*place]struct{}{}, closed: make(chan struct{})}
}

// Accept returns the next connection once there is a place for it. It waits for
// one no longer than unreadWithin, as long as fewer requests than places are
// handled at a time.
func (p *places) Accept() (net.Conn, error) {
	conn, err := p.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		conn.Close()
		return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: p.Addr(), Err: net.UnknownNetworkError(conn.LocalAddr().Network())}
	}
	_ = tcp.SetWriteBuffer(sendBuffer) // else the system's own bound holds
	c := &place{TCPConn: tcp, of: p, from: sourceOf(conn.RemoteAddr().String())}
	for {
		admitted, silent := p.admit(c)
		switch {
		case admitted:
			return c, nil
		case silent != nil:
			p.stats.refuse(refusedPlace)
			silent.Close()
			continue
		}
		select {
		case <-time.After(lookForPlace):
		case <-p.closed:
			conn.Close()
			return nil, net.ErrClosed
		}
	}
}

// Close stops listening; connections stay open.
func (p *places) Close() error {
	p.once.Do(func() { close(p.closed) })
	return p.Listener.Close()
}

// admit gives a connection a place if there is one. Otherwise it returns the
// connection to close for it, nil if there is none at the moment.
func (p *places) admit(c *place) (admitted bool, silent *place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	held := map[netip.Prefix]int{}
	for other := range p.open {
		held[other.from]++
	}
	own := held[c.from] >= p.each // then it takes the place of one of its own address
	now := time.Now()
	if !own && len(p.open) < p.max {
		c.heard = now
		p.open[c] = struct{}{}
		p.stats.connected(1)
		return true, nil
	}
	var waiting []*place
	for other := range p.open {
		if !other.serving && (!own || other.from == c.from) {
			waiting = append(waiting, other)
		}
	}
	slices.SortFunc(waiting, func(a, b *place) int {
		return cmp.Or(cmp.Compare(held[b.from], held[a.from]), a.heard.Compare(b.heard))
	})
	for _, other := range waiting {
		if !other.arriving(now) {
			return false, other
		}
	}
	return false, nil
}

// arriving reports whether a request is on its way: a connection that is new has
// a moment to send one, and what has arrived is to be read first. c.of.mu is held.
func (c *place) arriving(now time.Time) bool {
	age := now.Sub(c.heard)
	return !c.spoke && age < firstWithin || age < unreadWithin && unread(c.TCPConn)
}

func (c *place) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if n > 0 {
		c.of.mu.Lock()
		c.heard, c.spoke = time.Now(), true
		c.of.mu.Unlock()
	}
	return n, err
}

func (c *place) Close() error {
	c.of.mu.Lock()
	if _, ok := c.of.open[c]; ok {
		delete(c.of.open, c)
		c.of.stats.connected(-1)
	}
	c.of.mu.Unlock()
	return c.TCPConn.Close()
}

// serve keeps the place until done is called: a request is being handled.
func (c *place) serve() (done func()) {
	set := func(serving bool) {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		c.serving, c.heard = serving, time.Now()
	}
	set(true)
	return func() { set(false) }
}

// sourceOf returns where host:port is, as far as one client can be told from
// another: an address of IPv4, a /64 of IPv6. The zero value is an unknown address.
func sourceOf(hostport string) netip.Prefix {
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
