package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"edge/stream/mqtt"
)

const secretForTests = "correct-horse-battery-staple"

func withPassword(t *testing.T) func(*Config) {
	file := writeFile(t, "password", secretForTests+"\n")
	return func(c *Config) {
		c.HTTP.Password.File, c.HTTP.Pprof, c.Control.Enabled = file, true, true
	}
}

// basic is the Authorization header of a user with a password.
func basic(user, password string) string {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(user, password)
	return r.Header.Get("Authorization")
}

// All but the health checks needs the password, however it is given.
func TestPassword(t *testing.T) {
	b := newTestBroker(t, startEmbedded)
	s := serve(t, b.url(), withPassword(t))
	closed := []string{"/", "/metrics", "/api/v1/models", "/api/v1/models/wear", "/api/v1/events", "/debug/pprof/", "/debug/pprof/heap", "/none"}
	forgive := func() { // so that wrong passwords are not too many
		s.web.password.mu.Lock()
		defer s.web.password.mu.Unlock()
		clear(s.web.password.until)
	}
	for name, tc := range map[string]struct {
		authorization string
		want          int
	}{
		"none":                   {"", http.StatusUnauthorized},
		"wrong":                  {basic("edge", "wrong"), http.StatusUnauthorized},
		"as the name":            {basic(secretForTests, ""), http.StatusUnauthorized},
		"the beginning":          {basic("edge", secretForTests[:5]), http.StatusUnauthorized},
		"wrong token":            {"Bearer wrong", http.StatusUnauthorized},
		"empty token":            {"Bearer ", http.StatusUnauthorized},
		"another scheme":         {"Digest " + secretForTests, http.StatusUnauthorized},
		"without a scheme":       {secretForTests, http.StatusUnauthorized},
		"no base64":              {"Basic %%%", http.StatusUnauthorized},
		"right":                  {basic("edge", secretForTests), http.StatusOK},
		"right, of another user": {basic("", secretForTests), http.StatusOK},
		"right, as a token":      {"bearer " + secretForTests, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			forgive()
			header := map[string]string{}
			if tc.authorization != "" {
				header["Authorization"] = tc.authorization
			}
			paths := closed
			if tc.want == http.StatusOK {
				paths = []string{"/", "/metrics", "/api/v1/models", "/api/v1/models/wear", "/debug/pprof/"} // events do not end
			}
			for _, path := range paths {
				code, answer := s.do("GET", path, "", header)
				if code != tc.want {
					t.Errorf("%s answers %d, want %d", path, code, tc.want)
				}
				if code == http.StatusUnauthorized && strings.Contains(answer, "wear") {
					t.Errorf("%s says too much: %s", path, answer)
				}
			}
			want := tc.want == http.StatusOK
			for _, path := range []string{"/healthz", "/readyz"} {
				code, answer := s.do("GET", path, "", header)
				if gjson.Get(answer, "checks").Exists() != want || gjson.Get(answer, "status").String() == "" || code == http.StatusUnauthorized {
					t.Errorf("%s answers %d %s; details: want %v", path, code, answer, want)
				}
			}
		})
	}
	label := map[string]string{"Content-Type": "application/json"}
	if code, _ := s.do("POST", "/api/v1/models/wear/label", `{"id":"one","label":"ok"}`, label); code != http.StatusUnauthorized {
		t.Errorf("a label without the password is answered %d", code)
	}
	resp, err := http.Get(s.url + "/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := resp.Header.Get("WWW-Authenticate"); !strings.HasPrefix(got, "Basic realm=") {
		t.Errorf("a browser would not ask for a password: %q", got)
	}
	if log := s.log.String(); strings.Contains(log, secretForTests) {
		t.Error("the password is in the log")
	}
	forgive()
	_, text := s.do("GET", "/metrics", "", map[string]string{"Authorization": "Bearer " + secretForTests})
	for _, reason := range []string{refusedNone, refusedPassword} {
		if !strings.Contains(text, fmt.Sprintf("edge_http_refused_total{reason=%q} ", reason)) || strings.Contains(text, fmt.Sprintf("{reason=%q} 0\n", reason)) {
			t.Errorf("%s is not counted:\n%s", reason, text)
		}
	}
}

