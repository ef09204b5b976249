package mqtt

import (
	"time"
)

// message is one PUBLISH packet from the broker.
type Message struct {
	Topic     string
	Payload   []byte
	QoS       byte
	Dup       bool
	Retained  bool
	ID        uint16 // of the packet; 0 for QoS 0
	Arrived   time.Time
	From      Origin // the connection that it came over; nil if the broker did not send it
	Confirmed uint64 // acknowledgements over from that the broker had read by then
	Ack       func() // acknowledges the message; any goroutine may call it, once
	Attached  any    // data of the program that put the message into the queue; nil if the broker sent it

	conn   *Conn         // from
	packet []byte        // holds the payload
	home   pool[Message] // where the memory goes; nil: nowhere
}

// origin is a connection as the receiver of a message uses it. *connection
// implements it.
type Origin interface {
	// Lost is closed when the connection has ended.
	Lost() <-chan struct{}
	// CursorKnown is closed once Cursor is valid.
	CursorKnown() <-chan struct{}
	// Cursor returns the cursor that the broker kept when the connection began.
	Cursor() Cursor
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
func MessageSize(m *Message) int { return len(m.Topic) + len(m.Payload) }

// newMessage returns a message whose packet may be read into.
func newMessage(home pool[Message]) *Message {
	m := home.get()
	if m == nil {
		m = &Message{home: home}
		m.Ack = m.acknowledge
	}
	return m
}

// acknowledge tells the broker that a message is done with.
func (m *Message) acknowledge() {
	if m.QoS > 0 {
		m.conn.acknowledge(func() { m.conn.net.acknowledge(m.ID, m.QoS) })
	}
}

// free lets another message have the memory of one that is done with.
func (m *Message) Free() {
	if m.home == nil || cap(m.packet) > maxPooledBytes {
		return
	}
	m.conn, m.From, m.ID, m.Confirmed = nil, nil, 0, 0
	m.home.put(m)
}
