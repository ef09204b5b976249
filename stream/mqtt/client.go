package mqtt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	publishWait    = time.Second // for paho to take a publication; it takes none from a lost connection
	writeTimeout   = 10 * time.Second
	pingTimeout    = 10 * time.Second

	firstRetry = 250 * time.Millisecond // doubled up to MaxReconnectInterval

	shortConnection = 5 * time.Second // a connection that ends sooner may have been taken over
	clashAfter      = 3               // short lives in a row

)

// client keeps one connection to the broker, subscribed, for as long as run
// runs. Each connection is a paho client of its own, made once and never used
// again: paho's automatic reconnection has neither jitter nor a way to have
// unacknowledged messages sent again, and a paho client that was disconnected
// must not be used any more. What was on its way out is sent again by the
// outbox, what was on its way in by the broker.
type Client struct {
	Options

	current  atomic.Pointer[Conn]     // nil while there is none
	draining atomic.Bool              // the node stops: what arrives now stays with the broker
	replaced atomic.Bool              // another node takes the session over
	refused  atomic.Pointer[[]string] // filters that the broker refused
	failure  atomic.Pointer[string]   // why there is no connection; nil while there is one, or none was tried
	attempts int                      // since the last connection; run's goroutine only
	broken   ProtocolError            // the last of this broker; run's goroutine only
	quiet    bool                     // it ended the last connection at once; run's goroutine only
}

// clientOptions are the parameters of a client.
type Options struct {
	Config      Config
	ID          string
	StateTopic  string           // of the Last Will and the birth message; "": none
	CursorTopic string           // where the broker keeps the cursor; "": none
	Filters     []string         // to subscribe to
	Memory      Subscriptions    // of earlier runs; nil: none
	MaxPayload  int              // the largest payload that is of use, in bytes
	Queue       *Queue[*Message] // messages that arrived
	Deferred    *Queue[*Message] // messages that found the queue full, which the broker will send again
	Counters    *Counters
	Dropped     *atomic.Uint64 // messages of QoS 0 that found the queue full
	Sequence    *atomic.Uint64 // of the newest commit, for the cursor; nil: there is no cursor
	Log         *slog.Logger
	Serve       func(ctx context.Context, c *Conn) // publishes while c lasts
	Event       func(kind, detail string)
	Dial        Dialer // nil: over the network

	ConnectTimeout, PingTimeout time.Duration // 0: 10 s
}

// newClient returns a client that run connects.
func NewClient(o Options) *Client {
	o.ConnectTimeout = cmp.Or(o.ConnectTimeout, connectTimeout)
	o.PingTimeout = cmp.Or(o.PingTimeout, pingTimeout)
	if o.Dial == nil {
		o.Dial = Dial
	}
	return &Client{Options: o}
}

// netCounters count what happens between a client, its outbox and the broker.
// They outlive both.
type Counters struct {
	Reconnects, ConnectFailures atomic.Uint64
	ProtocolErrors              atomic.Uint64 // connections and attempts that ended with a ProtocolError
	Redeliveries                atomic.Uint64 // times that the broker was asked to send again because the queue was full
	DeferredDropped             atomic.Uint64 // deferred messages that made room for newer ones
	StaleAcks                   atomic.Uint64 // acknowledgements of messages that came over an earlier connection
	Published                   atomic.Uint64
	OutboxDropped               atomic.Uint64 // publications that were given up
}

// connection returns the current connection, nil if there is none.
func (c *Client) Conn() *Conn { return c.current.Load() }

// stopReceiving leaves messages that arrive from now on with the broker.
func (c *Client) StopReceiving() { c.draining.Store(true) }

// stopping reports whether stopReceiving was called.
func (c *Client) Stopping() bool { return c.draining.Load() }

// setReplaced notes that another client continues the session, so that this one
// does not announce that it is offline.
func (c *Client) SetReplaced(replaced bool) { c.replaced.Store(replaced) }

