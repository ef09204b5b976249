package mqtt

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

func TestDefaultClientID(t *testing.T) {
	id := DefaultClientID("pi4-hall")
	if id != DefaultClientID("pi4-hall") || !strings.HasPrefix(id, "edge-pi4-hall-") || len(id) != len("edge-pi4-hall-0000") {
		t.Errorf("default client id %q", id)
	}
}

var _ net.Conn = (*frameConn)(nil)

// An attempt that fails as an earlier one is not logged, though its local port differs, or the
// time at which a certificate was not valid.
func TestFailureIsLoggedOnce(t *testing.T) {
	reset := func(port int, why error) error {
		local, broker := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8883}
		return fmt.Errorf("mqtt: connect: %w", &net.OpError{Op: "read", Net: "tcp", Source: local, Addr: broker, Err: why})
	}
	var log bytes.Buffer
	c := NewClient(Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Counters: new(Counters)})
	for _, err := range []error{reset(40001, syscall.ECONNRESET), reset(40002, syscall.ECONNRESET), reset(40003, io.EOF), reset(40004, syscall.ECONNRESET), reset(40005, io.EOF), errors.New("no ->")} {
		c.failed(err)
	}
	if n := strings.Count(log.String(), "cannot connect"); n != 3 {
		t.Errorf("%d attempts are logged, want 3:\n%s", n, &log)
	}
	for _, now := range []string{"1970-01-01T00:00:07Z", "1970-01-01T00:00:09Z"} {
		c.failed(errors.New("x509: certificate has expired or is not yet valid: current time " + now + " is before 2026-11-28T22:31:48Z"))
	}
	if n := strings.Count(log.String(), "not yet valid"); n != 1 {
		t.Errorf("%d attempts with the same certificate are logged, want 1:\n%s", n, &log)
	}
	c.failed(reset(40006, io.EOF))
	if want := "mqtt: connect: read tcp 127.0.0.1:8883: EOF"; *c.failure.Load() != want {
		t.Errorf("the failure is %q, want %q", *c.failure.Load(), want)
	}
}

// Of connections that do not last, the first is logged with its end; then the next that lasts.
func TestShortConnectionsAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lengths := []time.Duration{0, 0, 0, 2 * shortConnection, 0, 0, 0, 0}
		var log bytes.Buffer
		var all sync.WaitGroup
		cfg := DefaultConfig()
		cfg.Servers = []string{"mqtt://broker"}
		dial := func(context.Context, *url.URL, *tls.Config, time.Duration) (net.Conn, error) {
			if len(lengths) == 0 {
				return nil, io.ErrClosedPipe
			}
			client, broker := net.Pipe()
			length := lengths[0]
			lengths = lengths[1:]
			all.Go(func() {
				defer broker.Close()
				packets.ReadPacket(broker)
				io.WriteString(broker, "\x20\x02\x00\x00")
				time.Sleep(length)
			})
			return client, nil
		}
		c := NewClient(Options{
			Config: cfg, Dial: dial, Counters: new(Counters), Log: slog.New(slog.NewTextHandler(&log, nil)),
			Event: func(string, string) {}, Serve: func(context.Context, *Conn) {},
		})
		ctx, stop := context.WithCancel(t.Context())
		all.Go(func() { c.Run(ctx) })
		time.Sleep(time.Hour)
		stop()
		all.Wait()
		for line, want := range map[string]int{"connection to the broker lost": 2, "connection lasts": 1, "cannot connect": 1} {
			if n := strings.Count(log.String(), line); n != want || c.Counters.Reconnects.Load() != 8 {
				t.Errorf("%q is logged %d times, want %d, of %d losses:\n%s", line, n, want, c.Counters.Reconnects.Load(), &log)
			}
		}
	})
}

// A broker that takes longer for CONNACK than the first attempts wait is given more time.
func TestSlowConnack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		cfg := DefaultConfig()
		cfg.Servers = []string{"mqtt://broker"}
		c := NewClient(Options{
			Config: cfg, Counters: new(Counters), Log: slog.New(slog.DiscardHandler), Event: func(string, string) {}, Serve: func(context.Context, *Conn) {},
			Dial: func(_ context.Context, _ *url.URL, _ *tls.Config, timeout time.Duration) (net.Conn, error) {
				if timeout != connectTimeout {
					t.Errorf("a dead address is waited for %s", timeout)
				}
				client, broker := net.Pipe()
				all.Go(func() {
					defer broker.Close()
					packets.ReadPacket(broker)
					time.Sleep(35 * time.Second)
					if _, err := io.WriteString(broker, "\x20\x02\x00\x00"); err == nil {
						io.Copy(io.Discard, broker)
					}
				})
				return client, nil
			},
		})
		ctx, stop := context.WithCancel(t.Context())
		all.Go(func() { c.Run(ctx) })
		time.Sleep(110 * time.Second) // three attempts of 10, 20 and 30 s, pauses, and the fourth
		if c.Counters.ConnectFailures.Load() != 3 || c.current.Load() == nil {
			t.Errorf("%d attempts failed, want 3; connected: %t", c.Counters.ConnectFailures.Load(), c.current.Load() != nil)
		}
		stop()
		all.Wait()
	})
}

