package mqtt

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"edge/stream/topic"
)

// frameConn is the network connection between paho and the broker. It reads and
// writes messages and their acknowledgements itself, and passes all other packets
// to and from paho (doc.go shows which). Reading through paho would take five
// goroutines and about fifty allocations for a message that is answered, and a
// message of QoS 1 could overtake an earlier one of QoS 2.
//
// It cuts a PUBLISH packet to a bounded length while it reads it. paho allocates
// the length that a packet announces, up to 256 MB: one message could end the
// process, and again after each restart, because the broker sends it until it is
// acknowledged. A packet that was cut is still longer than any stream allows, so
// that the decoder refuses it, and it is acknowledged like every refused message.
//
// Bytes that are written while an earlier write is in progress are collected and
// leave in one write, so that a busy connection needs fewer system calls, and an
// idle one has no delay. Every write to the network has a deadline; paho gives one
// to publications only.
type frameConn struct {
	net.Conn
	protocol protocol // checks each packet before paho or the node reads it
	acks     acks     // written acknowledgements
	inbound
	outbound
}

// inbound is the state of reading. The reader's goroutine owns it, except the atomics.
type inbound struct {
	in       *bufio.Reader
	limit    int // bytes of a PUBLISH packet after its fixed header
	messages Pool[Message]

	// Set before the first Read. Where one is nil, paho reads the packets.
	onMessage func(*Message)       // receives a message in the reader's goroutine, and must not wait
	onPuback  func(id uint16) bool // receives a PUBACK; false: paho reads it

	arrived atomic.Uint64 // bytes from the network
	passed  atomic.Uint64 // messages that paho reads
	bulk    atomic.Bool   // a large message is being read
	pinged  atomic.Bool   // no packet has come since the last ping
	alive   chan struct{} // has an element once one has; capacity 1

	topics map[string]string // topics of earlier messages

	head []byte // checked beginning of a packet for paho
	rest []byte // unread end of head
	pass int    // bytes of the packet that paho still reads
	skip int    // bytes of the packet that are discarded after those

	broken  atomic.Pointer[ProtocolError] // protocol error that ended reading; nil: none
	closing atomic.Bool                   // the connection is being closed: what arrives is discarded
}

// outbound is the state of writing.
type outbound struct {
	writeTimeout time.Duration
	keepalive    uint16 // seconds that CONNECT announces in place of those of paho; 0: those of paho

	mu       sync.Mutex
	written  sync.Cond     // of mu: bytes of out were written, or writing has ended
	out      []byte        // bytes that wait to be written
	spare    []byte        // memory for the next out
	writing  bool          // a goroutine writes until out is empty
	held     bool          // out only grows, to leave in one piece at release
	writeErr error         // error that ended writing
	writer   func()        // the method write
	room     chan struct{} // has an element once bytes of out were written
}

const (
	maxKnownTopics = 1024 // number of cached topics; at one more, the cache is cleared
	maxKnownTopic  = 256  // bytes of a cached topic
)

// newFrameConn wraps conn; maxPayload is the largest payload that a stream accepts.
func newFrameConn(conn net.Conn, maxPayload int, writeTimeout time.Duration) *frameConn {
	const topicAndID = 2 + topic.MaxLength + 2
	f := &frameConn{
		Conn:     conn,
		protocol: protocol{requests: map[uint16]request{}},
		acks:     acks{publishes: map[uint16]uint64{}, pubrecs: map[uint16]uint64{}},
		inbound:  inbound{limit: topicAndID + maxPayload + 1, messages: NewPool[Message](), alive: make(chan struct{}, 1)},
		outbound: outbound{writeTimeout: writeTimeout, room: make(chan struct{}, 1)},
	}
	f.in = bufio.NewReader(untilClosing{f})
	f.written.L, f.writer = &f.mu, f.write
	return f
}

// untilClosing reads from the network until the connection is being closed.
type untilClosing struct{ *frameConn }

func (r untilClosing) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	r.arrived.Add(uint64(n))
	if r.closing.Load() {
		return 0, net.ErrClosed
	}
	return n, err
}

// Read implements net.Conn.
func (f *frameConn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(f.rest) == 0 && f.pass == 0 {
		if err := f.next(); err != nil {
			if why := (*ProtocolError)(nil); errors.As(err, &why) {
				f.broken.Store(why)
			}
			return 0, f.cause(err)
		}
	}
	if len(f.rest) > 0 {
		n := copy(p, f.rest)
		f.rest = f.rest[n:]
		return n, nil
	}
	n, err := f.in.Read(p[:min(len(p), f.pass)])
	f.pass -= n
	return n, f.cause(err)
}

// cause returns the error of writing if that ended the connection, else err.
func (f *frameConn) cause(err error) error {
	if err == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.writeErr != nil && f.writeErr != net.ErrClosed {
		return f.writeErr
	}
	return err
}

