package mqtt

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
)

const disconnectWithin = 500 // milliseconds, includes closeFlush

// Conn is one network connection to the broker; a reconnect makes another.
type Conn struct {
	client    *Client
	paho      paho.Client
	net       *frameConn
	receipts  receipts // receipts of publications
	cursor    *cursorState
	cursors   []*receipt // unacknowledged cursors; owned by the caller of PublishCursor
	since     time.Time
	sinceWall time.Time    // since, without its monotonic clock
	server    string       // of Config.Servers
	unacked   atomic.Int64 // received messages of QoS 1 and 2 that are not acknowledged
	granted   atomic.Bool  // the broker granted all subscriptions
	skipping  atomic.Bool  // a message of QoS 1 found the queue full: the broker must send it and its successors again
	redeliver chan struct{}
	denied    chan struct{}     // another client has published that the node is not online, or asks
	dropped   chan []paho.Token // subscriptions that Drop has asked to end
	lost      chan struct{}     // closed when the connection has ended
	end       sync.Once
	err       error // cause of the end; valid once lost is closed
	culprit   bool  // a publication was the cause; valid once Client.Serve has returned
	mended    bool  // the next connection has no such publication; likewise
}

// receive puts a message of this connection into the queue. It never waits: until it
// returns, no packet is read, not even the answer to a ping.
func (conn *Conn) receive(msg *Message) {
	c := conn.client
	msg.conn, msg.From = conn, conn
	if c.CursorTopic != "" && msg.Topic == c.CursorTopic {
		conn.cursor.setPayload(msg.Payload)
		msg.Free()
		return
	}
	if c.StateTopic != "" && msg.Topic == c.StateTopic {
		ended := conn.receiveState(msg)
		if msg.QoS == 0 { // otherwise it is of a stream's subscription
			if !ended || c.Aside == nil || !c.Aside(msg) {
				msg.Free()
			}
			return
		}
	}
	if c.Aside != nil && msg.QoS == 0 && c.Aside(msg) {
		return
	}
	if c.draining.Load() {
		return
	}
	msg.Arrived, msg.Confirmed = time.Now(), conn.Confirmed()
	if msg.QoS > 0 {
		if conn.skipping.Load() {
			c.deferMessage(msg)
			return
		}
		conn.unacked.Add(1)
	}
	var mayDrop func(*Message) bool
	if msg.QoS == 0 {
		mayDrop = func(old *Message) bool { return old.QoS == 0 }
	}
	taken, dropped := c.Queue.Push(msg, mayDrop)
	c.Dropped.Add(uint64(dropped))
	switch {
	case taken:
	case msg.QoS == 0:
		c.Dropped.Add(1)
	default:
		c.Event("overload", "the queue of messages is full; the broker will be asked to send again")
		conn.skipping.Store(true)
		c.deferMessage(msg)
		conn.acknowledged()
	}
}

// Subscribed reports whether the broker has granted all subscriptions.
func (conn *Conn) Subscribed() bool { return conn.granted.Load() }

// Unacknowledged returns the number of received messages of QoS 1 and 2 that are
// not acknowledged.
func (conn *Conn) Unacknowledged() int64 { return conn.unacked.Load() }

// acknowledge calls ack, unless the connection is lost: the broker then sends the
// message again.
func (conn *Conn) acknowledge(ack func()) {
	if !isClosed(conn.lost) {
		ack()
	}
	conn.acknowledged()
}

// acknowledged counts a message of QoS 1 or 2 as done. Once all predecessors of a
// skipped message are done, the broker may send the rest again.
func (conn *Conn) acknowledged() {
	if conn.unacked.Add(-1) == 0 && conn.skipping.Load() {
		wake(conn.redeliver)
	}
}

// publish hands a publication to the network. It waits no longer than publishWait. One of QoS
// 0 has no acknowledgement but, if it is to be proven, the answer to a ping after it.
func (conn *Conn) publish(m *Publication, proven bool) *receipt {
	r := conn.receipts.next()
	err := conn.net.publish(m, r.id)
	switch {
	case err == nil && m.QoS == 0 && proven:
		conn.net.acks.prove(r.id)
		conn.net.ping()
	case err != nil || m.QoS == 0:
		conn.receipts.finish(r.id, err)
	}
	return r
}

// uploading reports whether a large publication is on its way: over a slow connection nothing may come meanwhile.
func (conn *Conn) uploading() bool { return conn.net.acks.uploading() }

// receiving reports whether a large message is being received, behind which acknowledgements may wait.
func (conn *Conn) receiving() bool { return conn.net.bulk.Load() }

// retain publishes a retained message with the quality of service of Config.
func (conn *Conn) retain(topic string, payload []byte) *receipt {
	return conn.publish(&Publication{Topic: topic, Payload: payload, QoS: byte(conn.client.Config.QoS), Retained: true}, false)
}

// mayBeTaken reports whether another client may have taken the connection over, which has
// ended after that time. A machine that slept meanwhile was silent for too long: the wall
// clock goes on while it sleeps, and the monotonic one stands still.
func (conn *Conn) mayBeTaken(broken bool, lasted time.Duration) bool {
	slept := time.Now().Round(0).Sub(conn.sinceWall) - time.Since(conn.since)
	return !broken && !conn.culprit && lasted <= shortConnection && slept <= shortConnection
}

// broken reports whether the broker or the network has ended the connection. One that this node has ended
// because of a protocol error says nothing about the publications.
func (conn *Conn) broken() bool {
	return isClosed(conn.lost) && conn.err != errClosed && conn.net.broken.Load() == nil
}