// failureReason returns why there is no connection; "" while there is one and
// before the first attempt.
func (c *Client) Failure() string {
	if why := c.failure.Load(); why != nil {
		return *why
	}
	return ""
}

// refusedFilters returns the filters that the broker refused. Known is false
// until it has answered the first subscription.
func (c *Client) RefusedFilters() (filters []string, known bool) {
	if refused := c.refused.Load(); refused != nil {
		return slices.Clone(*refused), true
	}
	return nil, false
}

// run connects, and connects again whenever the connection is lost, until ctx
// ends; then it announces itself as offline and disconnects.
func (c *Client) Run(ctx context.Context) {
	short := 0 // connections in a row that did not last
	taken := 0 // those that may have been taken over
	pause := firstRetry / 2
	for ctx.Err() == nil {
		conn, err := c.connect(ctx)
		if err == nil {
			c.connected(conn)
			err = c.serveConn(ctx, conn)
			c.current.Store(nil)
			if ctx.Err() != nil {
				return
			}
			lasted := time.Since(conn.since)
			broken := c.lost(err, lasted)
			if errors.Is(err, errRedeliver) {
				continue
			}
			if short++; lasted > shortConnection {
				short = 0
			}
			pause = min(firstRetry<<min(short, 10), c.Config.MaxReconnectInterval)
			why := fmt.Sprintf("lost: %v", err)
			if taken++; broken || short == 0 {
				taken = 0
			}
			if taken >= clashAfter {
				why += "; " + clashAdvice
			}
			c.failure.Store(&why)
			if taken == clashAfter {
				c.Event("client_id_clash", c.ID)
				c.Log.Error(clashAdvice, "client_id", c.ID)
			}
		} else {
			c.failed(err)
			pause = min(2*pause, c.Config.MaxReconnectInterval)
		}
		// Half of the pause is random, so that the clients of a broker that was
		// away do not come back all at once.
		select {
		case <-time.After(pause/2 + rand.N(pause/2+1)):
		case <-ctx.Done():
		}
	}
}

const clashAdvice = "the broker ends the connection again and again within seconds: does another client use the same client_id? Give mqtt.client_id a value of its own"

// connected and failed log a change of state, not every attempt.
func (c *Client) connected(conn *Conn) {
	c.current.Store(conn)
	level := slog.LevelInfo
	if c.quiet {
		level = slog.LevelDebug
	}
	c.Log.Log(context.Background(), level, "connected to the broker", "client_id", c.ID, "attempts", c.attempts+1)
	c.attempts = 0
	c.failure.Store(nil)
}

// lost counts and logs the end of a connection, and reports whether the broker
// broke the protocol. What it does again and again is logged once.
func (c *Client) lost(err error, lasted time.Duration) (broken bool) {
	c.Counters.Reconnects.Add(1)
	former := c.broken
	broken = c.countProtocolError(err)
	level := slog.LevelWarn
	if c.quiet && broken && c.broken == former {
		level = slog.LevelDebug
	}
	c.Log.Log(context.Background(), level, "connection to the broker lost", "after", lasted.Round(time.Millisecond), "reason", err)
	c.quiet = broken && lasted <= shortConnection
	return broken
}

func (c *Client) failed(err error) {
	c.attempts++
	c.Counters.ConnectFailures.Add(1)
	c.countProtocolError(err)
	words := err.Error()
	if last := c.failure.Swap(&words); last == nil || *last != words {
		c.Log.Warn("cannot connect to the broker; will keep trying", "servers", c.Config.Servers, "error", err)
	}
}

// protocol counts an end of a connection that the broker has brought about by
// breaking the protocol, and reports whether it is one. There is an event whenever
// the broker does so in another way.
func (c *Client) countProtocolError(err error) (broken bool) {
	var why *ProtocolError
	if !errors.As(err, &why) {
		return false
	}
	c.Counters.ProtocolErrors.Add(1)
	if c.broken != *why {
		c.broken = *why
		c.Log.Error("the broker breaks MQTT 3.1.1: update it, or use another; the node goes on trying", "packet", why.Packet, "reason", why.Reason)
		c.Event("protocol_error", why.Packet+" "+why.Reason)
	}
	return true
}

