package stream

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
	in           *bufio.Reader
	protocol     protocol // checks each packet before paho or the node sees it
	limit        int      // bytes of a PUBLISH packet after its fixed header
	writeTimeout time.Duration
	messages     pool[message]

	// Set before the first Read; nil: such packets go to the reader.
	take  func(*message)       // takes a message; the reader's goroutine, which must not wait
	acked func(id uint16) bool // hears of a PUBACK; false: it goes to the reader

	acks    acks          // that were written
	arrived atomic.Uint64 // bytes
	pinged  atomic.Bool   // the reader has sent a ping, and waits for its answer

	topics map[string]string // texts of those that messages have come with

	head []byte // what goes to the reader of a packet and was checked
	rest []byte // what is left of head
	pass int    // bytes of the packet that still go to the reader
	skip int    // bytes of the packet that are dropped after those

	broken  atomic.Pointer[ProtocolError] // that has ended reading; nil: none
	closing atomic.Bool                   // what is read from now on is dropped

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
	maxUnwritten = 64 << 10 // bytes in out, at which Write waits
	closeFlush   = 250 * time.Millisecond
)

var errBusy = errors.New("stream: publish: the network takes no more")

// newFrameConn wraps conn; maxPayload is the largest payload that is of use.
func newFrameConn(conn net.Conn, maxPayload int, writeTimeout time.Duration) *frameConn {
	const topicAndID = 2 + maxTopic + 2
	f := &frameConn{Conn: conn, limit: topicAndID + maxPayload + 1, writeTimeout: writeTimeout, room: make(chan struct{}, 1), messages: make(pool[message], kept)}
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
	if err := f.protocol.header(kind, length); err != nil {
		return err
	}
	f.pass = length
	if kind>>4 == packetPublish && length > f.limit {
		f.pass, f.skip = f.limit, length-f.limit
	}
	switch {
	case kind>>4 == packetPublish && f.take != nil:
		return f.message(kind)
	case kind>>4 == packetPubrel && f.take != nil:
		return f.complete(kind)
	case kind>>4 == packetPuback && length == 2 && f.acked != nil:
		id, err := f.in.Peek(2)
		if err != nil {
			return truncated(err)
		}
		f.acks.answered(binary.BigEndian.Uint16(id))
		if f.acked(binary.BigEndian.Uint16(id)) {
			f.pass = 0
			_, err := f.in.Discard(2)
			return err
		}
	case kind>>4 == packetPingresp:
		f.acks.pong()
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
		err = f.protocol.answer(kind, body)
	}
	if err == nil {
		f.rest = f.head
	}
	return err
}

// message reads a PUBLISH packet (MQTT 3.1.1, section 3.3).
func (f *frameConn) message(kind byte) error {
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
	m.qos, m.retained, m.id = kind>>1&3, kind&1 != 0, id
	m.dup = m.qos > 0 && kind&8 != 0 // a message of QoS 0 is not sent again, whatever the flag says
	m.topic, m.payload = f.text(topic), payload
	f.take(m)
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
func (f *frameConn) text(topic []byte) string {
	if t, ok := f.topics[string(topic)]; ok {
		return t
	}
	t := string(topic)
	remember(&f.topics, t, t)
	return t
}

// publish writes a PUBLISH packet, id being its identifier where its QoS is
// above 0. It waits while too much waits already, but not long: errBusy.
func (f *frameConn) publish(m *outgoing, id uint16) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.out) >= maxUnwritten && f.writeErr == nil && !f.held {
		if !f.await() {
			return errBusy
		}
	}
	if f.writeErr != nil {
		return f.writeErr
	}
	length := 2 + len(m.topic) + len(m.payload)
	if m.qos > 0 {
		length += 2
	}
	kind := byte(packetPublish<<4) | m.qos<<1
	if m.retained {
		kind |= 1
	}
	f.out = binary.AppendUvarint(append(f.out, kind), uint64(length)) // the same as MQTT's
	f.out = append(binary.BigEndian.AppendUint16(f.out, uint16(len(m.topic))), m.topic...)
	if m.qos > 0 {
		f.out = binary.BigEndian.AppendUint16(f.out, id)
		f.acks.published(id)
	}
	f.out = append(f.out, m.payload...)
	f.begin()
	return nil
}

// await waits until something has left out. It gives mu up meanwhile, and
// reports false if that took too long.
func (f *frameConn) await() bool {
	f.mu.Unlock()
	defer f.mu.Lock()
	late := time.NewTimer(handOver)
	defer late.Stop()
	select {
	case <-f.room:
		return true
	case <-late.C:
		return false
	}
}

// acknowledge writes the PUBACK packet of a message of QoS 1, or the PUBREC packet
// of one of QoS 2. It never waits: there are no more of them than messages that
// the broker has sent.
func (f *frameConn) acknowledge(id uint16, qos byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.writeErr != nil {
		return
	}
	kind := byte(packetPuback << 4)
	if qos == 2 {
		kind = packetPubrec << 4
	}
	f.out = binary.BigEndian.AppendUint16(append(f.out, kind, 2), id)
	f.acks.wrote()
	if qos == 2 {
		f.acks.received(id)
	}
	f.begin()
}

