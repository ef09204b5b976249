package stream

import (
	"time"
)

// message is one PUBLISH packet from the broker.
type message struct {
	topic     string
	payload   []byte
	qos       byte
	dup       bool
	retained  bool
	id        uint16 // of the packet; 0 for QoS 0
	arrived   time.Time
	from      origin // the connection that it came over; nil if the broker did not send it
	confirmed uint64 // acknowledgements over from that the broker had read by then
	ack       func() // acknowledges the message; any goroutine may call it, once
	attached  any    // data of the program that put the message into the queue; nil if the broker sent it

	conn   *connection   // from
	packet []byte        // holds the payload
	home   pool[message] // where the memory goes; nil: nowhere
}

// origin is a connection as the receiver of a message uses it. *connection
// implements it.
type origin interface {
	// Lost is closed when the connection has ended.
	Lost() <-chan struct{}
	// CursorKnown is closed once Cursor is valid.
	CursorKnown() <-chan struct{}
	// Cursor returns the cursor that the broker kept when the connection began.
	Cursor() cursor
	// PublishCursor publishes the number of a commit. One goroutine calls it, after
	// the acknowledgements of that commit.
	PublishCursor(sequence uint64)
	// Written returns how many acknowledgements were written over the connection; 0
	// if it takes no more, because the last ones may not have been written.
	Written() uint64
	// Confirmed returns how many of them the broker has provably read.
	Confirmed() uint64
	// Hold keeps what is written from now on until Release, so that it leaves in
	// one piece.
	Hold()
	Release()
}

// messageSize is the size by which a queue of messages is bounded.
func messageSize(m *message) int { return len(m.topic) + len(m.payload) }

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
	m.conn, m.from, m.id, m.confirmed = nil, nil, 0, 0
	m.home.put(m)
}
