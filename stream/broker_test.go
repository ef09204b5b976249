package stream

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	mochi "github.com/mochi-mqtt/server/v2"
	"go.uber.org/goleak"

	"edge/internal/broker/embedded"
	"edge/stream/mqtt"
	"edge/stream/topic"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if timeout, err := time.ParseDuration(flag.Lookup("test.timeout").Value.String()); err == nil {
		patience = max(patience, timeout/5)
	}
	goleak.VerifyTestMain(m)
}

// patience bounds every wait. No test passes because of it: on a loaded machine,
// milliseconds may become a minute. TestMain sets it to a fifth of -timeout, if that
// is more.
var patience = 2 * time.Minute

// eventually polls until ok; what names the condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v in vain: %s", patience, what)
		}
	}
}

// broker is a real broker on a port of the loopback interface.
type broker struct {
	addr  string
	start func(t *testing.T) // again, on the same port
	stop  func()
}

// nextPort gives every broker of this process a port of its own, below those
// that the system gives to outgoing connections.
var nextPort atomic.Int32

func freePort(t *testing.T) string {
	t.Helper()
	nextPort.CompareAndSwap(0, 10000+rand.Int32N(20000))
	for range 1000 {
		addr := fmt.Sprintf("127.0.0.1:%d", nextPort.Add(1))
		l, err := net.Listen("tcp", addr)
		if err == nil {
			l.Close()
			return addr
		}
	}
	t.Fatal("no port is free")
	return ""
}

// newMochi returns an embedded broker that is not started yet.
func newMochi(t *testing.T, secure *tls.Config, hook mochi.Hook) *broker {
	b := &broker{addr: freePort(t)}
	b.start = func(t *testing.T) {
		options := embedded.Options{TLS: secure}
		if hook != nil {
			options.Hooks = []mochi.Hook{hook}
		}
		// A program that another test is just starting has the descriptors of this
		// process, and with them the broker's last listener, until it is executed.
		eventually(t, "the broker to listen", func() bool {
			server, err := embedded.Start(b.addr, options)
			if err != nil && !errors.Is(err, syscall.EADDRINUSE) {
				t.Fatal(err)
			}
			if err == nil {
				b.stop = sync.OnceFunc(func() { server.Close() })
				t.Cleanup(b.stop)
			}
			return err == nil
		})
	}
	return b
}

// newMosquitto returns a mosquitto that is not started yet. Its settings are the
// defaults, except those in config.
func newMosquitto(t *testing.T, config string) *broker {
	t.Helper()
	path, err := exec.LookPath("mosquitto")
	if err != nil {
		path = "/usr/sbin/mosquitto"
		_, err = os.Stat(path)
	}
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("mosquitto is not installed, and CI=true: install it")
		}
		t.Skip("mosquitto is not installed: this test needs it (apt install mosquitto)")
	}
	b := &broker{addr: freePort(t)}
	host, port, _ := net.SplitHostPort(b.addr)
	file := filepath.Join(t.TempDir(), "mosquitto.conf")
	config = fmt.Sprintf("listener %s %s\nuser root\nlog_dest stderr\nlog_type all\n%s", port, host, config)
	if !strings.Contains(config, "allow_anonymous") {
		config += "allow_anonymous true\n"
	}
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	b.start = func(t *testing.T) {
		cmd := exec.Command(path, "-c", file)
		out := &lockedBuffer{}
		cmd.Stderr, cmd.Stdout = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		b.stop = sync.OnceFunc(func() {
			ended := make(chan struct{})
			go func() {
				cmd.Wait()
				close(ended)
			}()
			for { // one that has just begun to listen forgets a SIGTERM
				cmd.Process.Signal(syscall.SIGTERM)
				select {
				case <-ended:
					return
				case <-time.After(500 * time.Millisecond):
				}
			}
		})
		t.Cleanup(func() {
			b.stop()
			if t.Failed() {
				t.Logf("mosquitto said, at the end:\n%s", out.tail(3000))
			}
		})
		eventually(t, "mosquitto to listen", func() bool {
			c, err := net.Dial("tcp", b.addr)
			if err == nil {
				c.Close()
			}
			return err == nil
		})
	}
	return b
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf []byte
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf = append(b.buf, p...)
	return len(p), nil
}

func (b *lockedBuffer) tail(n int) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.buf[max(0, len(b.buf)-n):])
}

// withBrokers runs a test against both brokers, started. Tests of redelivery in order
// use mosquitto alone: mochi 2.7.9 counts the packet identifiers of both directions as
// one set, so that a publication of the node can make it forget an unacknowledged
// message, and sends again in any order.
func withBrokers(t *testing.T, test func(t *testing.T, b *broker)) {
	t.Parallel()
	t.Run("mochi", func(t *testing.T) {
		t.Parallel()
		b := newMochi(t, nil, nil)
		b.start(t)
		test(t, b)
	})
	t.Run("mosquitto", func(t *testing.T) {
		t.Parallel()
		b := newMosquitto(t, "")
		b.start(t)
		test(t, b)
	})
}

// withMosquitto runs a test against mosquitto, started.
func withMosquitto(t *testing.T, config string, test func(t *testing.T, b *broker)) {
	t.Parallel()
	b := newMosquitto(t, config)
	b.start(t)
	test(t, b)
}

// probe is another client of the broker.
type probe struct {
	t      *testing.T
	client paho.Client
	mu     sync.Mutex
	got    []paho.Message
}

