package mqtt

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"
)

const maxUnwritten = 64 << 10 // bytes in out, at which Write waits

const closeFlush = 250 * time.Millisecond

var errBusy = errors.New("stream: publish: the network takes no more")

// publish writes a PUBLISH packet, id being its identifier where its QoS is
// above 0. It waits while too much waits already, but not long: errBusy.
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
	f.out = binary.AppendUvarint(append(f.out, kind), uint64(length)) // the same as MQTT's
	f.out = append(binary.BigEndian.AppendUint16(f.out, uint16(len(m.Topic))), m.Topic...)
	if m.QoS > 0 {
		f.out = binary.BigEndian.AppendUint16(f.out, id)
		f.acks.publishWritten(id)
	}
	f.out = append(f.out, m.Payload...)
	f.startWriter()
	return nil
}

// await waits until something has left out. It gives mu up meanwhile, and
// reports false if that took too long.
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
	f.acks.ackWritten()
	if qos == 2 {
		f.acks.pubrecWritten(id)
	}
	f.startWriter()
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
		f.startWriter()
	}
}

// begin lets what is in out be written. The caller holds mu.
func (f *frameConn) startWriter() {
	if !f.writing && !f.held {
		f.writing = true
		go f.writer()
	}
}

// Write implements net.Conn. What it has taken may still be on its way when it
// returns; an error then comes from the next Write, and from Read.
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
	if len(p) > 0 && p[0] == packetPingreq<<4 && len(p) == 2 { // paho writes a packet at once
		f.acks.pingWritten()
		f.pinged.Store(true)
	}
	f.out = append(f.out, p...)
	f.startWriter()
	return len(p), nil
}

// plainConn reads as a frameConn does and writes at once. It is for clients that
// come and go: what they have written is the kernel's.
type plainConn struct{ *frameConn }

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
