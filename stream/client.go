package stream

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"
	"golang.org/x/net/proxy"
)

const (
	connectTimeout   = 10 * time.Second
	handOver         = time.Second // for paho to take a publication; it takes none from a lost connection
	writeTimeout     = 10 * time.Second
	pingTimeout      = 10 * time.Second
	subscribeTimeout = 15 * time.Second // without anything from the broker
	resubscribeFirst = time.Second      // pause before what the broker refused is asked for again; doubled
	resubscribeLast  = time.Minute
	firstRetry       = 250 * time.Millisecond // doubled up to MaxReconnectInterval
	offlineWithin    = time.Second            // for the broker to acknowledge that the node is offline
	shortLife        = 5 * time.Second        // a connection that ends sooner may have been taken over
	clashAfter       = 3                      // short lives in a row
	disconnectWithin = 500                    // milliseconds, closeFlush among them
	plainPayload     = 8 << 20                // largest payload that a client reads which is not the node's
)

// message is one PUBLISH packet from the broker.
type message struct {
	topic     string
	payload   []byte
	qos       byte
	dup       bool
	retained  bool
	observed  bool // it is answered and teaches nothing: it comes again
	arrived   time.Time
	confirmed uint64         // acknowledgements over conn that the broker had read by then
	ack       func()         // tells the broker that the message is done with; any goroutine, at most once
	order     *instruction   // what an earlier request has prepared; nil: the message is from the broker
	refused   func(*Refusal) // hears, before ack is called, why it teaches nothing; may be nil

	conn   *connection   // that it came over
	id     uint16        // of the packet
	packet []byte        // holds the payload
	home   pool[message] // nil: nobody else may have its memory
}

// newMessage returns a message whose packet may be read into.
func newMessage(home pool[message]) *message {
	m := home.get()
	if m == nil {
		m = &message{home: home}
		m.ack = m.acknowledge
	}
	return m
}

// acknowledge tells the broker that a message is done with.
func (m *message) acknowledge() {
	if m.qos > 0 {
		m.conn.settle(func() { m.conn.net.acknowledge(m.id, m.qos) })
	}
}

// free lets another message have the memory of one that is done with.
func (m *message) free() {
	if m.home == nil || cap(m.packet) > worthKeeping {
		return
	}
	m.conn, m.id, m.observed, m.confirmed = nil, 0, false, 0
	m.home.put(m)
}

// client keeps one connection to the broker, subscribed, for as long as run
// runs. Each connection is a paho client of its own, made once and never used
// again: paho's automatic reconnection has neither jitter nor a way to have
// unacknowledged messages sent again, and a paho client that was disconnected
// must not be used any more. What was on its way out is sent again by the
// outbox, what was on its way in by the broker.
type client struct {
	cfg         MQTT
	id          string
	stateTopic  string        // Last Will and birth; empty: none
	cursorTopic string        // where the broker keeps the cursor; empty: none
	filters     []string      // to subscribe to
	memory      Subscriptions // nil: none
	maxPayload  int
	ring        *fifo[*message]
	observed    *fifo[*message] // what must be sent again, for an answer before
	counters    *counters
	dropped     *atomic.Uint64 // of counters: what the ring gave up
	log         *slog.Logger
	serve       func(ctx context.Context, c *connection) // publishes while c lasts
	event       func(kind, detail string)
	dial        Dial

	connectTimeout, pingTimeout time.Duration

	current  atomic.Pointer[connection] // nil while there is none
	draining atomic.Bool                // the node stops: what arrives now stays with the broker
	replaced atomic.Bool                // another node takes the session over
	refused  atomic.Pointer[[]string]   // filters that the broker refused
	failure  atomic.Pointer[string]     // why there is no connection; nil while there is one, or none was tried
	attempts int                        // since the last connection; run's goroutine only
	broken   ProtocolError              // the last of this broker; run's goroutine only
	quiet    bool                       // it ended the last connection at once; run's goroutine only
}

