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

// frameConn is a connection that cuts a PUBLISH packet to a bounded length
// while it is read. paho allocates whatever length a packet announces, up to
// 256 MB: one message could end the process, and again after each restart,
// because the broker sends it until it is acknowledged. What is left of a
// packet that was cut is still longer than any stream allows, so that the
// decoder refuses it and it is acknowledged like every other refusal.
//
// Messages and their acknowledgements do not go through paho, which needs five
// goroutines and some fifty allocations for one that is answered, and which lets a
// message of QoS 1 overtake an earlier one of QoS 2: they are read and written here.
// All else is paho's: the session, subscriptions, pings.
//
// What is written while an earlier packet is on its way to the network is
// collected and goes out at once, so that a busy connection needs fewer system
// calls, and an idle one waits for nothing. Every write to the network has a
// deadline; paho gives one to publications only.
type frameConn struct {
	net.Conn
	protocol protocol // checks each packet before paho or the node sees it
	acks     acks     // that were written
	inbound
	outbound
}

// inbound is the state of reading; the reader's goroutine owns it, atomics apart.
type inbound struct {
	in       *bufio.Reader
	limit    int // bytes of a PUBLISH packet after its fixed header
	messages pool[Message]

	// Set before the first Read; nil: such packets go to the reader.
	onMessage func(*Message)       // takes a message; the reader's goroutine, which must not wait
	onPuback  func(id uint16) bool // hears of a PUBACK; false: it goes to the reader

	arrived atomic.Uint64 // bytes
	pinged  atomic.Bool   // the reader has sent a ping, and waits for its answer

	topics map[string]string // texts of those that messages have come with

	head []byte // what goes to the reader of a packet and was checked
	rest []byte // what is left of head
	pass int    // bytes of the packet that still go to the reader
	skip int    // bytes of the packet that are dropped after those

	broken  atomic.Pointer[ProtocolError] // that has ended reading; nil: none
	closing atomic.Bool                   // what is read from now on is dropped
}

// outbound is the state of writing.
type outbound struct {
	writeTimeout time.Duration

	mu       sync.Mutex
	written  sync.Cond     // of mu: something has left out, or writing has ended
	out      []byte        // what waits to be written
	spare    []byte        // becomes out
	writing  bool          // a goroutine writes until out is empty
	held     bool          // nothing leaves: what is put into out meanwhile leaves in one piece
	writeErr error         // that ended it
	writer   func()        // write
	room     chan struct{} // has an element once something has left out
}

const (
	maxKnownTopics = 1024 // texts in topics; one more, and all are forgotten
	maxKnownTopic  = 256  // bytes of one of them

)

// newFrameConn wraps conn; maxPayload is the largest payload that is of use.
func newFrameConn(conn net.Conn, maxPayload int, writeTimeout time.Duration) *frameConn {
	const topicAndID = 2 + topic.MaxLength + 2
	f := &frameConn{
		Conn:     conn,
		inbound:  inbound{limit: topicAndID + maxPayload + 1, messages: make(pool[Message], pooled)},
		outbound: outbound{writeTimeout: writeTimeout, room: make(chan struct{}, 1)},
	}
	f.in = bufio.NewReader(untilClosing{f})
	f.written.L, f.writer = &f.mu, f.write
	return f
}

// untilClosing reads what the network brings before the connection is being closed.
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

// cause returns what ended the connection where reading fails because writing has.
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

// next reads the fixed header of the next packet (MQTT 3.1.1, section 2.2), and
// the rest of one that is not for the reader.
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
	length, shift := 0, 0
	for more := true; more; shift += 7 {
		if shift > 21 {
			return violation(kind, "has a remaining length of more than four bytes")
		}
		b, err := f.in.ReadByte()
		if err != nil {
			return truncated(err)
		}
		length |= int(b&0x7f) << shift
		more = b&0x80 != 0
	}
	if err := f.protocol.checkHeader(kind, length); err != nil {
		return err
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
			return truncated(err)
		}
		f.acks.pubackRead(binary.BigEndian.Uint16(id))
		if f.onPuback(binary.BigEndian.Uint16(id)) {
			f.pass = 0
			_, err := f.in.Discard(2)
			return err
		}
	case kind>>4 == packetPingresp:
		f.acks.pongRead()
		f.pinged.Store(false)
	}
	return f.forward(kind)
}

// truncated returns the error of reading within a packet, where no end is expected.
func truncated(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// forward gives the reader a packet: at once what has to be checked of it, and
// what is left of a PUBLISH as it is read.
func (f *frameConn) forward(kind byte) error {
	f.head = binary.AppendUvarint(append(f.head[:0], kind), uint64(f.pass)) // the same as MQTT's
	begin, size := len(f.head), f.pass
	if kind>>4 == packetPublish {
		topic, err := f.in.Peek(2)
		if err != nil {
			return truncated(err)
		}
		size = min(2+int(binary.BigEndian.Uint16(topic))+2, f.pass)
	}
	f.head = slices.Grow(f.head, size)[:begin+size]
	body := f.head[begin:]
	if _, err := io.ReadFull(f.in, body); err != nil {
		return truncated(err)
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

// message reads a PUBLISH packet (MQTT 3.1.1, section 3.3).
func (f *frameConn) readMessage(kind byte) error {
	m := newMessage(f.messages)
	m.packet = slices.Grow(m.packet[:0], f.pass)[:f.pass]
	f.pass = 0
	if _, err := io.ReadFull(f.in, m.packet); err != nil {
		return truncated(err)
	}
	topic, id, payload, err := splitPublish(kind, m.packet)
	if err != nil {
		return err
	}
	m.QoS, m.Retained, m.ID = kind>>1&3, kind&1 != 0, id
	m.Dup = m.QoS > 0 && kind&8 != 0 // a message of QoS 0 is not sent again, whatever the flag says
	m.Topic, m.Payload = f.topicText(topic), payload
	f.onMessage(m)
	if f.pinged.Swap(false) {
		f.rest = pong
	}
	return nil
}

// pong is a PINGRESP packet. The reader has it once a message arrives after its
// ping, which shows as well that the broker is alive. The broker's own answer
// comes after all that is in flight: the reader would take a slow connection for
// lost, and does not send another ping until then, which the broker may need.
var pong = []byte{packetPingresp << 4, 0}

// text returns a topic, which most likely has come before.
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

// complete reads a PUBREL packet and answers it with PUBCOMP (MQTT 3.1.1, section
// 4.3.3). The broker sends it once it has read the PUBREC packet, perhaps that of an
// earlier connection.
func (f *frameConn) answerPubrel(kind byte) error {
	var body [2]byte
	f.pass = 0
	if _, err := io.ReadFull(f.in, body[:]); err != nil {
		return truncated(err)
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
