package web

import (
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"edge/internal/config"
	"edge/stream/mqtt"
	"edge/test/files"
)

const secretForTests = "correct-horse-battery-staple"

func attempt(from, password string) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = from
	r.SetBasicAuth("edge", password)
	return r
}

func TestAttemptsByAddress(t *testing.T) {
	t.Setenv("HTTP_PASSWORD", secretForTests)
	p := newPassword(config.HTTP{Password: mqtt.Secret{Env: "HTTP_PASSWORD"}}, slog.New(slog.DiscardHandler))
	for i := range freeAttempts {
		if a, _ := p.check(attempt("192.0.2.1:1000", "guess")); a != wrongPassword {
			t.Fatalf("attempt %d: %v", i, a)
		}
	}
	if a, wait := p.check(attempt("192.0.2.1:1001", "guess")); a != tooManyAttempts || wait <= 0 || wait > attemptPause {
		t.Errorf("one more: %v, wait %v, want at most %v", a, wait, attemptPause)
	}
	if a, _ := p.check(attempt("192.0.2.2:1000", secretForTests)); a != admitted {
		t.Errorf("another address: %v", a)
	}
	source := netip.MustParsePrefix("192.0.2.1/32")
	p.until[source] = p.until[source].Add(-attemptPause) // later
	if a, _ := p.check(attempt("192.0.2.1:1002", secretForTests)); a != admitted {
		t.Errorf("after a pause: %v", a)
	}
	for i := range maxAttackers + 10 {
		p.check(attempt(fmt.Sprintf("[2001:db8:0:%x::1]:5", i), "guess"))
	}
	if len(p.until) > maxAttackers {
		t.Errorf("%d addresses are remembered, want at most %d", len(p.until), maxAttackers)
	}
}

func TestPasswordRefusalsAreCounted(t *testing.T) {
	t.Setenv("HTTP_PASSWORD", secretForTests)
	s := Server{monitor: NewMonitor(), password: newPassword(config.HTTP{Password: mqtt.Secret{Env: "HTTP_PASSWORD"}}, slog.New(slog.DiscardHandler))}
	for range freeAttempts + 2 {
		s.admit(attempt("192.0.2.1:1000", "guess"))
	}
	s.admit(httptest.NewRequest("GET", "/", nil))
	_, refused := s.monitor.http.snapshot()
	if want := map[string]uint64{refusedPassword: freeAttempts, refusedAttempt: 2, refusedNone: 1}; !maps.Equal(nonzero(refused), want) {
		t.Errorf("counted are %v, want %v", refused, want)
	}
}

// Nothing is served without the password or the certificate that is wanted.
func TestNotServedOpen(t *testing.T) {
	m := NewMonitor()
	m.Follow(&Deployment{Config: new(config.Config)})
	folder := t.TempDir()
	files.Certificate(t, filepath.Join(folder, "good"), "edge", nil, nil)
	good := config.Certificate{Cert: filepath.Join(folder, "good.pem"), Key: filepath.Join(folder, "good.key")}
	for name, tc := range map[string]struct {
		cfg  config.HTTP
		want bool
	}{
		"all is there":              {config.HTTP{Password: mqtt.Secret{File: files.Write(t, "password", "x")}, TLS: good}, true},
		"no such file":              {config.HTTP{Password: mqtt.Secret{File: folder + "/none"}}, false},
		"an empty password":         {config.HTTP{Password: mqtt.Secret{File: files.Write(t, "empty", "\n")}}, false},
		"no such variable":          {config.HTTP{Password: mqtt.Secret{Env: "EDGE_TEST_NOT_SET"}}, false},
		"no such certificate":       {config.HTTP{TLS: config.Certificate{Cert: folder + "/none", Key: good.Key}}, false},
		"certificate without a key": {config.HTTP{TLS: config.Certificate{Cert: good.Cert, Key: good.Cert}}, false},
	} {
		tc.cfg.Listen = "127.0.0.1:0"
		s := NewServer(tc.cfg, m, slog.New(slog.DiscardHandler))
		if served := s.listener != nil; served != tc.want {
			t.Errorf("%s: is served: %v, want %v", name, served, tc.want)
		}
		s.Close()
	}
}

func TestHosts(t *testing.T) {
	h := newHosts([]string{"Edge.lan", "edge.example."})
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]bool{
		"localhost": true, "localhost:9107": true, "LOCALHOST.": true, "127.0.0.1": true, "127.0.0.1:80": true, "192.168.1.4:9107": true,
		"[::1]": true, "[::1]:9107": true, "::1": true, own: true, own + ".local:9107": true, "edge.lan": true, "edge.lan:443": true, "edge.example": true,
		"": false, ":9107": false, "evil.example": false, "evil.example:9107": false, "localhost.evil.example": false, "127.0.0.1.evil.example": false,
		"evil.lan": false, "edge.lan.evil": false, "[evil.example]:80": false, "127.1": false, "0x7f000001": false, "localhost:80:80": false, "..": false, "localhost..": false,
	} {
		if h.has(host) != want {
			t.Errorf("%q is taken: %v, want %v", host, !want, want)
		}
	}
}

func FuzzHosts(f *testing.F) {
	for _, seed := range []string{"localhost:80", "[::1]:80", "[::1%25eth0]", "edge.lan.", "a:b:c", "[", "]", "[]:1"} {
		f.Add(seed)
	}
	h := hosts{"localhost": true, "edge.lan": true}
	f.Fuzz(func(t *testing.T, host string) {
		if !h.has(host) {
			return
		}
		names := []string{host, strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")}
		if name, _, err := net.SplitHostPort(host); err == nil {
			names = append(names, name)
		}
		if !slices.ContainsFunc(names, func(name string) bool {
			_, err := netip.ParseAddr(name)
			return err == nil || h[strings.ToLower(strings.TrimSuffix(name, "."))]
		}) {
			t.Errorf("%q is taken", host)
		}
	})
}
