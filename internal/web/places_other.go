//go:build !unix

package web

import "net"

// unread cannot be told here: a request may be lost while all places are taken.
func unread(*net.TCPConn) bool { return false }
