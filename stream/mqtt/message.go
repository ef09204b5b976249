package mqtt

import "time"

// Message is one PUBLISH packet from the broker.
type Message struct {
	Topic     string
	Payload   []byte
	QoS       byte
	Dup       bool
	Retained  bool
	ID        uint16 // packet identifier; 0 for QoS 0
	Arrived   time.Time
	From      Origin // the connection that it came over; nil if it did not come from the broker
	Confirmed uint64 // number of acknowledgements over From that the broker had read by then
	Ack       func() // acknowledges the message; any goroutine may call it, once
	Attached  any    // data of the caller that put the message into the queue; nil for a message of the broker

	conn   *Conn         // the connection behind From
	packet []byte        // memory of the payload
	home   Pool[Message] // pool that the memory returns to; nil: the memory is not used again
}

// Origin is a connection as the receiver of its messages uses it; *Conn is one.
type Origin interface {
	// Lost is closed when the connection has ended.
	Lost() <-chan struct{}
	// CursorKnown is closed once Cursor is valid.
	CursorKnown() <-chan struct{}
	// Cursor returns the cursor that the broker kept when the connection began. It
	// is valid once CursorKnown is closed.
	Cursor() Cursor
	// PublishCursor publishes the cursor of a commit. One goroutine calls it, after
	// the acknowledgements of that commit.
	PublishCursor(Cursor)
	// Written returns the number of acknowledgements that were written over the
	// connection; 0 if it accepts no more, because the last ones may not have been
	// written.
	Written() uint64
	// Confirmed returns the number of acknowledgements that the broker has provably
	// read.
	Confirmed() uint64
	// Hold delays all writes until Release, so that they leave in one piece.
	Hold()
	Release()
}

// MessageSize is the size by which a queue of messages is bounded.
func MessageSize(m *Message) int { return len(m.Topic) + len(m.Payload) }

// acknowledge sends the acknowledgement of the message.
func (m *Message) acknowledge() {
	if m.QoS > 0 {
		m.conn.acknowledge(func() { m.conn.net.acknowledge(m.ID, m.QoS) })
	}
}

// Free returns the memory of an acknowledged message to its pool.
func (m *Message) Free() {
	if m.home == nil || cap(m.packet) > maxPooledBytes {
		return
	}
	m.conn, m.From, m.ID, m.Confirmed = nil, nil, 0, 0
	m.home.Put(m)
}