// A broker that ends the connection before its first packet may expect TLS, or the reverse.
func TestAdviceOfAnotherPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for nc, err := l.Accept(); err == nil; nc, err = l.Accept() {
			nc.Close()
		}
	}()
	for _, scheme := range []string{"mqtt", "mqtts"} {
		cfg := DefaultConfig()
		cfg.Servers = []string{scheme + "://" + l.Addr().String()}
		c := NewClient(Options{Config: cfg, ConnectTimeout: time.Minute, Dial: Dial, Counters: new(Counters)})
		if _, err := c.connect(t.Context()); err == nil || !strings.Contains(err.Error(), "its port the one for TLS (mqtts) or without (mqtt)?") {
			t.Errorf("%s: %v", scheme, err)
		}
	}
}

// abortedConn accepts the client once its context has ended, and has closed it.
type abortedConn struct {
	net.Conn
	end    func()
	closed chan struct{}
	once   sync.Once
	left   []byte // of CONNACK
}

func (c *abortedConn) Read(p []byte) (int, error) {
	c.end()
	<-c.closed
	if len(c.left) == 0 {
		return 0, net.ErrClosed
	}
	n := copy(p, c.left)
	c.left = c.left[n:]
	return n, nil
}

func (c *abortedConn) Write(p []byte) (int, error) { return len(p), nil }

func (c *abortedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

// A connection that a stop closes at the moment of its CONNACK is not used: its end is never
// reported, and the stop would wait for the answer to a subscription.
func TestStoppedAtConnack(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	near, far := net.Pipe()
	defer far.Close()
	aborted := &abortedConn{Conn: near, end: end, closed: make(chan struct{}), left: []byte{0x20, 2, 0, 0}}
	cfg := DefaultConfig()
	cfg.Servers = []string{"mqtt://broker"}
	dial := func(context.Context, *url.URL, *tls.Config, time.Duration) (net.Conn, error) { return aborted, nil }
	c := NewClient(Options{Config: cfg, Dial: dial, Counters: new(Counters)})
	if conn, err := c.connect(ctx); conn != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("connect: %v, %v, want no connection, and %v", conn, err, context.Canceled)
	}
}

// Deferred messages are bounded: the oldest make room for the newest, and are counted.
func TestDeferredAreBounded(t *testing.T) {
	c := NewClient(Options{Deferred: NewQueue(3, 1<<20, func(*Message) int { return 1 }), Counters: new(Counters)})
	for i := range 5 {
		c.deferMessage(&Message{ID: uint16(i)})
	}
	c.deferMessage(&Message{ID: 5, Dup: true}) // it had its answer when it came first
	var left []uint16
	for m, ok := c.Deferred.Pop(); ok; m, ok = c.Deferred.Pop() {
		left = append(left, m.ID)
	}
	if n := c.Counters.DeferredDropped.Load(); !slices.Equal(left, []uint16{2, 3, 4}) || n != 2 {
		t.Errorf("%v are left, %d dropped", left, n)
	}
}

// The port of a server may be left out.
func TestServerPorts(t *testing.T) {
	for scheme, port := range map[string]string{"tcp": "1883", "mqtt": "1883", "mqtts": "8883", "ssl": "8883", "ws": "80", "wss": "443"} {
		if got := serverPorts[scheme]; got != port {
			t.Errorf("usual port of %s is %s, want %s", scheme, got, port)
		}
	}
}

// Short connections in a row tell of another client with the same identifier, unless
// something else has ended them.
func TestMayBeTaken(t *testing.T) {
	now := time.Now()
	for name, tc := range map[string]struct {
		slept           time.Duration // of the machine
		broken, culprit bool
		lasted          time.Duration
		want            bool
	}{
		"short":            {0, false, false, time.Second, true},
		"long":             {0, false, false, time.Minute, false},
		"a protocol error": {0, true, false, time.Second, false},
		"a publication":    {0, false, true, time.Second, false},
		"slept":            {time.Minute, false, false, time.Second, false},
		"a clock set back": {-time.Hour, false, false, time.Second, true},
	} {
		conn := Conn{since: now, sinceWall: now.Round(0).Add(-tc.slept), culprit: tc.culprit}
		if got := conn.mayBeTaken(tc.broken, tc.lasted); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
