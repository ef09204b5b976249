package mqtt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
)

const (
	connectTimeout = 10 * time.Second
	mostTimeouts   = 6           // of connectTimeout, for which later attempts wait for CONNACK: a broker to which all clients return at once is slow
	publishWait    = time.Second // longest wait of a publication for room; paho accepts none on a lost connection
	writeTimeout   = 10 * time.Second
	pingTimeout    = 10 * time.Second

	firstRetry = 250 * time.Millisecond // first pause between attempts; doubled up to MaxReconnectInterval

	shortConnection = 5 * time.Second // a connection that ends sooner may have been taken over by another client
	clashAfter      = 3               // number of short connections in a row that are reported as a clash
)

// Client keeps one connection to the broker and its subscriptions while Run runs.
// Each connection is a new paho client that is used once: the automatic
// reconnection of paho has no jitter and cannot request unacknowledged messages
// again, and a paho client must not be used after a disconnect. After a
// reconnect, the outbox publishes again all that the broker did not acknowledge,
// and the broker sends again all that the node did not acknowledge.
type Client struct {
	Options

	current  atomic.Pointer[Conn]     // nil while there is no connection
	draining atomic.Bool              // the node stops: new messages remain with the broker
	replaced atomic.Bool              // another node continues the session
	refused  atomic.Pointer[[]string] // filters that the broker refused
	lowered  atomic.Pointer[[]string] // filters that it grants with a lower quality of service
	brief    atomic.Int64             // connections in a row, the latest ones, that were lost within RepeatAfter
	failure  atomic.Pointer[string]   // reason for the missing connection; nil while connected and before the first attempt
	attempts int                      // number since the last connection; owned by Run
	broken   ProtocolError            // the last protocol error of this broker; owned by Run
	logged   []string                 // reasons for losses and failures in the log since a connection lasted, at most maxLogged; owned by Run
	quiet    bool                     // the next connection is not logged until it lasts; owned by Run
	cursor   *cursorState             // of the latest connection; owned by Run
	patient  bool                     // the broker did not acknowledge a publication: see Conn.awaitAnswers; owned by Run
	further  further
}

// Options are the parameters of a Client.
type Options struct {
	Config      Config
	ID          string
	StateTopic  string           // topic of the Last Will and the birth message, to which the client also subscribes; "": none
	CursorTopic string           // topic of the cursor; "": no cursor
	Filters     []string         // subscriptions
	QoS         map[string]byte  // of filters whose quality of service is not that of Config
	Memory      Subscriptions    // subscriptions of earlier runs; nil: not remembered
	MaxPayload  int              // bytes; a larger payload is cut, and stays larger than this
	Queue       *Queue[*Message] // received messages
	Deferred    *Queue[*Message] // messages that found Queue full; the broker will send them again
	Aside       Aside            // nil: all messages go to Queue
	Counters    *Counters
	Dropped     *atomic.Uint64 // counts messages of QoS 0 that found Queue full
	Sequence    *atomic.Uint64 // number of the newest commit, for the cursor; nil: no cursor
	Log         *slog.Logger
	Serve       func(ctx context.Context, c *Conn) // publishes over c until ctx ends
	Event       func(kind, detail string)
	Dial        Dialer // nil: the function Dial

	ConnectTimeout, PingTimeout time.Duration // 0: 10 s
}

// Aside takes messages of QoS 0 that do not go to the queue, and reports whether it has taken one.
// Of the state topic it is given those by which another process has ended. It must not wait. It
// owns a message that it has taken, and frees it.
type Aside func(*Message) bool

// NewClient returns a client; Run connects it.
func NewClient(o Options) *Client {
	o.ConnectTimeout = cmp.Or(o.ConnectTimeout, connectTimeout)
	o.PingTimeout = cmp.Or(o.PingTimeout, pingTimeout)
	if o.Dial == nil {
		o.Dial = Dial
	}
	return &Client{Options: o}
}

// Counters count events between a client, its outbox and the broker. They outlive
// both.
type Counters struct {
	Reconnects, ConnectFailures atomic.Uint64
	ProtocolErrors              atomic.Uint64 // connections and attempts that ended with a ProtocolError
	DeferredDropped             atomic.Uint64 // deferred messages that made room for newer ones
	OutboxDropped               atomic.Uint64 // publications that were discarded because the outbox was full
	OutboxRefused               atomic.Uint64 // publications that were discarded because the broker ends the connection upon them
}

// Conn returns the current connection, nil while disconnected.
func (c *Client) Conn() *Conn { return c.current.Load() }

// keptWithin is the time after a connect in which the broker begins to send the messages that it has kept.
const keptWithin = 2 * time.Second