// newProbe connects a client and subscribes to the filters.
func newProbe(t *testing.T, b *broker, filters ...string) *probe {
	t.Helper()
	p := &probe{t: t}
	opts := paho.NewClientOptions().AddBroker("tcp://" + b.addr).SetClientID("").SetAutoReconnect(false).
		SetDefaultPublishHandler(func(_ paho.Client, m paho.Message) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.got = append(p.got, m)
		})
	p.client = paho.NewClient(opts)
	p.wait(p.client.Connect())
	t.Cleanup(func() { p.client.Disconnect(100) })
	for _, f := range filters {
		p.wait(p.client.Subscribe(f, 1, nil))
	}
	// The embedded broker sends retained messages after its SUBACK: those of before
	// could come after newer ones. It has sent them when it answers the next packet.
	p.wait(p.client.Unsubscribe("none"))
	return p
}

func (p *probe) wait(token paho.Token) {
	p.t.Helper()
	if !token.WaitTimeout(patience) || token.Error() != nil {
		p.t.Fatalf("probe: %v", token.Error())
	}
}

// send publishes with QoS 1, in order, and waits for the broker.
func (p *probe) send(topic string, payloads ...string) {
	p.t.Helper()
	var tokens []paho.Token
	for _, s := range payloads {
		tokens = append(tokens, p.client.Publish(topic, 1, false, s))
	}
	for _, token := range tokens {
		p.wait(token)
	}
}

// on returns the payloads that came on topics matching a filter.
func (p *probe) on(filter string) (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.got {
		if topic.Matches(filter, m.Topic()) {
			all = append(all, string(m.Payload()))
		}
	}
	return all
}

// daemon is a running node.
type daemon struct {
	*Node
	journal   *fakeJournal
	model     *fakeModel
	stop      func() error
	end       context.CancelCauseFunc // of Run
	log       *lockedBuffer
	dialled   *dialled
	overloads atomic.Int64 // events
}

// startNode runs a node of testConfig against a broker until the test ends.
func startNode(t *testing.T, b *broker, journal *fakeJournal, change func(*Config, *ModelConfig), prepare ...func(*Node)) *daemon {
	t.Helper()
	cfg, m := testConfig()
	cfg.MQTT.Servers = []string{"tcp://" + b.addr}
	cfg.MQTT.MaxReconnectInterval = 500 * time.Millisecond
	if change != nil {
		change(&cfg, &m)
	}
	log := &lockedBuffer{}
	dialled := &dialled{}
	d := &daemon{journal: journal, log: log, dialled: dialled}
	node, err := NewNode(cfg, Deps{Models: []ModelConfig{m}, Journal: journal, Dial: dialled.dial, OnEvent: func(e Event) {
		if e.Kind == "overload" {
			d.overloads.Add(1)
		}
	}, Log: slog.New(slog.NewTextHandler(log, nil)), Build: Build{Version: "test"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range prepare {
		f(node)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan error, 1)
	go func() { done <- node.Run(ctx) }()
	d.Node, d.end = node, cancel
	d.model, _ = m.Model.(*fakeModel)
	d.stop = sync.OnceValue(func() error {
		cancel(nil)
		return <-done
	})
	t.Cleanup(func() {
		d.stop()
		if t.Failed() {
			t.Logf("the node logged:\n%s\nstats: %+v", log.tail(3000), node.Stats())
		}
	})
	return d
}

// ready waits until the node is connected and subscribed.
func (d *daemon) ready(t *testing.T) *daemon {
	t.Helper()
	eventually(t, "the node to subscribe", func() bool {
		s := d.Stats()
		_, known := d.client.RefusedFilters()
		return s.Connected && known
	})
	return d
}

// dialled opens connections and remembers the last one.
type dialled struct {
	mu   sync.Mutex
	conn net.Conn
}

func (d *dialled) dial(ctx context.Context, server *url.URL, tlsConfig *tls.Config, within time.Duration) (net.Conn, error) {
	conn, err := mqtt.Dial(ctx, server, tlsConfig, within)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conn = conn
	return conn, err
}

func (d *dialled) last() net.Conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.conn
}

// cut ends the node's connection without DISCONNECT, as when it is killed.
func (d *daemon) cut() { d.dialled.last().SetReadDeadline(time.Now()) }

// relay is a TCP proxy that can swallow the bytes that pass through it.
type relay struct {
	addr string
	mute chan struct{} // closed: nothing passes any more
	slow atomic.Int64  // nanoseconds that each piece takes
}

func newRelay(t *testing.T, to string) *relay {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{addr: l.Addr().String(), mute: make(chan struct{})}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	pump := func(dst, src net.Conn) {
		defer dst.Close()
		in := bufio.NewReader(src)
		buf := make([]byte, 1024)
		for {
			n, err := in.Read(buf)
			if err != nil {
				return
			}
			select {
			case <-r.mute:
				continue
			default:
			}
			time.Sleep(time.Duration(r.slow.Load()))
			if _, err := dst.Write(buf[:n]); err != nil {
				return
			}
		}
	}
	wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			select {
			case <-r.mute: // accepts and stays silent
				mu.Lock()
				conns = append(conns, in)
				mu.Unlock()
				continue
			default:
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			mu.Lock()
			conns = append(conns, in, out)
			mu.Unlock()
			wg.Go(func() { pump(out, in) })
			wg.Go(func() { pump(in, out) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return r
}
