package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
)

// untimed switches off the timeouts of a web server, so that nothing but its
// bounds ends a connection.
func untimed(w *web) {
	w.server.ReadHeaderTimeout, w.server.ReadTimeout, w.server.WriteTimeout, w.server.IdleTimeout = time.Hour, time.Hour, time.Hour, time.Hour
	w.viewers.timeout = time.Hour
}

// probeAll asks for both health checks and the metrics, each over a connection
// of its own.
func probeAll(t *testing.T, s *served) {
	t.Helper()
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		began := time.Now()
		resp, err := client.Get(s.url + path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%s answers %d, %v", path, resp.StatusCode, err)
		}
		t.Logf("%s after %v", path, time.Since(began).Round(time.Millisecond))
	}
}

// flood opens connections, writes to each and reads nothing; they stay open until
// the test ends, or the server ends them.
func flood(t *testing.T, s *served, n int, request string) (open []net.Conn) {
	t.Helper()
	for range n {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		open = append(open, c)
		_ = c.SetWriteDeadline(time.Now().Add(patience))
		if len(request) < 64<<10 {
			_, _ = io.WriteString(c, request) // the server may have closed it
		} else {
			go io.WriteString(c, request) // which ends with the connection
		}
	}
	return open
}

const floodHead = " HTTP/1.1\r\nHost: localhost\r\n"

// Health checks and metrics are answered whatever other connections do, also
// when they come from the same address and nothing but a new one ends them.
func TestFloods(t *testing.T) {
	b := newTestBroker(t, startEmbedded)
	for _, f := range []struct {
		name    string
		n       int
		request string
	}{
		{"idle", 64, "GET /api/v1/models" + floodHead + "\r\n"},
		{"more idle than places", 500, "GET /api/v1/models" + floodHead + "\r\n"},
		{"silent", 500, ""},
		{"half requests", 200, "GET /healthz HTTP/1.1\r\nHo"},
		{"event streams", 2000, "GET /api/v1/events?model=wear" + floodHead + "\r\n"},
		{"viewers that do not read", maxViewers, "GET /api/v1/events?model=wear" + floodHead + "\r\n"},
		{"bodies that do not come", 200, "POST /api/v1/models/wear/label" + floodHead + "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"},
		{"bodies that are not wanted", 200, "GET /healthz" + floodHead + "Content-Length: 100\r\n\r\n{"},
		{"pipelined requests", 200, strings.Repeat("GET /"+floodHead+"\r\n", 2000)},
		{"pipelined health checks", 200, strings.Repeat("GET /healthz"+floodHead+"\r\n", 2000)},
		{"without an end of the headers", 200, "GET /" + floodHead + strings.Repeat("X: y\r\n", 100)},
	} {
		t.Run(f.name, func(t *testing.T) {
			s := serveTuned(t, b.url(), func(c *Config) { c.Control.Enabled = true }, untimed).ready()
			flood(t, s, f.n, f.request)
			probeAll(t, s)
			if open, _ := s.monitor.http.snapshot(); open > maxFromAddress {
				t.Errorf("%d connections are open, want at most %d from one address", open, maxFromAddress)
			}
		})
	}
}

// Connections that are opened again as fast as they are closed do not keep
// health checks out either. One may be closed if its request comes late, as on a
// machine that the flood keeps busy: it is tried again.
func TestFloodGoesOn(t *testing.T) {
	b := newTestBroker(t, startEmbedded)
	s := serveTuned(t, b.url(), nil, untimed).ready()
	ctx, stop := context.WithCancel(t.Context())
	var around sync.WaitGroup
	for range 2 {
		around.Go(func() {
			var open []net.Conn
			for ctx.Err() == nil {
				if c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://")); err == nil {
					_, _ = io.WriteString(c, "GET /he")
					open = append(open, c)
				}
				if len(open) > 300 {
					open[0].Close()
					open = open[1:]
				}
			}
			for _, c := range open {
				c.Close()
			}
		})
	}
	defer around.Wait()
	defer stop()
	if !eventually(func() bool { _, refused := s.monitor.http.snapshot(); return refused[refusedPlace] > 1000 }) {
		t.Fatal("the flood does not take all places")
	}
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	for range 10 {
		if !eventually(func() bool {
			resp, err := client.Get(s.url + "/healthz")
			return err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
		}) {
			t.Fatal("no health check is answered")
		}
	}
}

