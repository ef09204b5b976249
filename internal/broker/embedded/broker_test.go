package embedded

import (
	"net"
	"testing"
)

// A broker ends while a client connects: the race detector watches.
func TestCloseBesideConnect(t *testing.T) {
	for range 200 {
		b, err := Start("127.0.0.1:0", Options{})
		if err != nil {
			t.Fatal(err)
		}
		if conn, err := net.Dial("tcp", b.addr.String()); err != nil {
			t.Error(err)
		} else {
			defer conn.Close()
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}
