package simulation

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"time"
)

// sendBuffer is the number of bytes that a connection buffers while the peer reads none.
const sendBuffer = 64 << 10

// segment is the largest number of bytes that arrive at once.
const segment = 512

// slowNetwork is a bandwidth, in bytes a second, at which a stopping node cannot publish
// all its messages in time.
const slowNetwork = 50_000

// network connects the node with the broker. It has latency and bandwidth, breaks
// connections after any byte, and stalls them without notice.
type network struct {
	world     *scene
	rng       *rand.Rand
	bandwidth int // bytes a second
	latency   time.Duration
	links     []*link
}

func newNetwork(w *world) *network {
	rng := w.random("network")
	return &network{world: w.scene, rng: rng, bandwidth: pick(rng, slowNetwork, 10_000_000), latency: pick(rng, 100*time.Microsecond, 5*time.Millisecond, 80*time.Millisecond)}
}

// dialer returns a function that opens connections to the broker for one process of
// the node.
func (n *network) dialer(l *process) func(context.Context, *url.URL, *tls.Config, time.Duration) (net.Conn, error) {
	return func(ctx context.Context, _ *url.URL, _ *tls.Config, within time.Duration) (net.Conn, error) {
		select {
		case <-time.After(2 * n.delay()):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		n.world.mu.Lock()
		defer n.world.mu.Unlock()
		if l.killed || l.world.refusing || n.world.broker.down {
			return nil, errors.New("connection refused")
		}
		k := &link{network: n, process: l}
		k.up, k.down = &pipe{link: k, deliver: k.toBroker}, &pipe{link: k, deliver: k.toClient}
		k.client = &conn{link: k, changed: make(chan struct{}, 1)}
		k.peer = n.world.broker.accept(k)
		n.links = append(n.links, k)
		n.world.log("dial")
		return k.client, nil
	}
}

// delay returns the latency of a packet, which differs for every packet.
func (n *network) delay() time.Duration {
	n.world.mu.Lock()
	defer n.world.mu.Unlock()
	return n.jitter()
}

func (n *network) jitter() time.Duration {
	return n.latency + time.Duration(n.rng.Int64N(int64(n.latency)))
}

// link is a connection between a node and the broker. World.mu guards it.
type link struct {
	network  *network
	process  *process // that opened it
	client   *conn
	peer     *peer
	up, down *pipe
	stalled  bool // no bytes arrive, and neither end can detect it
	broken   bool
}

// pipe is one direction of a link.
type pipe struct {
	link      *link
	deliver   func([]byte) // nil: the end
	inTransit []chunk
	bytes     int       // of inTransit
	free      time.Time // when the line is free
	ended     bool      // the sender has closed it
}

type chunk struct {
	data []byte // nil: the end
}

// send transmits data in segments; nil is the end.
func (p *pipe) send(data []byte) {
	if p.ended || p.link.broken {
		return
	}
	p.ended = data == nil
	for len(data) > segment {
		p.carry(data[:segment])
		data = data[segment:]
	}
	p.carry(data)
}

func (p *pipe) carry(data []byte) {
	n := p.link.network
	now := time.Now()
	if p.free.Before(now) {
		p.free = now
	}
	p.free = p.free.Add(time.Duration(len(data))*time.Second/time.Duration(n.bandwidth) + time.Duration(1+n.rng.Int64N(1000)))
	at := p.free.Add(n.jitter() - n.latency/2)
	if at.Before(p.free) {
		at = p.free
	}
	p.free = at.Add(-n.latency / 2)
	p.inTransit = append(p.inTransit, chunk{data})
	p.bytes += len(data)
	time.AfterFunc(at.Sub(now), func() {
		n.world.mu.Lock()
		defer n.world.mu.Unlock()
		p.arrive()
	})
}

// arrive delivers the first chunk in transit.
func (p *pipe) arrive() {
	if p.link.broken || p.link.stalled || len(p.inTransit) == 0 {
		return
	}
	c := p.inTransit[0]
	p.inTransit = p.inTransit[1:]
	p.bytes -= len(c.data)
	p.deliver(c.data)
	p.link.client.wake()
}

// flush delivers the first n bytes in transit, and drops the others.
func (p *pipe) flush(n int) {
	for _, c := range p.inTransit {
		if c.data == nil || n == 0 {
			break
		}
		part := c.data[:min(n, len(c.data))]
		n -= len(part)
		p.deliver(part)
	}
	p.inTransit, p.bytes = nil, 0
}

func (k *link) toBroker(data []byte) {
	if data == nil {
		k.network.world.broker.disconnect(k.peer)
		return
	}
	k.network.world.broker.receive(k.peer, data)
}

func (k *link) toClient(data []byte) {
	if data == nil {
		k.client.err = io.EOF
		return
	}
	k.client.in = append(k.client.in, data...)
	k.client.read += len(data)
}

// cut ends a connection after any byte in each direction.
func (k *link) cut() {
	if k.broken {
		return
	}
	rng := k.network.rng
	up, down := rng.IntN(k.up.bytes+1), rng.IntN(k.down.bytes+1)
	if rng.IntN(3) == 0 { // all or no bytes arrive, such as a group of acknowledgements
		up = pick(rng, 0, k.up.bytes)
	}
	k.network.world.log("cut %d %d", up, down)
	k.down.flush(down)
	k.up.flush(up)
	k.end(errors.New("connection reset by peer"))
}

// end breaks a connection, and loses the bytes in transit.
func (k *link) end(err error) {
	if k.broken {
		return
	}
	k.broken = true
	k.client.err = err
	k.network.world.broker.disconnect(k.peer)
	k.client.wake()
}

// conn is the node's end of a link.
type conn struct {
	link    *link
	in      []byte
	read    int   // bytes that have arrived
	err     error // returned after in
	closed  bool
	changed chan struct{} // receives an element after a change

	readBy, writeBy time.Time
}

func (c *conn) wake() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	mu := &c.link.network.world.mu
	mu.Lock()
	defer mu.Unlock()
	for {
		select {
		case <-c.changed:
		default:
		}
		switch {
		case c.closed:
			return 0, net.ErrClosed
		case len(c.in) > 0:
			n := copy(p, c.in)
			c.in = c.in[n:]
			return n, nil
		case c.err != nil:
			return 0, c.err
		}
		if err := c.pause(c.readBy); err != nil {
			return 0, err
		}
	}
}