// A viewer that does not read loses its stream once what was sent waits too long.
func TestUnreadViewer(t *testing.T) {
	b := newTestBroker(t, startEmbedded)
	s := serveTuned(t, b.url(), nil, func(w *web) { w.viewers.timeout, w.viewers.stays = 100*time.Millisecond, time.Hour }).ready()
	small := net.Dialer{}
	for range maxViewers {
		c, err := small.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.(*net.TCPConn).SetReadBuffer(2 << 10); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "GET /api/v1/events?model=wear%s\r\n", floodHead)
	}
	if !eventually(func() bool { return s.web.viewers.len() == maxViewers }) {
		t.Fatalf("%d viewers, want %d", s.web.viewers.len(), maxViewers)
	}
	if code, _ := s.get("/api/v1/events"); code != http.StatusServiceUnavailable {
		t.Errorf("one viewer too many is answered %d", code)
	}
	if _, refused := s.monitor.http.snapshot(); refused[refusedViewer] != 1 {
		t.Errorf("refused: %v", refused)
	}
	n := 0
	if !eventually(func() bool {
		publish(t, b.url(), "plant/a/pump", fmt.Sprintf(`{"id":"n-%d","features":[%d,1],"label":"ok"}`, n, n%7))
		n++
		return s.web.viewers.len() == 0
	}) {
		t.Errorf("%d viewers that do not read are still there", s.web.viewers.len())
	}
}