// Who tries many passwords has to wait, also with the right one, and is the only
// one who has to.
func TestTooManyAttempts(t *testing.T) {
	b := newTestBroker(t, startEmbedded)
	s := serve(t, b.url(), withPassword(t))
	right := map[string]string{"Authorization": basic("edge", secretForTests)}
	if code, _ := s.do("GET", "/api/v1/models", "", right); code != http.StatusOK {
		t.Fatalf("the right password is answered %d", code)
	}
	limited := eventually(func() bool {
		code, _ := s.do("GET", "/api/v1/models", "", map[string]string{"Authorization": basic("edge", "guess")})
		return code == http.StatusTooManyRequests
	})
	if !limited {
		t.Fatal("passwords can be tried without a limit")
	}
	if code, _ := s.do("GET", "/api/v1/models", "", right); code != http.StatusTooManyRequests {
		t.Errorf("after too many attempts the right password is answered %d: each attempt tells whether it is right", code)
	}
	if code, answer := s.do("GET", "/healthz", "", right); code != http.StatusOK || gjson.Get(answer, "checks").Exists() {
		t.Errorf("after too many attempts the health check answers %d %s", code, answer)
	}
	if _, refused := s.monitor.http.snapshot(); refused[refusedPassword] < freeAttempts || refused[refusedAttempt] < 2 {
		t.Errorf("counted: %v", refused)
	}
	if !strings.Contains(s.log.String(), "too many wrong passwords") {
		t.Error("the log does not say so")
	}
}

func attempt(from, password string) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = from
	r.SetBasicAuth("edge", password)
	return r
}