// connection is one life of the network connection.
type connection struct {
	client    *client
	paho      mqtt.Client
	net       *frameConn
	receipts  receipts   // of publications
	cursor    cursor     // that the broker kept before
	cursors   []delivery // cursors on their way; the committer's
	since     time.Time
	unsettled atomic.Int64 // messages of QoS 1 that were taken and are not acknowledged
	granted   atomic.Bool  // every subscription
	skipping  atomic.Bool  // a message of QoS 1 found the ring full: it and all that follow must be sent again
	redeliver chan struct{}
	redo      sync.Once
	lost      chan struct{} // closed when the connection has ended
	end       sync.Once
	err       error // why; valid once lost is closed
}

// defaultClientID returns an id that is the same after a restart and another
// one on another machine.
func defaultClientID(node string) string {
	return fmt.Sprintf("edge-%s-%04x", node, crc32.ChecksumIEEE(machineID("/etc/machine-id", os.Hostname, net.Interfaces))&0xffff)
}

// sameEverywhere are host names that many devices have, as they come.
var sameEverywhere = []string{"", "localhost", "openwrt", "lede", "alpine", "buildroot", "edge", "raspberrypi"}

// machineID identifies this machine: by what systemd keeps for it, by its
// host's name, or, where that is one of many, by the address of its network card.
func machineID(file string, hostname func() (string, error), interfaces func() ([]net.Interface, error)) []byte {
	if id, err := os.ReadFile(file); err == nil && len(bytes.TrimSpace(id)) > 0 {
		return id
	}
	host, _ := hostname()
	if !slices.Contains(sameEverywhere, strings.ToLower(host)) {
		return []byte(host)
	}
	cards, _ := interfaces()
	for _, card := range cards {
		if len(card.HardwareAddr) > 0 && card.Flags&net.FlagLoopback == 0 {
			return card.HardwareAddr
		}
	}
	return []byte(host)
}

// run connects, and connects again whenever the connection is lost, until ctx
// ends; then it announces itself as offline and disconnects.
func (c *client) run(ctx context.Context) {
	short := 0 // connections in a row that did not last
	taken := 0 // those that may have been taken over
	pause := firstRetry / 2
	for ctx.Err() == nil {
		conn, err := c.connect(ctx)
		if err == nil {
			c.connected(conn)
			err = c.hold(ctx, conn)
			c.current.Store(nil)
			if ctx.Err() != nil {
				return
			}
			lasted := time.Since(conn.since)
			broken := c.lost(err, lasted)
			if errors.Is(err, errRedeliver) {
				continue
			}
			if short++; lasted > shortLife {
				short = 0
			}
			pause = min(firstRetry<<min(short, 10), c.cfg.MaxReconnectInterval)
			why := fmt.Sprintf("lost: %v", err)
			if taken++; broken || short == 0 {
				taken = 0
			}
			if taken >= clashAfter {
				why += "; " + clashing
			}
			c.failure.Store(&why)
			if taken == clashAfter {
				c.event("client_id_clash", c.id)
				c.log.Error(clashing, "client_id", c.id)
			}
		} else {
			c.failed(err)
			pause = min(2*pause, c.cfg.MaxReconnectInterval)
		}
		// Half of the pause is random, so that the clients of a broker that was
		// away do not come back all at once.
		select {
		case <-time.After(pause/2 + rand.N(pause/2+1)):
		case <-ctx.Done():
		}
	}
}

const clashing = "the broker ends the connection again and again within seconds: does another client use the same client_id? Give mqtt.client_id a value of its own"

// connected and failed log a change of state, not every attempt.
func (c *client) connected(conn *connection) {
	c.current.Store(conn)
	level := slog.LevelInfo
	if c.quiet {
		level = slog.LevelDebug
	}
	c.log.Log(context.Background(), level, "connected to the broker", "client_id", c.id, "attempts", c.attempts+1)
	c.attempts = 0
	c.failure.Store(nil)
}

// lost counts and logs the end of a connection, and reports whether the broker
// broke the protocol. What it does again and again is logged once.
func (c *client) lost(err error, lasted time.Duration) (broken bool) {
	c.counters.reconnects.Add(1)
	former := c.broken
	broken = c.protocol(err)
	level := slog.LevelWarn
	if c.quiet && broken && c.broken == former {
		level = slog.LevelDebug
	}
	c.log.Log(context.Background(), level, "connection to the broker lost", "after", lasted.Round(time.Millisecond), "reason", err)
	c.quiet = broken && lasted <= shortLife
	return broken
}