// complete reads a PUBREL packet and answers it with PUBCOMP (MQTT 3.1.1, section
// 4.3.3). The broker sends it once it has read the PUBREC packet, perhaps that of an
// earlier connection.
func (f *frameConn) complete(kind byte) error {
	var body [2]byte
	f.pass = 0
	if _, err := io.ReadFull(f.in, body[:]); err != nil {
		return truncated(err)
	}
	if err := f.protocol.answer(kind, body[:]); err != nil {
		return err
	}
	id := binary.BigEndian.Uint16(body[:])
	f.acks.released(id)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.writeErr == nil {
		f.out = binary.BigEndian.AppendUint16(append(f.out, packetPubcomp<<4, 2), id)
		f.begin()
	}
	return nil
}

// ping asks the broker for a sign that it has read all that was written before.
func (f *frameConn) ping() { f.Write([]byte{packetPingreq << 4, 0}) }

// position returns how many acknowledgements were written; 0 if the connection
// takes no more, so that the latest ones may not have been.
func (f *frameConn) position() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.writeErr != nil {
		return 0
	}
	return f.acks.position()
}

// hold keeps what is written from now on until release, so that it leaves in
// one piece: a process that is killed has written all of it, or nothing.
func (f *frameConn) hold() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = true
}

func (f *frameConn) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = false
	if len(f.out) > 0 {
		f.begin()
	}
}

// begin lets what is in out be written. The caller holds mu.
func (f *frameConn) begin() {
	if !f.writing && !f.held {
		f.writing = true
		go f.writer()
	}
}

// Write implements net.Conn. What it has taken may still be on its way when it
// returns; an error then comes from the next Write, and from Read.
func (f *frameConn) Write(p []byte) (int, error) {
	if err := f.protocol.sent(p); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.out) >= maxUnwritten && f.writeErr == nil {
		f.written.Wait()
	}
	if f.writeErr != nil {
		return 0, f.writeErr
	}
	if len(p) > 0 && p[0] == packetPingreq<<4 && len(p) == 2 { // paho writes a packet at once
		f.acks.ping()
		f.pinged.Store(true)
	}
	f.out = append(f.out, p...)
	f.begin()
	return len(p), nil
}

// plainConn reads as a frameConn does and writes at once. It is for clients that
// come and go: what they have written is the kernel's.
type plainConn struct{ *frameConn }

// Write implements net.Conn.
func (c plainConn) Write(p []byte) (int, error) {
	if err := c.protocol.sent(p); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// SetWriteDeadline implements net.Conn.
func (c plainConn) SetWriteDeadline(t time.Time) error { return c.Conn.SetWriteDeadline(t) }

// Close implements net.Conn.
func (c plainConn) Close() error { return c.Conn.Close() }

// SetWriteDeadline implements net.Conn, and does nothing: each write has the
// deadline of the connection's own write timeout.
func (f *frameConn) SetWriteDeadline(time.Time) error { return nil }

// write writes until nothing waits any more.
func (f *frameConn) write() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.out) > 0 && f.writeErr == nil && !f.held {
		batch := f.out
		f.out, f.spare = f.spare[:0], nil
		f.mu.Unlock()
		err := f.Conn.SetWriteDeadline(time.Now().Add(f.writeTimeout))
		if err == nil {
			_, err = f.Conn.Write(batch)
		}
		f.mu.Lock()
		if f.writeErr == nil {
			f.writeErr = err
		}
		if err != nil { // Read fails, too, and finds the cause
			f.mu.Unlock()
			f.Conn.Close()
			f.mu.Lock()
		}
		if cap(batch) <= 2*maxUnwritten { // not after a packet that was larger
			f.spare = batch
		}
		f.written.Broadcast()
		select {
		case f.room <- struct{}{}:
		default:
		}
	}
	f.writing = false
	f.written.Broadcast()
}

// Close implements net.Conn. What was written before goes out first, and what
// the broker still sends is read and dropped until it ends the connection, too:
// were bytes left unread, or did more come after the end, the kernel would
// answer with a reset, upon which a broker throws the last acknowledgements
// away without reading them. A network that is slower than closeFlush is not
// waited for.
func (f *frameConn) Close() error {
	patience := time.AfterFunc(closeFlush, func() { f.Conn.Close() })
	defer patience.Stop()
	f.mu.Lock()
	for f.writing {
		f.written.Wait()
	}
	healthy := f.writeErr == nil
	if healthy {
		f.writeErr = net.ErrClosed
	}
	f.mu.Unlock()
	half, ok := f.Conn.(interface{ CloseWrite() error })
	if healthy && ok && half.CloseWrite() == nil {
		f.closing.Store(true)
		io.Copy(io.Discard, f.Conn)
	}
	return f.Conn.Close()
}
