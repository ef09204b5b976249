package stream

import (
	"bufio"
	"errors"
	"io"
	"net"
	"time"
)

// frameConn is a connection that cuts a PUBLISH packet to a bounded length
// while it is read. paho allocates whatever length a packet announces, up to
// 256 MB: one message could end the process, and again after each restart,
// because the broker sends it until it is acknowledged. What is left of a
// packet that was cut is still longer than any stream allows, so that the
// decoder refuses it and it is acknowledged like every other refusal.
//
// Every write has a deadline; paho gives one to publications only.
type frameConn struct {
	net.Conn
	in           *bufio.Reader
	limit        int // bytes of a PUBLISH packet after its fixed header
	writeTimeout time.Duration

	head [5]byte // fixed header that goes to the reader
	rest []byte  // what is left of head
	pass int     // bytes of the packet that still go to the reader
	skip int     // bytes of the packet that are dropped after those
}

const packetPublish = 3 // MQTT 3.1.1, table 2.1

// newFrameConn wraps conn; maxPayload is the largest payload that is of use.
func newFrameConn(conn net.Conn, maxPayload int, writeTimeout time.Duration) *frameConn {
	const topicAndID = 2 + maxTopic + 2
	return &frameConn{Conn: conn, in: bufio.NewReader(conn), limit: topicAndID + maxPayload + 1, writeTimeout: writeTimeout}
}

// Read implements net.Conn.
func (f *frameConn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(f.rest) == 0 && f.pass == 0 {
		if err := f.next(); err != nil {
			return 0, err
		}
	}
	if len(f.rest) > 0 {
		n := copy(p, f.rest)
		f.rest = f.rest[n:]
		return n, nil
	}
	n, err := f.in.Read(p[:min(len(p), f.pass)])
	f.pass -= n
	return n, err
}

// next reads the fixed header of the next packet (MQTT 3.1.1, section 2.2).
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
			return errors.New("stream: read a packet: its length is malformed")
		}
		b, err := f.in.ReadByte()
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		length |= int(b&0x7f) << shift
		more = b&0x80 != 0
	}
	f.pass = length
	if kind>>4 == packetPublish && length > f.limit {
		f.pass, f.skip = f.limit, length-f.limit
	}
	head := append(f.head[:0], kind)
	for left := f.pass; ; {
		b := byte(left & 0x7f)
		if left >>= 7; left > 0 {
			b |= 0x80
		}
		if head = append(head, b); left == 0 {
			break
		}
	}
	f.rest = head
	return nil
}

// Write implements net.Conn.
func (f *frameConn) Write(p []byte) (int, error) {
	if err := f.Conn.SetWriteDeadline(time.Now().Add(f.writeTimeout)); err != nil {
		return 0, err
	}
	return f.Conn.Write(p)
}