func (c *client) failed(err error) {
	c.attempts++
	c.counters.connectFailures.Add(1)
	c.protocol(err)
	words := err.Error()
	if last := c.failure.Swap(&words); last == nil || *last != words {
		c.log.Warn("cannot connect to the broker; will keep trying", "servers", c.cfg.Servers, "error", err)
	}
}

// protocol counts an end of a connection that the broker has brought about by
// breaking the protocol, and reports whether it is one. There is an event whenever
// the broker does so in another way.
func (c *client) protocol(err error) (broken bool) {
	var why *ProtocolError
	if !errors.As(err, &why) {
		return false
	}
	c.counters.protocolErrors.Add(1)
	if c.broken != *why {
		c.broken = *why
		c.log.Error("the broker breaks MQTT 3.1.1: update it, or use another; the node goes on trying", "packet", why.Packet, "reason", why.Reason)
		c.event("protocol_error", why.Packet+" "+why.Reason)
	}
	return true
}

// connect makes one attempt on every server.
func (c *client) connect(ctx context.Context) (*connection, error) {
	opts, err := c.cfg.ClientOptions(c.id)
	if err != nil {
		return nil, err
	}
	conn := &connection{client: c, lost: make(chan struct{}), redeliver: make(chan struct{}), cursor: cursor{known: make(chan struct{})}}
	var aborts []func() bool // of handshakes, should ctx end meanwhile
	defer func() {
		for _, stop := range aborts {
			stop()
		}
	}()
	opts.SetCleanSession(!c.cfg.PersistentSession).
		SetPingTimeout(c.pingTimeout).
		SetConnectTimeout(c.connectTimeout).SetWriteTimeout(handOver). // frameConn has the deadline for writing
		SetAutoReconnect(false).
		SetAutoAckDisabled(true).
		SetStore(noStore{}).
		SetConnectionLostHandler(func(_ mqtt.Client, err error) { conn.fail(err) }).
		SetCustomOpenConnectionFn(func(u *url.URL, o mqtt.ClientOptions) (net.Conn, error) {
			nc, err := c.dial(ctx, u, o.TLSConfig, o.ConnectTimeout)
			if err != nil {
				return nil, err
			}
			conn.net = newFrameConn(nc, c.maxPayload, writeTimeout)
			conn.net.take, conn.net.acked = conn.take, conn.receipts.acknowledged
			aborts = append(aborts, context.AfterFunc(ctx, func() { nc.Close() }))
			return conn.net, nil
		})
	if c.stateTopic != "" {
		opts.SetBinaryWill(c.stateTopic, []byte("offline"), 1, true)
	}
	conn.paho = mqtt.NewClient(opts)
	token := conn.paho.Connect()
	<-token.Done() // bounded by connectTimeout for each server, and by ctx
	if err := token.Error(); err != nil {
		return nil, fmt.Errorf("stream: connect: %w%s", err, wayOut(err))
	}
	conn.since = time.Now()
	if session, ok := token.(*mqtt.ConnectToken); c.cursorTopic == "" || ok && !session.SessionPresent() {
		conn.cursor.begin(c.counters.sequence.Load())
	}
	return conn, nil
}

// ClientOptions are those of a client that reaches the broker as m says: MQTT
// 3.1.1, messages in order, one attempt at a first connection. Password and
// certificates are read now; no error contains them. A packet from the broker
// that the standard forbids ends the connection with a ProtocolError; of a
// message of more than 8 MiB the beginning comes.
func (m MQTT) ClientOptions(id string) (*mqtt.ClientOptions, error) {
	password, err := m.Password.Resolve()
	if err != nil {
		return nil, fmt.Errorf("stream: mqtt.password: %w", err)
	}
	tlsConfig, err := m.TLS.load()
	if err != nil {
		return nil, fmt.Errorf("stream: mqtt.tls: %w", err)
	}
	opts := mqtt.NewClientOptions().
		SetClientID(id).
		SetUsername(m.Username).SetPassword(password).
		SetProtocolVersion(4).SetOrderMatters(true).
		SetKeepAlive(m.Keepalive).SetPingTimeout(pingTimeout).
		SetConnectTimeout(connectTimeout).SetWriteTimeout(writeTimeout).
		SetConnectRetry(false).
		SetTLSConfig(tlsConfig).
		SetCustomOpenConnectionFn(func(u *url.URL, o mqtt.ClientOptions) (net.Conn, error) {
			nc, err := dial(context.Background(), u, o.TLSConfig, o.ConnectTimeout)
			if err != nil {
				return nil, err
			}
			return plainConn{newFrameConn(nc, plainPayload, writeTimeout)}, nil
		})
	for _, s := range m.Servers {
		opts.AddBroker(s)
	}
	return opts, nil
}