// connect makes one attempt on every server.
func (c *Client) connect(ctx context.Context) (*Conn, error) {
	opts, err := c.Config.ClientOptions(c.ID)
	if err != nil {
		return nil, err
	}
	conn := &Conn{client: c, lost: make(chan struct{}), redeliver: make(chan struct{}), cursor: newCursorState()}
	var aborts []func() bool // of handshakes, should ctx end meanwhile
	defer func() {
		for _, stop := range aborts {
			stop()
		}
	}()
	opts.SetCleanSession(!c.Config.PersistentSession).
		SetPingTimeout(c.PingTimeout).
		SetConnectTimeout(c.ConnectTimeout).SetWriteTimeout(publishWait). // frameConn has the deadline for writing
		SetAutoReconnect(false).
		SetAutoAckDisabled(true).
		SetStore(noStore{}).
		SetConnectionLostHandler(func(_ paho.Client, err error) { conn.fail(err) }).
		SetCustomOpenConnectionFn(func(u *url.URL, o paho.ClientOptions) (net.Conn, error) {
			nc, err := c.Dial(ctx, u, o.TLSConfig, o.ConnectTimeout)
			if err != nil {
				return nil, err
			}
			conn.net = newFrameConn(nc, c.MaxPayload, writeTimeout)
			conn.net.onMessage, conn.net.onPuback = conn.receive, conn.receipts.pubackRead
			aborts = append(aborts, context.AfterFunc(ctx, func() { nc.Close() }))
			return conn.net, nil
		})
	if c.StateTopic != "" {
		opts.SetBinaryWill(c.StateTopic, []byte("offline"), 1, true)
	}
	conn.paho = paho.NewClient(opts)
	token := conn.paho.Connect()
	<-token.Done() // bounded by connectTimeout for each server, and by ctx
	if err := token.Error(); err != nil {
		return nil, fmt.Errorf("stream: connect: %w%s", err, advice(err))
	}
	conn.since = time.Now()
	if session, ok := token.(*paho.ConnectToken); c.CursorTopic == "" || ok && !session.SessionPresent() {
		conn.cursor.setNewSession(c.newestCommit())
	}
	return conn, nil
}

// errRedeliver ends a connection so that the broker sends again what was not
// acknowledged: MQTT 3.1.1, section 4.4, allows that only after a reconnect.
var errRedeliver = errors.New("reconnecting so that the broker repeats the messages that found the queue full")

// hold subscribes, announces the node and serves until the connection ends. It
// returns once nothing uses the connection any more.
func (c *Client) serveConn(ctx context.Context, conn *Conn) error {
	serving, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()

	conn.beginSession()
	wg.Go(func() { c.readCursor(serving, conn) })
	// Whoever sees the node online may count on its subscriptions.
	former := c.formerFilters()
	refused := c.subscribe(conn, c.Filters)
	c.unsubscribe(conn, former)
	conn.publishState("online")
	wg.Go(func() { c.Serve(serving, conn) })

	pause := resubscribeFirst
	again := time.NewTimer(pause)
	defer again.Stop()
	lasts := time.NewTimer(shortConnection)
	defer lasts.Stop()
	for {
		select {
		case <-conn.lost:
			return conn.err
		case <-lasts.C:
			if c.quiet {
				c.quiet = false
				c.Log.Info("connected to the broker, which keeps to the protocol again", "client_id", c.ID)
			}
		case <-conn.redeliver:
			if conn.awaitAcks(ctx); ctx.Err() != nil {
				conn.publishOffline()
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
			conn.publishOffline()
			return ctx.Err()
		}
	}
}

// skip lets a message that must be sent again have an answer now, when it comes
// for the first time.
func (c *Client) deferMessage(msg *Message) {
	if !msg.Dup {
		_, dropped := c.Deferred.Push(msg, func(*Message) bool { return true })
		c.Counters.DeferredDropped.Add(uint64(dropped))
	}
}