// A new viewer takes the place of one that has had it long enough.
func TestViewerTakesPlace(t *testing.T) {
	b := newTestBroker(t, startEmbedded)
	s := serveTuned(t, b.url(), nil, func(w *web) { untimed(w); w.viewers.stays = 0 }).ready()
	var unread []net.Conn
	for n := range maxViewers { // one after the other, so that the first is the oldest
		unread = append(unread, flood(t, s, 1, "GET /api/v1/events?model=wear"+floodHead+"\r\n")...)
		if !eventually(func() bool { return s.web.viewers.len() == n+1 }) {
			t.Fatalf("%d viewers, want %d", s.web.viewers.len(), n+1)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", s.url+"/api/v1/events?model=wear", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); resp.StatusCode != http.StatusOK || line != "event: node\n" {
		t.Errorf("answers %d: %q, %v", resp.StatusCode, line, err)
	}
	_ = unread[0].SetReadDeadline(time.Now().Add(patience))
	if _, err := io.Copy(io.Discard, unread[0]); err != nil && strings.Contains(err.Error(), "timeout") {
		t.Errorf("the oldest stream does not end: %v", err)
	}
}

func TestViewersByAddress(t *testing.T) {
	a, b, c := netip.MustParsePrefix("10.0.0.1/32"), netip.MustParsePrefix("10.0.0.2/32"), netip.MustParsePrefix("10.0.0.3/32")
	v := viewers{max: 4}
	var ended []string
	enter := func(from netip.Prefix, name string) {
		t.Helper()
		if leave, wait := v.enter(from, func() { ended = append(ended, name) }); leave == nil {
			t.Fatalf("%s has to wait %v", name, wait)
		}
	}
	enter(b, "b1")
	enter(a, "a1")
	enter(a, "a2")
	enter(a, "a3")
	enter(c, "c1") // for the oldest of a, which has most
	enter(c, "c2")
	if got := strings.Join(ended, " "); got != "a1 a2" {
		t.Errorf("ended are %s, want a1 a2", got)
	}
	v.stays = time.Hour
	if leave, wait := v.enter(b, func() {}); leave != nil || wait <= 0 || wait > time.Hour {
		t.Errorf("a place is given up too early, or never: wait %v", wait)
	}
	if v.len() != 4 {
		t.Errorf("%d viewers, want 4", v.len())
	}
}

func TestTurns(t *testing.T) {
	a, b, c := netip.MustParsePrefix("10.0.0.1/32"), netip.MustParsePrefix("10.0.0.2/32"), netip.MustParsePrefix("10.0.0.3/32")
	turns := turns{max: 3, each: 2}
	var last func()
	for i, step := range []struct {
		from netip.Prefix
		want bool
	}{{a, true}, {a, true}, {a, false}, {b, true}, {c, false}} {
		giveBack, ok := turns.take(step.from)
		if ok != step.want {
			t.Errorf("step %d: granted %v, want %v", i, ok, step.want)
		}
		if ok {
			last = giveBack
		}
	}
	last()
	if _, ok := turns.take(c); !ok {
		t.Error("a turn that was given back is not there")
	}
	if len(turns.taken) != 2 {
		t.Errorf("%d addresses are remembered, want 2", len(turns.taken))
	}
}

func TestSourceOf(t *testing.T) {
	for at, want := range map[string]string{
		"192.0.2.7:5000": "192.0.2.7/32", "[::ffff:192.0.2.7]:5000": "192.0.2.7/32", "[2001:db8:1:2:3::4]:80": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:80": "fe80::/64", "": "invalid Prefix", "@": "invalid Prefix",
	} {
		if got := sourceOf(at).String(); got != want {
			t.Errorf("sourceOf(%q) = %s, want %s", at, got, want)
		}
	}
}

// The oldest silent connection of the address that has most goes first; one
// whose request is handled, or has arrived, does not go.
func TestPlaces(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	stats := newHTTPStats()
	p := newPlaces(l, 4, 3, stats)
	began := time.Now().Add(-time.Hour) // so long ago that arrived bytes do not count
	add := func(from string, minute int) *place {
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
		c := &place{TCPConn: accepted.(*net.TCPConn), of: p, from: sourceOf(from + ":1"), spoke: true, heard: began.Add(time.Duration(minute) * time.Minute)}
		t.Cleanup(func() { c.Close() })
		p.open[c] = struct{}{}
		return c
	}
	newcomer := func(from string) *place { return &place{of: p, from: sourceOf(from + ":1")} }
	want := func(what string, from string, victim *place) {
		t.Helper()
		if ok, got := p.admit(newcomer(from)); ok || got != victim {
			t.Errorf("%s: admitted %v, %p is to go, want %p", what, ok, got, victim)
		}
	}
	oldest := add("10.0.0.2", 0)
	a1, a2 := add("10.0.0.1", 1), add("10.0.0.1", 2)
	a3 := add("10.0.0.1", 3)
	want("all are taken", "10.0.0.3", a1)
	want("an address has all of its own", "10.0.0.1", a1)
	done := a1.serve()
	want("a request is handled", "10.0.0.1", a2)
	a2.serve()
	a3.serve()
	want("requests of the address are handled", "10.0.0.3", oldest)
	want("all of an address are handled", "10.0.0.1", nil)
	done()
	want("a request was handled", "10.0.0.1", a1)
	a1.spoke, a1.heard = false, time.Now().Add(time.Minute) // in whose future the test is not
	want("one is new", "10.0.0.1", nil)
	a1.Close()
	a1.Close()
	if ok, _ := p.admit(newcomer("10.0.0.3")); !ok {
		t.Error("a place that is free is not given")
	}
	if open, _ := stats.snapshot(); open != 0 { // one admitted, one closed
		t.Errorf("%d connections are counted, want 0", open)
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
	if !eventually(func() bool { return unread(c) }) {
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