// Awaited returns for how long messages that the broker has kept for a node that was away may be the
// next ones to arrive, as far as that is known: 0 some time after a connect.
func (c *Client) Awaited() time.Duration {
	conn := c.Conn()
	if conn == nil {
		return keptWithin
	}
	return max(0, keptWithin-time.Since(conn.since))
}

// StopReceiving makes the client ignore new messages, which remain with the broker.
func (c *Client) StopReceiving() { c.draining.Store(true) }

// Stopping reports whether StopReceiving was called.
func (c *Client) Stopping() bool { return c.draining.Load() }

// SetReplaced notes that another client continues the session, so that this one
// does not publish that the node is offline.
func (c *Client) SetReplaced(replaced bool) { c.replaced.Store(replaced) }

// Failure returns the reason for the missing connection; "" while connected and
// before the first attempt.
func (c *Client) Failure() string {
	if why := c.failure.Load(); why != nil {
		return *why
	}
	return ""
}

// Brief is the number of connections in a row, before the present one, that were lost within
// RepeatAfter. It is 0 once a connection has lasted for that time.
func (c *Client) Brief() int64 {
	if conn := c.Conn(); conn != nil && time.Since(conn.since) >= RepeatAfter {
		return 0
	}
	return c.brief.Load()
}

// RefusedFilters returns the subscriptions that the broker refused. Known is false
// until the broker has answered the first subscription.
func (c *Client) RefusedFilters() (filters []string, known bool) {
	if refused := c.refused.Load(); refused != nil {
		return slices.Clone(*refused), true
	}
	return nil, false
}

// Run connects, and reconnects after each loss, until ctx ends. It then publishes
// that the node is offline, and disconnects.
func (c *Client) Run(ctx context.Context) {
	short := 0 // number of short connections in a row
	taken := 0 // number of them that another client may have taken over
	asked := 0 // number of connections in a row that ended before the subscriptions were granted
	pause := firstRetry / 2
	for ctx.Err() == nil {
		conn, err := c.connect(ctx)
		if err == nil {
			c.connected(conn)
			err = c.serveConn(ctx, conn)
			c.current.Store(nil)
		}
		switch {
		case ctx.Err() != nil:
			return
		case conn == nil:
			c.failed(err)
			pause = min(2*pause, c.Config.MaxReconnectInterval)
		default:
			lasted := time.Since(conn.since)
			broken := c.lost(err, lasted)
			c.patient = c.patient || errors.Is(err, errUnanswered)
			if errors.Is(err, errRedeliver) {
				continue
			}
			if c.brief.Add(1); lasted >= RepeatAfter {
				c.brief.Store(0)
			}
			if short++; lasted > shortConnection || conn.mended {
				short = 0
			}
			if taken++; !conn.mayBeTaken(broken, lasted) {
				taken = 0
			}
			if asked++; conn.Subscribed() || len(c.wanted()) == 0 {
				asked = 0
			}
			c.reportLoss(err, taken, asked >= clashAfter)
			pause = min(firstRetry<<min(short, 10), c.Config.MaxReconnectInterval)
		}
		// Half of the pause is random, so that the clients of a restarted broker do
		// not reconnect at the same moment.
		select {
		case <-time.After(pause/2 + rand.N(pause/2+1)):
		case <-ctx.Done():
		}
	}
}

// connected stores a new connection.
func (c *Client) connected(conn *Conn) {
	c.current.Store(conn)
	c.failure.Store(nil)
}

// subscribed logs the connection, whose subscriptions are granted by then. One that was lost
// before is not logged.
func (c *Client) subscribed(conn *Conn) {
	if isClosed(conn.lost) {
		return
	}
	level := slog.LevelInfo
	if c.quiet {
		level = slog.LevelDebug
	}
	c.Log.Log(context.Background(), level, "connected to the broker", "server", conn.server, "client_id", c.ID, "attempts", c.attempts+1)
	c.attempts = 0
}