func TestAttemptsByAddress(t *testing.T) {
	t.Setenv("HTTP_PASSWORD", secretForTests)
	p := newPassword(mqtt.Secret{Env: "HTTP_PASSWORD"}, slog.New(slog.DiscardHandler))
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

// A renewed password holds soon; one that cannot be read leaves the old one.
func TestPasswordRenewed(t *testing.T) {
	b := newTestBroker(t, startEmbedded)
	file := writeFile(t, "password", "first")
	s := serve(t, b.url(), func(c *Config) { c.HTTP.Password.File = file })
	answers := func(password string, want int) bool {
		code, _ := s.do("GET", "/api/v1/models", "", map[string]string{"Authorization": "Bearer " + password})
		return code == want
	}
	if !answers("first", http.StatusOK) {
		t.Fatal("the password is refused")
	}
	if err := os.WriteFile(file, []byte("the second"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !eventually(func() bool { return answers("first", http.StatusUnauthorized) }) || !answers("the second", http.StatusOK) {
		t.Error("the new password is not taken")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if !eventually(func() bool {
		return answers("the second", http.StatusOK) && strings.Contains(s.log.String(), "cannot be read again")
	}) {
		t.Error("a password that cannot be read is not noticed, or the one before not kept")
	}
}

// Nothing is served without the password or the certificate that is wanted.
func TestNotServedOpen(t *testing.T) {
	m := newMonitor()
	m.follow(&deployment{cfg: new(Config)})
	folder := t.TempDir()
	writeCertificate(t, filepath.Join(folder, "good"), nil, nil, "edge")
	good := Certificate{filepath.Join(folder, "good.pem"), filepath.Join(folder, "good.key")}
	for name, tc := range map[string]struct {
		cfg  HTTP
		want bool
	}{
		"all is there":              {HTTP{Password: mqtt.Secret{File: writeFile(t, "password", "x")}, TLS: good}, true},
		"no such file":              {HTTP{Password: mqtt.Secret{File: folder + "/none"}}, false},
		"an empty password":         {HTTP{Password: mqtt.Secret{File: writeFile(t, "empty", "\n")}}, false},
		"no such variable":          {HTTP{Password: mqtt.Secret{Env: "EDGE_TEST_NOT_SET"}}, false},
		"no such certificate":       {HTTP{TLS: Certificate{folder + "/none", good.Key}}, false},
		"certificate without a key": {HTTP{TLS: Certificate{good.Cert, good.Cert}}, false},
	} {
		tc.cfg.Listen = "127.0.0.1:0"
		w := newWeb(tc.cfg, m, slog.New(slog.DiscardHandler))
		if served := w.listener != nil; served != tc.want {
			t.Errorf("%s: is served: %v, want %v", name, served, tc.want)
		}
		w.close()
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
		name := host
		if n, _, err := net.SplitHostPort(host); err == nil {
			name = n
		}
		name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
		if _, err := netip.ParseAddr(name); err != nil && !h[name] {
			if _, err := netip.ParseAddr(strings.TrimSuffix(strings.Trim(host, "[]"), ".")); err != nil {
				t.Errorf("%q is taken", host)
			}
		}
	})
}

// What is not quite HTTP as browsers speak it is answered or closed, not more.
func TestOddRequests(t *testing.T) {
	b := newTestBroker(t, startEmbedded)
	s := serve(t, b.url(), func(c *Config) { c.HTTP.Hosts = []string{"edge.lan"} })
	for name, tc := range map[string]struct {
		request string
		want    string // the beginning of the answer; "": closed without one
	}{
		"HTTP/1.0, health check":        {"GET /healthz HTTP/1.0\r\n\r\n", "HTTP/1.0 200"},
		"HTTP/1.0, without a Host":      {"GET /api/v1/models HTTP/1.0\r\n\r\n", "HTTP/1.0 403"},
		"HTTP/1.0, with a Host":         {"GET /api/v1/models HTTP/1.0\r\nHost: localhost\r\n\r\n", "HTTP/1.0 200"},
		"HTTP/1.1, without a Host":      {"GET /healthz HTTP/1.1\r\n\r\n", "HTTP/1.1 400"},
		"HTTP/1.1, with an empty Host":  {"GET /metrics HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n", "HTTP/1.1 403"},
		"two Hosts":                     {"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", "HTTP/1.1 400"},
		"Host that is none":             {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "HTTP/1.1 400"},
		"Host of the configuration":     {"GET / HTTP/1.1\r\nHost: edge.lan\r\nConnection: close\r\n\r\n", "HTTP/1.1 200"},
		"another site's name":           {"GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n", "HTTP/1.1 403"},
		"absolute form":                 {"GET http://localhost/api/v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "HTTP/1.1 200"},
		"absolute form, another's name": {"GET http://evil.example/api/v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 403"},
		"all of the server":             {"OPTIONS * HTTP/1.1\r\nHost: evil.example\r\n\r\n", "HTTP/1.1 403"},
		"CONNECT":                       {"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n", "HTTP/1.1 403"},
		"header too large":              {"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 32<<10) + "\r\n\r\n", "HTTP/1.1 431"},
		"no HTTP":                       {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "HTTP/1.1 400"},
		"HTTP/2":                        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 403"},
		"body that is too large":        {"POST /api/v1/models/wear/label HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n", "HTTP/1.1 403"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(patience))
			if _, err := io.WriteString(c, tc.request); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(c).ReadString('\n')
			if !strings.HasPrefix(line, tc.want) {
				t.Errorf("answers %q, %v, want %s", line, err, tc.want)
			}
		})
	}
	if _, refused := s.monitor.http.snapshot(); refused[refusedHost] < 5 {
		t.Errorf("refused: %v", refused)
	}
}

// A certificate that is renewed is used for the next connection; one that cannot
// be read leaves the old one.
func TestServeTLS(t *testing.T) {
	b := newTestBroker(t, startEmbedded)
	path := filepath.Join(t.TempDir(), "edge")
	first, _ := writeCertificate(t, path, nil, nil, "first")
	s := serve(t, b.url(), func(c *Config) {
		c.HTTP.TLS = Certificate{path + ".pem", path + ".key"}
		withPassword(t)(c)
	})
	if !strings.HasPrefix(s.url, "https://127.0.0.1:") {
		t.Fatalf("the page is at %s", s.url)
	}
	address := strings.TrimPrefix(s.url, "https://")
	get := func(c *x509.Certificate) (*tls.ConnectionState, error) {
		roots := x509.NewCertPool()
		roots.AddCert(c)
		client := http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true, ForceAttemptHTTP2: true}}
		r, err := http.NewRequest("GET", s.url+"/api/v1/models", nil)
		if err != nil {
			return nil, err
		}
		r.Header.Set("Authorization", "Bearer "+secretForTests)
		resp, err := client.Do(r)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("answers %s", resp.Status)
		}
		return resp.TLS, nil
	}
	state, err := get(first)
	if err != nil || state.NegotiatedProtocol == "h2" {
		t.Fatalf("%+v, %v", state, err)
	}
	if c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
		c.Close()
		t.Error("TLS 1.1 is spoken")
	}
	if code, err := plain(address); err != nil || code != http.StatusBadRequest {
		t.Errorf("without TLS it answers %d, %v", code, err)
	}
	second, _ := writeCertificate(t, path, nil, nil, "second")
	if !eventually(func() bool { _, err := get(second); return err == nil }) {
		t.Error("a renewed certificate is not used")
	}
	if err := os.WriteFile(path+".key", []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !eventually(func() bool {
		_, err := get(second)
		return err == nil && strings.Contains(s.log.String(), "cannot be read again")
	}) {
		t.Error("a broken key is not noticed, or ends TLS")
	}
	flood(t, &served{url: "http://" + address}, 200, "\x16\x03\x01") // half handshakes
	if _, err := get(second); err != nil {
		t.Errorf("after a flood: %v", err)
	}
}

// plain asks without TLS.
func plain(address string) (code int, err error) {
	resp, err := http.Get("http://" + address + "/healthz")
	if err != nil {
		return 0, err
	}
	resp.Body.Close()
	return resp.StatusCode, nil
}

func TestHTTPStats(t *testing.T) {
	s := newHTTPStats()
	s.connected(2)
	s.connected(-1)
	s.refuse(refusedBusy)
	open, refused := s.snapshot()
	if want := map[string]uint64{refusedBusy: 1}; open != 1 || !maps.Equal(nonzero(refused), want) {
		t.Errorf("%d open, %v", open, refused)
	}
}

func nonzero(counts map[string]uint64) map[string]uint64 {
	maps.DeleteFunc(counts, func(_ string, n uint64) bool { return n == 0 })
	return counts
}
