package daemon

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/internal/web"
)

// untimed switches off the timeouts of a web server, so that only its limits end a
// connection.
func untimed(w *web.Server) {
	stays := w.Timeouts.ViewerStays
	w.Timeouts = web.Timeouts{Header: time.Hour, Read: time.Hour, Write: time.Hour, Idle: time.Hour, ViewerReads: time.Hour, ViewerStays: stays}
}

// probeAll requests both health checks and the metrics, each over a new
// connection, and returns the metrics.
func probeAll(t *testing.T, s *served) (metrics string) {
	t.Helper()
	client := http.Client{Timeout: brokertest.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		began := time.Now()
		resp, err := client.Get(s.url + path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%s answers %d, %v", path, resp.StatusCode, err)
		}
		t.Logf("%s after %v", path, time.Since(began).Round(time.Millisecond))
		metrics = string(text)
	}
	return metrics
}

// flood opens connections, writes to each and reads nothing; they stay open until
// the test ends or the server closes them.
func flood(t *testing.T, s *served, n int, request string) (open []net.Conn) {
	t.Helper()
	for range n {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		open = append(open, c)
		_ = c.SetWriteDeadline(time.Now().Add(brokertest.Patience))
		if len(request) < 64<<10 {
			_, _ = io.WriteString(c, request) // the server may have closed it
		} else {
			go io.WriteString(c, request) // which ends with the connection
		}
	}
	return open
}

const floodHead = " HTTP/1.1\r\nHost: localhost\r\n"

// Health checks and metrics are answered during a flood of other connections, even
// from the same address and without timeouts.
func TestFloods(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
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
		{"viewers that do not read", web.MaxViewers, "GET /api/v1/events?model=wear" + floodHead + "\r\n"},
		{"bodies that do not come", 200, "POST /api/v1/models/wear/label" + floodHead + "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"},
		{"bodies that are not wanted", 200, "GET /healthz" + floodHead + "Content-Length: 100\r\n\r\n{"},
		{"pipelined requests", 200, strings.Repeat("GET /"+floodHead+"\r\n", 2000)},
		{"pipelined health checks", 200, strings.Repeat("GET /healthz"+floodHead+"\r\n", 2000)},
		{"without an end of the headers", 200, "GET /" + floodHead + strings.Repeat("X: y\r\n", 100)},
	} {
		t.Run(f.name, func(t *testing.T) {
			s := serveTuned(t, b.URL(), func(c *config.Config) { c.Control.Enabled = true }, untimed).ready()
			flood(t, s, f.n, f.request)
			if open := metricIn(probeAll(t, s), "edge_http_connections"); open == 0 || open > web.MaxFromAddress {
				t.Errorf("%g connections are open, want at most %d from one address", open, web.MaxFromAddress)
			}
		})
	}
}

// Connections that are reopened as fast as they are closed do not shut out health
// checks either. On a machine that the flood keeps busy a health check may be late
// and lose its connection: it is tried again.
func TestFloodGoesOn(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	s := serveTuned(t, b.URL(), nil, untimed).ready()
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
	client := http.Client{Timeout: brokertest.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
	answer := func(path string) (text string, ok bool) {
		resp, err := client.Get(s.url + path)
		if err != nil {
			return "", false
		}
		defer resp.Body.Close()
		all, err := io.ReadAll(resp.Body)
		return string(all), err == nil && resp.StatusCode == http.StatusOK
	}
	if !brokertest.Eventually(func() bool {
		metrics, _ := answer("/metrics")
		return metricIn(metrics, `edge_http_refused_total{reason="connections"}`) > 1000
	}) {
		t.Fatal("the flood does not take all places")
	}
	for range 10 {
		if !brokertest.Eventually(func() bool { _, ok := answer("/healthz"); return ok }) {
			t.Fatal("no health check is answered")
		}
	}
}

// follows waits until the server has begun the event stream of a connection, and reads no more than that.
func follows(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(brokertest.Patience))
	head := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(c, head); err != nil || string(head) != "HTTP/1.1 200" {
		t.Fatalf("a viewer within the limit is answered %q, %v", head, err)
	}
}

// A viewer that does not read loses its stream once an event has waited too long.
func TestUnreadViewer(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	s := serveTuned(t, b.URL(), nil, func(w *web.Server) { w.Timeouts.ViewerReads, w.Timeouts.ViewerStays = 100*time.Millisecond, time.Hour }).ready()
	small := net.Dialer{}
	for range web.MaxViewers {
		c, err := small.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.(*net.TCPConn).SetReadBuffer(2 << 10); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "GET /api/v1/events?model=wear%s\r\n", floodHead)
		follows(t, c)
	}
	if code, _ := s.get("/api/v1/events"); code != http.StatusServiceUnavailable {
		t.Errorf("one viewer too many is answered %d", code)
	}
	_, metrics := s.get("/metrics")
	if n := metricIn(metrics, `edge_http_refused_total{reason="viewers"}`); n != 1 {
		t.Errorf("%g viewers are refused, want 1", n)
	}
	n := 0
	if !brokertest.Eventually(func() bool {
		publish(t, b.URL(), "plant/a/pump", fmt.Sprintf(`{"id":"n-%d","features":[%d,1],"label":"ok"}`, n, n%7))
		n++
		_, metrics = s.get("/metrics")
		return metricIn(metrics, "edge_http_connections") == 1 // this one
	}) {
		t.Errorf("viewers that do not read are still there: %g connections are open, want 1", metricIn(metrics, "edge_http_connections"))
	}
}

// A new viewer replaces one that has stayed long enough.
func TestViewerTakesPlace(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	s := serveTuned(t, b.URL(), nil, func(w *web.Server) { untimed(w); w.Timeouts.ViewerStays = 0 }).ready()
	var unread []net.Conn
	for n := range web.MaxViewers { // one after the other, so that the first is the oldest
		unread = append(unread, flood(t, s, 1, "GET /api/v1/events?model=wear"+floodHead+"\r\n")...)
		follows(t, unread[n])
	}
	ctx, cancel := context.WithTimeout(t.Context(), brokertest.Patience)
	defer cancel()
	resp := s.events(ctx)
	defer resp.Body.Close()
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); resp.StatusCode != http.StatusOK || line != "event: node\n" {
		t.Errorf("answers %d: %q, %v", resp.StatusCode, line, err)
	}
	_ = unread[0].SetReadDeadline(time.Now().Add(brokertest.Patience))
	if _, err := io.Copy(io.Discard, unread[0]); err != nil && strings.Contains(err.Error(), "timeout") {
		t.Errorf("the oldest stream does not end: %v", err)
	}
}
