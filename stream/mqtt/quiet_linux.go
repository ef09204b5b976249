package mqtt

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"
)

// quietConn is a TCP connection whose reads and writes do not announce their system calls
// to the runtime. They never block, because the socket is non-blocking. An announced call
// of a program that was idle wakes the runtime's monitor, which then sleeps and wakes
// every 20 µs until the program is idle again: at a thousand messages a second that is a
// quarter of the processor time of a message.
type quietConn struct {
	*net.TCPConn
	raw         syscall.RawConn
	read, write transfer
}

// transfer is a system call that is repeated until the socket is ready.
type transfer struct {
	mu    sync.Mutex
	call  uintptr // its number
	p     []byte
	n     int
	errno syscall.Errno
	try   func(fd uintptr) (done bool) // the method attempt
}

// quiet returns a connection with quiet system calls if c is a TCP connection, else c.
func quiet(c net.Conn) net.Conn {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return c
	}
	q := &quietConn{TCPConn: tcp, raw: raw}
	q.read.call, q.write.call = syscall.SYS_READ, syscall.SYS_WRITE
	q.read.try, q.write.try = q.read.attempt, q.write.attempt
	return q
}

// attempt makes the call. It reports false if the socket is not ready.
func (t *transfer) attempt(fd uintptr) (done bool) {
	for {
		n, _, errno := syscall.RawSyscall(t.call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(t.p))), uintptr(len(t.p)))
		switch errno {
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return false
		case 0:
			t.n, t.errno = int(n), 0
		default:
			t.n, t.errno = 0, errno
		}
		return true
	}
}

// do transfers bytes of p by wait, which repeats attempt until the socket is ready.
func (c *quietConn) do(t *transfer, op string, p []byte, wait func(func(uintptr) bool) error) (n int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.p = p
	err = wait(t.try)
	t.p = nil
	if err == nil && t.errno != 0 {
		err = &net.OpError{Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError(op, t.errno)}
	}
	if err != nil {
		return 0, err
	}
	return t.n, nil
}

// Read implements net.Conn.
func (c *quietConn) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	if n, err = c.do(&c.read, "read", p, c.raw.Read); n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

// Write implements net.Conn.
func (c *quietConn) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var m int
		m, err = c.do(&c.write, "write", p[n:], c.raw.Write)
		n += m
	}
	return n, err
}