// connect makes one attempt on each server.
func (c *Client) connect(ctx context.Context) (*Conn, error) {
	opts, err := c.Config.ClientOptions(c.ID)
	if err != nil {
		return nil, err
	}
	conn := &Conn{client: c, lost: make(chan struct{}), redeliver: make(chan struct{}, 1), denied: make(chan struct{}, 1), dropped: make(chan []paho.Token, 8), cursor: newCursorState(c.cursor)}
	var aborts []func() bool // end the handshakes if ctx ends meanwhile
	opts.SetCleanSession(!c.Config.PersistentSession).
		SetKeepAlive(0). // Conn.keepAlive sends the pings
		SetConnectTimeout(c.ConnectTimeout * time.Duration(1+min(c.attempts, mostTimeouts-1))).
		SetWriteTimeout(publishWait). // frameConn has the deadline for writing
		SetAutoReconnect(false).
		SetAutoAckDisabled(true).
		SetStore(noStore{}).
		SetConnectionLostHandler(func(_ paho.Client, err error) { conn.fail(err) }).
		SetCustomOpenConnectionFn(func(u *url.URL, o paho.ClientOptions) (net.Conn, error) {
			nc, err := c.Dial(ctx, u, o.TLSConfig, c.ConnectTimeout)
			if err != nil {
				return nil, err
			}
			conn.server = u.Redacted()
			conn.net = newFrameConn(nc, c.MaxPayload, writeTimeout)
			conn.net.keepalive = uint16(c.Config.Keepalive / time.Second)
			conn.net.onMessage, conn.net.onPuback = conn.receive, conn.receipts.pubackRead
			aborts = append(aborts, context.AfterFunc(ctx, func() { nc.Close() }))
			return conn.net, nil
		})
	if c.StateTopic != "" {
		opts.SetBinaryWill(c.StateTopic, []byte(stateOffline), byte(c.Config.QoS), true)
	}
	conn.paho = paho.NewClient(opts)
	token := conn.paho.Connect()
	<-token.Done() // bounded by ConnectTimeout for each server, and by ctx
	aborted := false
	for _, stop := range aborts {
		aborted = !stop() || aborted
	}
	if err := ConnectError(token.Error()); err != nil {
		advice := Advice(err)
		if errors.Is(err, io.EOF) { // upon the Last Will
			advice += " Or does it refuse retained messages, or mqtt.qos? `edge doctor` tells."
		}
		if advice != "" {
			err = fmt.Errorf("%w: %s", err, advice)
		}
		return nil, fmt.Errorf("mqtt: connect: %w", err)
	}
	if aborted { // right after CONNACK: paho does not report a connection that was closed here
		conn.close()
		return nil, context.Cause(ctx)
	}
	conn.since = time.Now()
	conn.sinceWall = conn.since.Round(0)
	c.cursor = conn.cursor
	if session, ok := token.(*paho.ConnectToken); c.CursorTopic == "" || ok && !session.SessionPresent() {
		conn.cursor.setNewSession(c.newestCommit())
	}
	return conn, nil
}

// errRedeliver ends a connection so that the broker sends unacknowledged messages
// again: MQTT 3.1.1, section 4.4, allows that only after a reconnect.
var errRedeliver = errors.New("reconnecting so that the broker sends the messages again that found the queue full")

// serveConn subscribes, publishes the birth message and serves the connection until
// it ends. On return no goroutine uses the connection.
func (c *Client) serveConn(ctx context.Context, conn *Conn) error {
	serving, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()

	wg.Go(func() { conn.keepAlive(serving) })
	conn.beginSession()
	wg.Go(func() { c.readCursor(serving, conn) })
	// A client that sees the node online may rely on its subscriptions.
	former := c.formerFilters()
	refused := c.subscribe(ctx, conn, c.wanted())
	c.unsubscribe(ctx, conn, former)
	if c.patient {
		conn.awaitAnswers(ctx)
	}
	conn.publishState(stateOnline)
	c.subscribed(conn)
	wg.Go(func() { c.Serve(serving, conn) })

	pause := resubscribeFirst
	again := time.NewTimer(pause)
	defer again.Stop()
	lasts := time.NewTimer(shortConnection)
	defer lasts.Stop()
	defer time.AfterFunc(RepeatAfter, func() { wake(conn.denied) }).Stop()
	denied, rest := conn.denied, (<-chan time.Time)(nil)
	for {
		select {
		case <-conn.lost:
			return conn.err
		case <-lasts.C:
			if c.logged = c.logged[:0]; c.quiet {
				c.quiet = false
				c.Log.Info("connected to the broker; this connection lasts", "server", conn.server, "client_id", c.ID)
			}
		case <-denied:
			conn.publishState(stateOnline)
			denied, rest = nil, time.After(contradictEvery)
		case <-rest:
			denied = conn.denied
		case tokens := <-conn.dropped:
			wg.Go(func() { c.forget(serving, conn, tokens) })
		case <-conn.redeliver:
			if conn.awaitAcks(ctx); ctx.Err() != nil {
				conn.publishOffline()
				return ctx.Err()
			}
			conn.close()
			return errRedeliver
		case <-again.C:
			if len(refused) > 0 {
				refused = c.subscribe(ctx, conn, refused)
				pause = min(2*pause, resubscribeLast)
				again.Reset(pause)
			}
		case <-ctx.Done():
			conn.publishOffline()
			return ctx.Err()
		}
	}
}

// deferMessage queues a message, which the broker must send again, for an early
// answer when it comes for the first time.
func (c *Client) deferMessage(msg *Message) {
	if !msg.Dup {
		_, dropped := c.Deferred.Push(msg, func(*Message) bool { return true })
		c.Counters.DeferredDropped.Add(uint64(dropped))
	}
}
