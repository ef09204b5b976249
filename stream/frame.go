package stream

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// frameConn is a connection that cuts a PUBLISH packet to a bounded length
// while it is read. paho allocates whatever length a packet announces, up to
// 256 MB: one message could end the process, and again after each restart,
// because the broker sends it until it is acknowledged. What is left of a
// packet that was cut is still longer than any stream allows, so that the
// decoder refuses it and it is acknowledged like every other refusal.
//
// paho writes packet by packet. What it writes while an earlier packet is on its
// way to the network is collected and goes out at once, so that a busy
// connection needs fewer system calls, and an idle one waits for nothing. Every
// write to the network has a deadline; paho gives one to publications only.
type frameConn struct {
	net.Conn
	in           *bufio.Reader
	limit        int // bytes of a PUBLISH packet after its fixed header
	writeTimeout time.Duration

	head [5]byte // fixed header that goes to the reader
	rest []byte  // what is left of head
	pass int     // bytes of the packet that still go to the reader
	skip int     // bytes of the packet that are dropped after those

	mu       sync.Mutex
	written  sync.Cond // of mu: something has left out, or writing has ended
	out      []byte    // what waits to be written
	spare    []byte    // becomes out
	writing  bool      // a goroutine writes until out is empty
	writeErr error     // that ended it
}

const (
	maxUnwritten = 64 << 10 // bytes in out, at which Write waits
	closeFlush   = 250 * time.Millisecond
)

const packetPublish = 3 // MQTT 3.1.1, table 2.1

// newFrameConn wraps conn; maxPayload is the largest payload that is of use.
func newFrameConn(conn net.Conn, maxPayload int, writeTimeout time.Duration) *frameConn {
	const topicAndID = 2 + maxTopic + 2
	f := &frameConn{Conn: conn, in: bufio.NewReader(conn), limit: topicAndID + maxPayload + 1, writeTimeout: writeTimeout}
	f.written.L = &f.mu
	return f
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

// Write implements net.Conn. What it has taken may still be on its way when it
// returns; an error then comes from the next Write, and from Read.
func (f *frameConn) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.out) >= maxUnwritten && f.writeErr == nil {
		f.written.Wait()
	}
	if f.writeErr != nil {
		return 0, f.writeErr
	}
	f.out = append(f.out, p...)
	if !f.writing {
		f.writing = true
		go f.write()
	}
	return len(p), nil
}

// SetWriteDeadline implements net.Conn, and does nothing: each write has the
// deadline of the connection's own write timeout.
func (f *frameConn) SetWriteDeadline(time.Time) error { return nil }

// write writes until nothing waits any more.
func (f *frameConn) write() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.out) > 0 && f.writeErr == nil {
		batch := f.out
		f.out, f.spare = f.spare[:0], nil
		f.mu.Unlock()
		err := f.Conn.SetWriteDeadline(time.Now().Add(f.writeTimeout))
		if err == nil {
			_, err = f.Conn.Write(batch)
		}
		if err != nil {
			f.Conn.Close() // so that Read fails, too
		}
		f.mu.Lock()
		if f.writeErr == nil {
			f.writeErr = err
		}
		if cap(batch) <= 2*maxUnwritten { // not after a packet that was larger
			f.spare = batch
		}
		f.written.Broadcast()
	}
	f.writing = false
	f.written.Broadcast()
}

// Close implements net.Conn. What was written before goes out first, unless the
// network does not take it soon.
func (f *frameConn) Close() error {
	patience := time.AfterFunc(closeFlush, func() { f.Conn.Close() })
	defer patience.Stop()
	f.mu.Lock()
	for f.writing {
		f.written.Wait()
	}
	if f.writeErr == nil {
		f.writeErr = net.ErrClosed
	}
	f.mu.Unlock()
	return f.Conn.Close()
}