// isClosed reports whether a channel is closed that nothing is sent to.
func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// explained notes that a publication has ended the connection; mended: none as large follows.
func (conn *Conn) explained(mended bool) { conn.culprit, conn.mended = true, mended }

// fail ends the connection. A protocol error of the broker takes precedence over
// err as the cause.
func (conn *Conn) fail(err error) {
	if broken := conn.net.broken.Load(); broken != nil {
		err = broken
	}
	conn.ended(err)
	conn.paho.Disconnect(0)
}

// ended notes the end of the connection; the first cause counts.
func (conn *Conn) ended(err error) {
	conn.end.Do(func() {
		conn.err = err
		close(conn.lost)
	})
}

// keepAlive sends pings until ctx or the connection ends, and ends the connection if
// nothing comes after one: neither its answer, which follows all queued messages, nor
// a part of another packet. paho would wake every five seconds for it.
func (conn *Conn) keepAlive(ctx context.Context) {
	ping := time.NewTicker(conn.client.Config.Keepalive)
	defer ping.Stop()
	late := time.NewTimer(conn.client.PingTimeout)
	defer late.Stop()
	late.Stop()
	waiting := false // late is running: later pings do not delay it
	arrived := uint64(0)
	for {
		select {
		case <-ping.C:
			conn.net.ping()
			if !waiting {
				late.Reset(conn.client.PingTimeout)
				waiting, arrived = true, conn.net.arrived.Load()
			}
		case <-conn.net.alive:
			if !conn.net.pinged.Load() {
				late.Stop()
				waiting = false
			}
		case <-late.C:
			// A large message may be on its way, or the acknowledgement that the outbox waits for: the answer comes behind it.
			if before := arrived; conn.uploading() || conn.net.arrived.Load() > before {
				arrived = conn.net.arrived.Load()
				late.Reset(conn.client.PingTimeout)
				continue
			}
			conn.fail(errors.New("mqtt: ping: no answer from the broker"))
			return
		case <-conn.lost:
			return
		case <-ctx.Done():
			return
		}
	}
}

// errClosed is the cause of the end of a connection that this node has closed.
var errClosed = errors.New("mqtt: connection closed")

// close ends the connection with DISCONNECT; the broker publishes no Last Will.
func (conn *Conn) close() {
	conn.paho.Disconnect(disconnectWithin)
	conn.ended(errClosed)
}

// awaitAcks waits until the broker has read all acknowledgements. Messages whose
// acknowledgement it has not read when the connection ends come again, and would
// take the room in the queue that was made for their successors.
func (conn *Conn) awaitAcks(ctx context.Context) {
	read := conn.net.acks.allRead()
	conn.net.ping()
	conn.await(ctx, read, conn.client.PingTimeout)
}

// errUnanswered ends a connection over which a publication was not acknowledged in time.
var errUnanswered = errors.New("mqtt: publish: no acknowledgement from the broker")

const (
	pingAgain = time.Second // after which a ping is repeated that may have lost its answer
	maxPings  = 60          // that are repeated
)

// awaitAnswers waits until the broker answers pings. Where more retained messages of the
// subscriptions wait than its queue holds, it drops its answers to packets that come meanwhile:
// mosquitto does so above max_queued_messages packets. After the first answer, the broker has
// pingAgain for each other one.
func (conn *Conn) awaitAnswers(ctx context.Context) {
	acks := &conn.net.acks
	answered, some := acks.nextPong(), false
	for range maxPings {
		if !some {
			conn.net.ping()
		}
		select {
		case <-answered:
			answered, some = acks.nextPong(), true
			if acks.answered() {
				return
			}
		case <-time.After(pingAgain):
			if some { // the others are lost
				acks.giveUp()
				return
			}
		case <-conn.lost:
			return
		case <-ctx.Done():
			return
		}
	}
}

// CursorKnown implements Origin.
func (conn *Conn) CursorKnown() <-chan struct{} { return conn.cursor.known }

// Cursor implements Origin.
func (conn *Conn) Cursor() Cursor { return conn.cursor.Cursor }

// Written implements Origin.
func (conn *Conn) Written() uint64 { return conn.net.position() }

// Confirmed implements Origin.
func (conn *Conn) Confirmed() uint64 { return conn.net.acks.confirmed.Load() }

// Hold implements Origin.
func (conn *Conn) Hold() { conn.net.hold() }

// Release implements Origin.
func (conn *Conn) Release() { conn.net.release() }

// Lost implements Origin.
func (conn *Conn) Lost() <-chan struct{} { return conn.lost }

// stillArriving bounds a wait during which bytes arrive, as a multiple of its quiet
// time.
const stillArriving = 30

// await waits for an answer from the broker. A broker sends queued messages before
// an answer, and a link may be slow: as long as bytes arrive, the answer may
// follow. It reports false if nothing arrived for quiet, after stillArriving times
// quiet, and when the connection or ctx ends.
func (conn *Conn) await(ctx context.Context, answer <-chan struct{}, quiet time.Duration) bool {
	began, arrived := time.Now(), conn.net.arrived.Load()
	late := time.NewTimer(quiet)
	defer late.Stop()
	for {
		select {
		case <-answer:
			return true
		case <-late.C:
			now := conn.net.arrived.Load()
			if now == arrived || time.Since(began) >= stillArriving*quiet {
				return false
			}
			arrived = now
			late.Reset(quiet)
		case <-conn.lost:
			return false
		case <-ctx.Done():
			return false
		}
	}
}