// wayOut says what to do about a refusal by the broker.
func wayOut(err error) string {
	switch {
	case errors.As(err, new(*ProtocolError)):
		return ": is this the address of an MQTT 3.1.1 broker, and its port the one for TLS (mqtts) or without (mqtt)?"
	case errors.Is(err, packets.ErrorRefusedNotAuthorised), errors.Is(err, packets.ErrorRefusedBadUsernameOrPassword):
		return ": check mqtt.username and mqtt.password, and the broker's access list"
	case errors.Is(err, packets.ErrorRefusedIDRejected):
		return ": the broker does not accept mqtt.client_id"
	}
	return ""
}

// Dial opens a connection to a server within a time, or until ctx ends.
type Dial func(ctx context.Context, server *url.URL, tlsConfig *tls.Config, within time.Duration) (net.Conn, error)

// dial opens the network connection to one server. It does what paho does by
// itself, but ends with ctx and knows the usual ports.
func dial(ctx context.Context, u *url.URL, tlsConfig *tls.Config, within time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if u.Scheme == "ws" || u.Scheme == "wss" {
		return dialWebsocket(ctx, u, tlsConfig, within)
	}
	nc, err := proxy.Dial(ctx, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), serverPorts[u.Scheme])))
	if err != nil || u.Scheme == "tcp" || u.Scheme == "mqtt" {
		return nc, err
	}
	cfg := tlsConfig.Clone()
	cfg.ServerName = cmp.Or(cfg.ServerName, u.Hostname())
	secure := tls.Client(nc, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		nc.Close()
		return nil, err
	}
	return secure, nil
}

