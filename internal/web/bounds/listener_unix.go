//go:build unix

package bounds

import (
	"net"

	"golang.org/x/sys/unix"
)

// unread reports whether bytes have arrived on a connection that the program has not
// read yet.
func unread(c *net.TCPConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	n := 0
	var b [1]byte
	// Not raw.Read, which waits for a concurrent read. The descriptor does not block.
	if err := raw.Control(func(fd uintptr) { n, _, _ = unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK) }); err != nil {
		return false
	}
	return n > 0
}
