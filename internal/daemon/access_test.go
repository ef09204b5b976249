package daemon

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/test/files"
)

const secretForTests = "correct-horse-battery-staple"

func withPassword(t *testing.T) func(*config.Config) {
	file := files.Write(t, "password", secretForTests+"\n")
	return func(c *config.Config) {
		c.HTTP.Password.File, c.HTTP.Pprof, c.Control.Enabled = file, true, true
	}
}

// basic returns the Authorization header of a user with a password.
func basic(user, password string) string {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(user, password)
	return r.Header.Get("Authorization")
}

// Every path but the health checks requires the password, in either scheme.
func TestPassword(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	closed := []string{"/", "/metrics", "/api/v1/models", "/api/v1/models/wear", "/api/v1/models/wear/fleet", "/api/v1/events", "/debug/pprof/", "/debug/pprof/heap", "/none"}
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
			s := serve(t, b.URL(), withPassword(t)) // which has seen no wrong password
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
					t.Errorf("%s reveals too much: %s", path, answer)
				}
			}
			if strings.Contains(s.log.String(), secretForTests) {
				t.Error("the password is in the log")
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
	s := serve(t, b.URL(), withPassword(t))
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
	if code, _ := s.do("GET", "/", "", map[string]string{"Authorization": "Bearer wrong"}); code != http.StatusUnauthorized {
		t.Errorf("a wrong password is answered %d", code)
	}
	_, text := s.do("GET", "/metrics", "", map[string]string{"Authorization": "Bearer " + secretForTests})
	for reason, want := range map[string]float64{"no_password": 2, "wrong_password": 1} {
		if n := metricIn(text, fmt.Sprintf("edge_http_refused_total{reason=%q}", reason)); n != want {
			t.Errorf("%g refusals for %s are counted, want %g:\n%s", n, reason, want, text)
		}
	}
}

// After many wrong passwords an address has to wait, even with the right one; other
// addresses do not.
func TestTooManyAttempts(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	s := serve(t, b.URL(), withPassword(t))
	right := map[string]string{"Authorization": basic("edge", secretForTests)}
	if code, _ := s.do("GET", "/api/v1/models", "", right); code != http.StatusOK {
		t.Fatalf("the right password is answered %d", code)
	}
	limited := brokertest.Eventually(func() bool {
		code, _ := s.do("GET", "/api/v1/models", "", map[string]string{"Authorization": basic("edge", "guess")})
		return code == http.StatusTooManyRequests
	})
	if !limited {
		t.Fatal("passwords can be tried without a limit")
	}
	if code, _ := s.do("GET", "/api/v1/models", "", right); code != http.StatusTooManyRequests {
		t.Errorf("after too many attempts the right password is answered %d: each attempt reveals whether it is right", code)
	}
	if code, answer := s.do("GET", "/healthz", "", right); code != http.StatusOK || gjson.Get(answer, "checks").Exists() {
		t.Errorf("after too many attempts the health check answers %d %s", code, answer)
	}
	if !strings.Contains(s.log.String(), "too many wrong passwords") {
		t.Error("the log does not have it")
	}
}

// A renewed password applies within seconds; while it cannot be read, the old one
// applies.
func TestPasswordRenewed(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	file := files.Write(t, "password", "first")
	s := serve(t, b.URL(), func(c *config.Config) { c.HTTP.Password.File = file })
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
	if !brokertest.Eventually(func() bool { return answers("first", http.StatusUnauthorized) }) || !answers("the second", http.StatusOK) {
		t.Error("the new password is not taken")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if !brokertest.Eventually(func() bool {
		return answers("the second", http.StatusOK) && strings.Contains(s.log.String(), "cannot be read again")
	}) {
		t.Error("a password that cannot be read is not noticed, or the one before not kept")
	}
}

// A request that is not quite valid HTTP is answered or its connection closed.
func TestOddRequests(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	s := serve(t, b.URL(), func(c *config.Config) { c.HTTP.Hosts = []string{"edge.lan"} })
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
			_ = c.SetDeadline(time.Now().Add(brokertest.Patience))
			if _, err := io.WriteString(c, tc.request); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(c).ReadString('\n')
			if !strings.HasPrefix(line, tc.want) {
				t.Errorf("answers %q, %v, want %s", line, err, tc.want)
			}
		})
	}
	_, metrics := s.get("/metrics")
	if n := metricIn(metrics, `edge_http_refused_total{reason="host"}`); n < 5 {
		t.Errorf("%g refusals of a host are counted, want at least 5", n)
	}
}

// A renewed certificate applies to the next connection; while it cannot be read,
// the old one applies.
func TestServeTLS(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	path := filepath.Join(t.TempDir(), "edge")
	first := files.Certificate(t, path, "first", nil, nil).Leaf
	s := serve(t, b.URL(), func(c *config.Config) {
		c.HTTP.TLS = config.Certificate{Cert: path + ".pem", Key: path + ".key"}
		withPassword(t)(c)
	})
	if !strings.HasPrefix(s.url, "https://127.0.0.1:") {
		t.Fatalf("the page is at %s", s.url)
	}
	address := strings.TrimPrefix(s.url, "https://")
	get := func(c *x509.Certificate) (*tls.ConnectionState, error) {
		roots := x509.NewCertPool()
		roots.AddCert(c)
		client := http.Client{Timeout: brokertest.Patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true, ForceAttemptHTTP2: true}}
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
	second := files.Certificate(t, path, "second", nil, nil).Leaf
	if !brokertest.Eventually(func() bool { _, err := get(second); return err == nil }) {
		t.Error("a renewed certificate is not used")
	}
	if err := os.WriteFile(path+".key", []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !brokertest.Eventually(func() bool {
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

// plain sends a request without TLS.
func plain(address string) (code int, err error) {
	resp, err := http.Get("http://" + address + "/healthz")
	if err != nil {
		return 0, err
	}
	resp.Body.Close()
	return resp.StatusCode, nil
}