// load reads the certificates.
func (t TLS) load() (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.MinVersion == "1.3" {
		cfg.MinVersion = tls.VersionTLS13
	}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("read ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca %s: holds no PEM certificate", t.CA)
		}
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("cert, key: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// errRedeliver ends a connection so that the broker sends again what was not
// acknowledged: MQTT 3.1.1, section 4.4, allows that only after a reconnect.
var errRedeliver = errors.New("reconnecting so that the broker repeats the messages that found the queue full")

// hold subscribes, announces the node and serves until the connection ends. It
// returns once nothing uses the connection any more.
func (c *client) hold(ctx context.Context, conn *connection) error {
	serving, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()

	conn.beginSession()
	wg.Go(func() { c.readCursor(serving, conn) })
	// Whoever sees the node online may count on its subscriptions.
	former := c.expect()
	refused := c.subscribe(conn, c.filters)
	c.giveBack(conn, former)
	conn.announce("online")
	wg.Go(func() { c.serve(serving, conn) })

	pause := resubscribeFirst
	again := time.NewTimer(pause)
	defer again.Stop()
	lasts := time.NewTimer(shortLife)
	defer lasts.Stop()
	for {
		select {
		case <-conn.lost:
			return conn.err
		case <-lasts.C:
			if c.quiet {
				c.quiet = false
				c.log.Info("connected to the broker, which keeps to the protocol again", "client_id", c.id)
			}
		case <-conn.redeliver:
			if conn.confirm(ctx); ctx.Err() != nil {
				conn.goodbye()
				return ctx.Err()
			}
			conn.close()
			return errRedeliver
		case <-again.C:
			if len(refused) > 0 {
				refused = c.subscribe(conn, refused)
				pause = min(2*pause, resubscribeLast)
				again.Reset(pause)
			}
		case <-ctx.Done():
			conn.goodbye()
			return ctx.Err()
		}
	}
}

// Subscriptions remembers, over restarts, what the broker's session is
// subscribed to. Filters returns what was remembered last, nil at first.
type Subscriptions interface {
	Filters() ([]string, error)
	RememberFilters([]string) error
}

// expect returns the filters that the session of an earlier configuration may
// still have, and that this one has not; what is about to be asked for is
// remembered before. A session that is not kept has none.
func (c *client) expect() (former []string) {
	if c.memory == nil || !c.cfg.PersistentSession {
		return nil
	}
	known, err := c.memory.Filters()
	if err != nil {
		c.log.Warn("cannot tell what an earlier configuration subscribed to; its topics may still arrive, as unrouted", "error", err)
	}
	for _, f := range known {
		if !slices.Contains(c.filters, f) {
			former = append(former, f)
		}
	}
	c.remember(known, append(slices.Clone(c.filters), former...))
	return former
}

// giveBack ends subscriptions, and forgets them once the broker has.
func (c *client) giveBack(conn *connection, former []string) {
	if len(former) == 0 {
		return
	}
	token := conn.paho.Unsubscribe(former...)
	if !conn.awaits(context.Background(), token.Done(), subscribeTimeout) {
		return // the next connection tries again
	}
	if err := token.Error(); err != nil {
		c.log.Warn("cannot give back the subscriptions of an earlier configuration; the next connection tries again", "filters", former, "error", err)
		return
	}
	c.log.Info("gave back the subscriptions of an earlier configuration", "filters", former)
	c.remember(nil, c.filters)
}

// remember writes filters, unless they are known.
func (c *client) remember(known, filters []string) {
	known, filters = slices.Sorted(slices.Values(known)), slices.Sorted(slices.Values(filters))
	if slices.Equal(known, filters) {
		return
	}
	if err := c.memory.RememberFilters(filters); err != nil {
		c.log.Warn("cannot remember what is subscribed to; should the topics change, old ones may still arrive, as unrouted", "error", err)
	}
}

// subscribe returns the filters that the broker refused. A failure of the
// request itself ends the connection.
func (c *client) subscribe(conn *connection, filters []string) (refused []string) {
	if len(filters) == 0 {
		return nil
	}
	ask := make(map[string]byte, len(filters))
	for _, f := range filters {
		ask[f] = byte(c.cfg.QoS)
	}
	token := conn.paho.SubscribeMultiple(ask, nil)
	if !conn.awaits(context.Background(), token.Done(), subscribeTimeout) {
		conn.fail(errors.New("stream: subscribe: no answer from the broker"))
		return nil
	}
	if err := token.Error(); err != nil {
		conn.fail(fmt.Errorf("stream: subscribe: %w", err))
		return nil
	}
	for f, granted := range token.(*mqtt.SubscribeToken).Result() {
		if granted > 2 {
			refused = append(refused, f)
		}
	}
	slices.Sort(refused)
	conn.granted.Store(len(refused) == 0)
	if previous := c.refused.Swap(&refused); len(refused) > 0 && (previous == nil || !slices.Equal(*previous, refused)) {
		c.log.Error("the broker refused a subscription: allow it in the broker's access list", "filters", refused, "client_id", c.id, "username", c.cfg.Username)
		c.event("subscription_refused", strings.Join(refused, ", "))
	}
	return refused
}

// take takes a message.
func (conn *connection) take(msg *message) {
	msg.conn = conn
	conn.accept(msg)
}

// accept lets a message wait for the worker. It never waits: nothing more is
// read, not even an answer to a ping, until it returns.
func (conn *connection) accept(msg *message) {
	c := conn.client
	if c.cursorTopic != "" && msg.topic == c.cursorTopic {
		conn.cursor.answer(msg.payload)
		msg.free()
		return
	}
	if c.draining.Load() {
		return
	}
	msg.arrived, msg.confirmed = time.Now(), conn.confirmed()
	if msg.qos > 0 {
		if conn.skipping.Load() {
			c.skip(msg)
			return
		}
		conn.unsettled.Add(1)
	}
	var mayDrop func(*message) bool
	if msg.qos == 0 {
		mayDrop = func(old *message) bool { return old.qos == 0 }
	}
	taken, dropped := c.ring.push(msg, mayDrop)
	c.dropped.Add(uint64(dropped))
	switch {
	case taken:
	case msg.qos == 0:
		c.dropped.Add(1)
	default:
		c.counters.redeliveries.Add(1)
		c.event("overload", "the queue of messages is full; the broker will be asked to send again")
		conn.skipping.Store(true)
		c.skip(msg)
		conn.settled()
	}
}

// skip lets a message that must be sent again have an answer now, when it comes
// for the first time.
func (c *client) skip(msg *message) {
	if !msg.dup {
		_, dropped := c.observed.push(msg, func(*message) bool { return true })
		c.counters.observedDropped.Add(uint64(dropped))
	}
}

// settle acknowledges a message, unless its connection is gone: the broker
// then sends it again.
func (conn *connection) settle(ack func()) {
	select {
	case <-conn.lost:
		conn.client.counters.staleAcks.Add(1)
	default:
		ack()
	}
	conn.settled()
}

// settled counts a message of QoS 1 as done with. Once everything that came
// before a skipped message is done with, the broker may repeat the rest.
func (conn *connection) settled() {
	if conn.unsettled.Add(-1) == 0 && conn.skipping.Load() {
		conn.redo.Do(func() { close(conn.redeliver) })
	}
}

// publish hands a message to the network. It waits no longer than handOver.
func (conn *connection) publish(m *outgoing) delivery {
	r := conn.receipts.next()
	if err := conn.net.publish(m, r.id); err != nil || m.qos == 0 {
		conn.receipts.settle(r.id, err)
	}
	return r
}

// done is closed when the connection has ended.
func (conn *connection) done() <-chan struct{} { return conn.lost }

// fail ends the connection. Where the broker broke the protocol, that is why,
// whatever was noticed first.
func (conn *connection) fail(err error) {
	if broken := conn.net.broken.Load(); broken != nil {
		err = broken
	}
	conn.end.Do(func() {
		conn.err = err
		close(conn.lost)
	})
	conn.paho.Disconnect(0)
}

// close ends the connection in good order; the broker sends no Last Will.
func (conn *connection) close() {
	conn.paho.Disconnect(disconnectWithin)
	conn.end.Do(func() {
		conn.err = errors.New("stream: connection closed")
		close(conn.lost)
	})
}

// announce publishes the node's state; nil if the client has none to announce.
func (conn *connection) announce(state string) delivery {
	if conn.client.stateTopic == "" {
		return nil
	}
	return conn.publish(&outgoing{topic: conn.client.stateTopic, payload: []byte(state), retained: true, qos: 1})
}

// confirm waits until the broker has read what was acknowledged. Whatever it has
// not read when the connection ends comes again, and would take up the room that
// was made for what follows.
func (conn *connection) confirm(ctx context.Context) {
	read := conn.net.acks.all()
	conn.net.ping()
	conn.awaits(ctx, read, conn.client.pingTimeout)
}

// goodbye says that the node is offline, unless another follows, and ends the
// connection. Where the broker has not acknowledged that in time, it may not
// come at all: the connection then ends without DISCONNECT, so that the broker
// publishes the Last Will, which says the same.
func (conn *connection) goodbye() {
	if conn.client.replaced.Load() {
		conn.close()
		return
	}
	if d := conn.announce("offline"); d != nil {
		select {
		case <-d.Done():
		case <-conn.lost:
		case <-time.After(offlineWithin):
			conn.net.Close()
		}
	}
	conn.close()
}

// noStore keeps nothing. paho would keep every message of QoS 1 that is not
// acknowledged, to resume with after a reconnect; a connection here is never
// resumed.
type noStore struct{}

func (noStore) Open()                             {}
func (noStore) Put(string, packets.ControlPacket) {}
func (noStore) Get(string) packets.ControlPacket  { return nil }
func (noStore) All() []string                     { return nil }
func (noStore) Del(string)                        {}
func (noStore) Close()                            {}
func (noStore) Reset()                            {}
