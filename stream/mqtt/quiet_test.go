package mqtt

import (
	"net"
	"testing"

	"golang.org/x/net/nettest"
)

// A connection with quiet system calls behaves like every other.
func TestQuietConn(t *testing.T) {
	nettest.TestConn(t, func() (near, far net.Conn, stop func(), err error) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, nil, nil, err
		}
		defer l.Close()
		if near, err = net.Dial("tcp", l.Addr().String()); err != nil {
			return nil, nil, nil, err
		}
		if far, err = l.Accept(); err != nil {
			near.Close()
			return nil, nil, nil, err
		}
		near, far = quiet(near), quiet(far)
		return near, far, func() { near.Close(); far.Close() }, nil
	})
}

// Reading and writing allocate nothing.
func TestQuietConnWithoutAllocations(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	from, to, buf := quiet(near), quiet(far), make([]byte, 10)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := from.Write(buf[:1]); err != nil {
			t.Fatal(err)
		}
		if _, err := to.Read(buf); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
