package mqtt

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
)

const offlineWithin = time.Second // for the broker to acknowledge that the node is offline

const disconnectWithin = 500 // milliseconds, closeFlush among them

// connection is one life of the network connection.
type Conn struct {
	client    *Client
	paho      paho.Client
	net       *frameConn
	receipts  receipts // of publications
	cursor    *cursorState
	cursors   []delivery // cursors on their way; the committer's
	since     time.Time
	unacked   atomic.Int64 // messages of QoS 1 that were taken and are not acknowledged
	granted   atomic.Bool  // every subscription
	skipping  atomic.Bool  // a message of QoS 1 found the ring full: it and all that follow must be sent again
	redeliver chan struct{}
	redo      sync.Once
	lost      chan struct{} // closed when the connection has ended
	end       sync.Once
	err       error // why; valid once lost is closed
}

// take takes a message.
func (conn *Conn) receive(msg *Message) {
	msg.conn, msg.From = conn, conn
	conn.enqueue(msg)
}

// accept lets a message wait for the worker. It never waits: nothing more is
// read, not even an answer to a ping, until it returns.
func (conn *Conn) enqueue(msg *Message) {
	c := conn.client
	if c.CursorTopic != "" && msg.Topic == c.CursorTopic {
		conn.cursor.setPayload(msg.Payload)
		msg.Free()
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
		c.Counters.Redeliveries.Add(1)
		c.Event("overload", "the queue of messages is full; the broker will be asked to send again")
		conn.skipping.Store(true)
		c.deferMessage(msg)
		conn.acknowledged()
	}
}

// subscribed reports whether the broker has granted every subscription.
func (conn *Conn) Subscribed() bool { return conn.granted.Load() }

// unacknowledged returns how many messages of QoS 1 and 2 came over the
// connection and are not acknowledged.
func (conn *Conn) Unacknowledged() int64 { return conn.unacked.Load() }

// settle acknowledges a message, unless its connection is gone: the broker
// then sends it again.
func (conn *Conn) acknowledge(ack func()) {
	select {
	case <-conn.lost:
		conn.client.Counters.StaleAcks.Add(1)
	default:
		ack()
	}
	conn.acknowledged()
}

// settled counts a message of QoS 1 as done with. Once everything that came
// before a skipped message is done with, the broker may repeat the rest.
func (conn *Conn) acknowledged() {
	if conn.unacked.Add(-1) == 0 && conn.skipping.Load() {
		conn.redo.Do(func() { close(conn.redeliver) })
	}
}

// publish hands a message to the network. It waits no longer than handOver.
func (conn *Conn) publish(m *Publication) delivery {
	r := conn.receipts.next()
	if err := conn.net.publish(m, r.id); err != nil || m.QoS == 0 {
		conn.receipts.finish(r.id, err)
	}
	return r
}

// done is closed when the connection has ended.
func (conn *Conn) done() <-chan struct{} { return conn.lost }

// fail ends the connection. Where the broker broke the protocol, that is why,
// whatever was noticed first.
func (conn *Conn) fail(err error) {
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
func (conn *Conn) close() {
	conn.paho.Disconnect(disconnectWithin)
	conn.end.Do(func() {
		conn.err = errors.New("stream: connection closed")
		close(conn.lost)
	})
}

// announce publishes the node's state; nil if the client has none to announce.
func (conn *Conn) publishState(state string) delivery {
	if conn.client.StateTopic == "" {
		return nil
	}
	return conn.publish(&Publication{Topic: conn.client.StateTopic, Payload: []byte(state), Retained: true, QoS: 1})
}

// confirm waits until the broker has read what was acknowledged. Whatever it has
// not read when the connection ends comes again, and would take up the room that
// was made for what follows.
func (conn *Conn) awaitAcks(ctx context.Context) {
	read := conn.net.acks.allRead()
	conn.net.ping()
	conn.await(ctx, read, conn.client.PingTimeout)
}

// goodbye says that the node is offline, unless another follows, and ends the
// connection. Where the broker has not acknowledged that in time, it may not
// come at all: the connection then ends without DISCONNECT, so that the broker
// publishes the Last Will, which says the same.
func (conn *Conn) publishOffline() {
	if conn.client.replaced.Load() {
		conn.close()
		return
	}
	if d := conn.publishState("offline"); d != nil {
		select {
		case <-d.Done():
		case <-conn.lost:
		case <-time.After(offlineWithin):
			conn.net.Close()
		}
	}
	conn.close()
}

// CursorKnown implements origin.
func (conn *Conn) CursorKnown() <-chan struct{} { return conn.cursor.known }

// Cursor implements origin.
func (conn *Conn) Cursor() Cursor { return conn.cursor.Cursor }

// Written implements origin.
func (conn *Conn) Written() uint64 { return conn.net.position() }

// Confirmed implements origin.
func (conn *Conn) Confirmed() uint64 { return conn.net.acks.confirmed.Load() }

// Hold implements origin.
func (conn *Conn) Hold() { conn.net.hold() }

// Release implements origin.
func (conn *Conn) Release() { conn.net.release() }

// Lost implements origin.
func (conn *Conn) Lost() <-chan struct{} { return conn.lost }

// stillArriving is how many times as long as its quiet time a wait may last while
// bytes arrive.
const stillArriving = 30

// awaits waits for an answer from the broker. A broker sends what is in flight
// before it answers, and a link may be slow: as long as bytes arrive, the answer
// may be on its way. It reports false once nothing has arrived for quiet, after
// stillArriving times as long, and where the connection or ctx ends.
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