// pause unlocks world.mu until a change or a deadline.
func (c *conn) pause(by time.Time) error {
	mu := &c.link.network.world.mu
	var late <-chan time.Time
	if !by.IsZero() {
		if !time.Now().Before(by) {
			return os.ErrDeadlineExceeded
		}
		timer := time.NewTimer(time.Until(by))
		defer timer.Stop()
		late = timer.C
	}
	mu.Unlock()
	defer mu.Lock()
	select {
	case <-c.changed:
	case <-late:
	}
	return nil
}

// Write implements net.Conn. On a stalled link it accepts as many bytes as fit in the
// buffer.
func (c *conn) Write(p []byte) (int, error) {
	mu := &c.link.network.world.mu
	mu.Lock()
	defer mu.Unlock()
	for c.link.up.bytes > sendBuffer && !c.closed && c.err == nil {
		if !c.writeBy.IsZero() && !time.Now().Before(c.writeBy) {
			return 0, os.ErrDeadlineExceeded
		}
		mu.Unlock()
		time.Sleep(10 * time.Millisecond)
		mu.Lock()
	}
	switch {
	case c.closed || c.link.up.ended:
		return 0, net.ErrClosed
	case c.err != nil && c.err != io.EOF:
		return 0, c.err
	}
	c.link.up.send(append([]byte{}, p...))
	return len(p), nil
}

// CloseWrite sends the end after all written bytes.
func (c *conn) CloseWrite() error {
	mu := &c.link.network.world.mu
	mu.Lock()
	defer mu.Unlock()
	c.link.up.send(nil)
	return nil
}

// Close implements net.Conn.
func (c *conn) Close() error {
	mu := &c.link.network.world.mu
	mu.Lock()
	defer mu.Unlock()
	if !c.closed {
		c.closed = true
		c.link.up.send(nil)
		c.wake()
	}
	return nil
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *conn) SetReadDeadline(t time.Time) error {
	mu := &c.link.network.world.mu
	mu.Lock()
	defer mu.Unlock()
	c.readBy = t
	c.wake()
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	mu := &c.link.network.world.mu
	mu.Lock()
	defer mu.Unlock()
	c.writeBy = t
	return nil
}

// LocalAddr and RemoteAddr implement net.Conn.
func (c *conn) LocalAddr() net.Addr  { return &net.TCPAddr{} }
func (c *conn) RemoteAddr() net.Addr { return &net.TCPAddr{} }
