package bounds

import (
	"io"
	"net"
	"testing"
	"time"

	"edge/internal/broker/brokertest"
)

func TestSourceOf(t *testing.T) {
	for at, want := range map[string]string{
		"192.0.2.7:5000": "192.0.2.7/32", "[::ffff:192.0.2.7]:5000": "192.0.2.7/32", "[2001:db8:1:2:3::4]:80": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:80": "fe80::/64", "": "invalid Prefix", "@": "invalid Prefix",
	} {
		if got := SourceOf(at).String(); got != want {
			t.Errorf("SourceOf(%q) = %s, want %s", at, got, want)
		}
	}
}

// counts are the Stats of a test.
type counts struct{ open, replaced int }

func (c *counts) Connected(change int) { c.open += change }
func (c *counts) Replaced()            { c.replaced++ }

// The oldest silent connection of the address with the most is closed first. A
// connection whose request is in progress or has arrived is not closed.
func TestPlaces(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var stats counts
	p := NewListener(l, 4, 3, &stats)
	began := time.Now().Add(-time.Hour) // longer ago than unreadWithin
	add := func(from string, minute int) *Conn {
		t.Helper()
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		accepted, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c := &Conn{TCPConn: accepted.(*net.TCPConn), of: p, from: SourceOf(from + ":1"), received: true, active: began.Add(time.Duration(minute) * time.Minute)}
		t.Cleanup(func() { c.Close() })
		p.open[c] = struct{}{}
		return c
	}
	newcomer := func(from string) *Conn { return &Conn{of: p, from: SourceOf(from + ":1")} }
	want := func(what string, from string, victim *Conn) {
		t.Helper()
		if ok, got := p.admit(newcomer(from)); ok || got != victim {
			t.Errorf("%s: admitted %v, %p would be closed, want %p", what, ok, got, victim)
		}
	}
	oldest := add("10.0.0.2", 0)
	a1, a2 := add("10.0.0.1", 1), add("10.0.0.1", 2)
	a3 := add("10.0.0.1", 3)
	want("all are taken", "10.0.0.3", a1)
	want("an address has all of its own", "10.0.0.1", a1)
	done := a1.Serve()
	want("a request is handled", "10.0.0.1", a2)
	a2.Serve()
	a3.Serve()
	want("requests of the address are handled", "10.0.0.3", oldest)
	want("all of an address are handled", "10.0.0.1", nil)
	done()
	want("a request was handled", "10.0.0.1", a1)
	a1.received, a1.active = false, time.Now().Add(time.Minute) // in the future of the test
	want("one is new", "10.0.0.1", nil)
	a1.Close()
	a1.Close()
	if ok, _ := p.admit(newcomer("10.0.0.3")); !ok {
		t.Error("a Conn that is free is not given")
	}
	if stats.open != 0 { // one admitted, one closed
		t.Errorf("%d connections are counted, want 0", stats.open)
	}
}

// A request that has arrived is read before its connection may be closed.
func TestUnreadRequest(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	c := accepted.(*net.TCPConn)
	if unread(c) {
		t.Error("bytes are seen where none were sent")
	}
	if _, err := io.WriteString(client, "GET"); err != nil {
		t.Fatal(err)
	}
	if !brokertest.Eventually(func() bool { return unread(c) }) {
		t.Error("bytes that have arrived are not seen")
	}
	if b := make([]byte, 3); true {
		if n, err := io.ReadFull(c, b); err != nil || string(b) != "GET" {
			t.Errorf("reads %q, %v", b[:n], err)
		}
	}
	if unread(c) {
		t.Error("bytes that were read are seen")
	}
}