// next reads the fixed header of the next packet (MQTT 3.1.1, section 2.2), and the
// rest of a packet that paho does not read. The error is io.EOF only between two packets.
func (f *frameConn) next() error {
	for f.skip > 0 {
		n, err := f.in.Discard(min(f.skip, 1<<20))
		f.skip -= n
		if err != nil {
			return err
		}
	}
	kind, err := f.in.ReadByte()
	if err != nil {
		return err
	}
	if err := f.readRest(kind); err != io.EOF {
		return err
	}
	return io.ErrUnexpectedEOF
}

// readRest reads a packet after its first byte.
func (f *frameConn) readRest(kind byte) error {
	length, shift := 0, 0
	for more := true; more; shift += 7 {
		if shift > 21 {
			return violation(kind, "has a remaining length of more than four bytes")
		}
		b, err := f.in.ReadByte()
		if err != nil {
			return err
		}
		length |= int(b&0x7f) << shift
		more = b&0x80 != 0
	}
	if err := f.protocol.checkHeader(kind, length); err != nil {
		return err
	}
	if f.pinged.Load() {
		f.pinged.Store(false)
		wake(f.alive)
	}
	f.pass = length
	if kind>>4 == packetPublish && length > f.limit {
		f.pass, f.skip = f.limit, length-f.limit
	}
	switch {
	case kind>>4 == packetPublish && f.onMessage != nil:
		return f.readMessage(kind)
	case kind>>4 == packetPubrel && f.onMessage != nil:
		return f.answerPubrel(kind)
	case kind>>4 == packetPuback && length == 2 && f.onPuback != nil:
		id, err := f.in.Peek(2)
		if err != nil {
			return err
		}
		f.acks.pubackRead(binary.BigEndian.Uint16(id))
		if f.onPuback(binary.BigEndian.Uint16(id)) {
			f.pass = 0
			_, err := f.in.Discard(2)
			return err
		}
	case kind>>4 == packetPingresp:
		if id := f.acks.pongRead(); id > 0 && f.onPuback != nil {
			f.onPuback(id)
		}
		if f.onMessage != nil { // paho has sent no ping
			return f.protocol.checkPong(kind)
		}
	}
	return f.forward(kind)
}

// forward passes a packet to paho: the part that has to be checked at once, the
// rest of a PUBLISH while paho reads it.
func (f *frameConn) forward(kind byte) error {
	f.head = binary.AppendUvarint(append(f.head[:0], kind), uint64(f.pass)) // the encoding is that of MQTT
	begin, size := len(f.head), f.pass
	if kind>>4 == packetPublish {
		f.passed.Add(1)
		topic, err := f.in.Peek(2)
		if err != nil {
			return err
		}
		size = min(2+int(binary.BigEndian.Uint16(topic))+2, f.pass)
	}
	f.head = slices.Grow(f.head, size)[:begin+size]
	body := f.head[begin:]
	if _, err := io.ReadFull(f.in, body); err != nil {
		return err
	}
	f.pass -= size
	var err error
	if kind>>4 == packetPublish {
		_, _, _, err = splitPublish(kind, body)
	} else {
		err = f.protocol.checkAnswer(kind, body)
	}
	if err == nil {
		f.rest = f.head
	}
	return err
}

// readMessage reads a PUBLISH packet (MQTT 3.1.1, section 3.3).
func (f *frameConn) readMessage(kind byte) error {
	m := f.messages.Get()
	if m == nil {
		m = &Message{home: f.messages}
		m.Ack = m.acknowledge
	}
	m.packet = slices.Grow(m.packet[:0], f.pass)[:f.pass]
	f.bulk.Store(f.pass >= largePublication)
	f.pass = 0
	if _, err := io.ReadFull(f.in, m.packet); err != nil {
		return err
	}
	f.bulk.Store(false)
	topic, id, payload, err := splitPublish(kind, m.packet)
	if err != nil {
		return err
	}
	m.QoS, m.Retained, m.ID = kind>>1&3, kind&1 != 0, id
	m.Dup = m.QoS > 0 && kind&8 != 0 // the flag means nothing at QoS 0
	m.Topic, m.Payload = f.topicText(topic), payload
	f.onMessage(m)
	return nil
}

// topicText returns a topic as text; most topics are cached.
func (f *frameConn) topicText(topic []byte) string {
	if t, ok := f.topics[string(topic)]; ok {
		return t
	}
	t := string(topic)
	if len(t) > maxKnownTopic {
		return t
	}
	if len(f.topics) == maxKnownTopics || f.topics == nil {
		f.topics = map[string]string{}
	}
	f.topics[t] = t
	return t
}

// answerPubrel reads a PUBREL packet and answers it with PUBCOMP (MQTT 3.1.1, section
// 4.3.3). The broker sends it once it has read the PUBREC packet, possibly that of an
// earlier connection.
func (f *frameConn) answerPubrel(kind byte) error {
	var body [2]byte
	f.pass = 0
	if _, err := io.ReadFull(f.in, body[:]); err != nil {
		return err
	}
	if err := f.protocol.checkAnswer(kind, body[:]); err != nil {
		return err
	}
	id := binary.BigEndian.Uint16(body[:])
	f.acks.pubrelRead(id)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.writeErr == nil {
		f.out = binary.BigEndian.AppendUint16(append(f.out, packetPubcomp<<4, 2), id)
		f.startWriter()
	}
	return nil
}
