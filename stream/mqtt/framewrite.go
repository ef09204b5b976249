package mqtt

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"
)

// largePublication is the number of bytes that take long over a slow connection.
const largePublication = 8 << 10

const maxUnwritten = 64 << 10 // bytes in out at which writers wait

const closeFlush = 250 * time.Millisecond

var errBusy = errors.New("mqtt: publish: the network accepts no more data")

// publish writes a PUBLISH packet; id is its packet identifier at a QoS above 0. If
// too many bytes wait, it waits for a limited time, and then returns errBusy.
func (f *frameConn) publish(m *Publication, id uint16) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.out) >= maxUnwritten && f.writeErr == nil && !f.held {
		if !f.awaitRoom() {
			return errBusy
		}
	}
	if f.writeErr != nil {
		return f.writeErr
	}
	length := 2 + len(m.Topic) + len(m.Payload)
	if m.QoS > 0 {
		length += 2
	}
	kind := byte(packetPublish<<4) | m.QoS<<1
	if m.Retained {
		kind |= 1
	}
	f.out = binary.AppendUvarint(append(f.out, kind), uint64(length)) // the encoding is that of MQTT
	f.out = append(binary.BigEndian.AppendUint16(f.out, uint16(len(m.Topic))), m.Topic...)
	if m.QoS > 0 {
		f.out = binary.BigEndian.AppendUint16(f.out, id)
		f.acks.publishWritten(id, m.size() >= largePublication)
	}
	f.out = append(f.out, m.Payload...)
	if m.QoS > 0 && m.size() >= largePublication {
		f.appendPing()
	}
	f.startWriter()
	return nil
}

// appendPing appends a ping, whose answer shows when the broker has read what is before it: it may not acknowledge a
// large publication. The caller holds mu.
func (f *frameConn) appendPing() {
	ping := []byte{packetPingreq << 4, 0}
	if f.protocol.recordSent(ping) == nil {
		f.acks.pingWritten()
		f.out = append(f.out, ping...)
	}
}

// awaitRoom waits until bytes of out were written. It releases mu meanwhile, and
// reports false after publishWait.
func (f *frameConn) awaitRoom() bool {
	f.mu.Unlock()
	defer f.mu.Lock()
	late := time.NewTimer(publishWait)
	defer late.Stop()
	select {
	case <-f.room:
		return true
	case <-late.C:
		return false
	}
}

// acknowledge writes the PUBACK packet of a message of QoS 1, or the PUBREC packet
// of one of QoS 2. It never waits: the broker bounds the number of unacknowledged
// messages.
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
	f.acks.ackWritten()
	if qos == 2 {
		f.acks.pubrecWritten(id)
	}
	f.startWriter()
}

// ping sends a ping; its answer proves that the broker has read all earlier packets.
func (f *frameConn) ping() { f.Write([]byte{packetPingreq << 4, 0}) }

// position returns the number of written acknowledgements; 0 if the connection
// accepts no more, because the last ones may not have been written.
func (f *frameConn) position() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.writeErr != nil {
		return 0
	}
	return f.acks.position()
}

// hold delays all writes until release, so that they leave in one piece: a process
// that is killed has written all of them or none.
func (f *frameConn) hold() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = true
}

// release ends hold.
func (f *frameConn) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = false
	if len(f.out) > 0 {
		f.startWriter()
	}
}

// startWriter starts the goroutine that writes out. The caller holds mu.
func (f *frameConn) startWriter() {
	if !f.writing && !f.held {
		f.writing = true
		go f.writer()
	}
}

// Write implements net.Conn. The bytes may not have reached the network when it
// returns; the next Write, and Read, then return the error.
func (f *frameConn) Write(p []byte) (int, error) {
	if err := f.protocol.recordSent(p); err != nil {
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
	if len(p) > 0 && p[0] == packetPingreq<<4 && len(p) == 2 { // paho writes one packet at a time
		f.acks.pingWritten()
		f.pinged.Store(true)
	}
	f.out = append(f.out, p...)
	if len(p) > 0 && p[0] == packetConnect<<4 && f.keepalive > 0 {
		f.announceKeepalive(f.out[len(f.out)-len(p):])
	}
	f.startWriter()
	return len(p), nil
}

// announceKeepalive sets the keep-alive of a CONNECT packet (MQTT 3.1.1, section 3.1.2).
func (f *frameConn) announceKeepalive(connect []byte) {
	const before = 2 + len("MQTT") + 1 + 1 // protocol name, its level, flags
	_, n := binary.Uvarint(connect[1:])    // the encoding is that of MQTT
	binary.BigEndian.PutUint16(connect[1+n+before:], f.keepalive)
}

// plainConn reads like a frameConn and writes directly. It is for short-lived clients:
// after Write the kernel has the bytes.
type plainConn struct{ *frameConn }

// Passed returns the number of messages that have come so far.
func (c plainConn) Passed() uint64 { return c.passed.Load() }

// Write implements net.Conn.
func (c plainConn) Write(p []byte) (int, error) {
	if err := c.protocol.recordSent(p); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// SetWriteDeadline implements net.Conn.
func (c plainConn) SetWriteDeadline(t time.Time) error { return c.Conn.SetWriteDeadline(t) }

// Close implements net.Conn.
func (c plainConn) Close() error { return c.Conn.Close() }

// SetWriteDeadline implements net.Conn and does nothing: each write has a deadline
// from writeTimeout.
func (f *frameConn) SetWriteDeadline(time.Time) error { return nil }

// write writes until out is empty.
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
		if err != nil { // Read fails as well, and returns the cause
			f.mu.Unlock()
			f.Conn.Close()
			f.mu.Lock()
		}
		if cap(batch) <= 2*maxUnwritten { // not after a larger packet
			f.spare = batch
		}
		f.written.Broadcast()
		wake(f.room)
	}
	_ = f.Conn.SetWriteDeadline(time.Time{}) // its timer would wake an idle program
	f.writing = false
	f.written.Broadcast()
}

// Close implements net.Conn. It first writes all waiting bytes, and then reads and
// discards until the broker ends the connection: if bytes remained unread, or more
// arrived after the end, the kernel would answer with a reset, upon which a broker
// discards the last acknowledgements unread. The wait is bounded by closeFlush.
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
