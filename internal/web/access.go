package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"edge/internal/config"
)

// hosts are the names, in lower case, by which requests may call this machine. A
// page of another site whose name was made to point here calls it by that name
// (DNS rebinding) and gets nothing. Addresses are allowed: no such page has one.
type hosts map[string]bool

// newHosts returns localhost, the machine's own name and others.
func newHosts(others []string) hosts {
	h := hosts{"localhost": true}
	if name, err := os.Hostname(); err == nil && name != "" {
		name = strings.ToLower(name)
		h[name], h[name+".local"] = true, true
	}
	for _, name := range others {
		h[strings.ToLower(strings.TrimSuffix(name, "."))] = true
	}
	return h
}

// has reports whether a Host header is an address or one of the names, with or
// without a port.
func (h hosts) has(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else if inner, ok := strings.CutPrefix(host, "["); ok && strings.HasSuffix(inner, "]") {
		host = strings.TrimSuffix(inner, "]")
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return h[strings.ToLower(strings.TrimSuffix(host, "."))]
}

const (
	freeAttempts = 10 // wrong passwords from one address before it has to wait
	attemptPause = 6 * time.Second
	maxAttackers = 1000 // addresses that are remembered
)

// admission is what a password check says of a request.
type admission int

const (
	admitted admission = iota
	withoutPassword
	wrongPassword
	tooManyAttempts
)

// password checks the password of requests. A nil one lets all requests pass.
type password struct {
	digest *fileCache[[sha256.Size]byte]
	log    *slog.Logger

	mu     sync.Mutex
	until  map[netip.Prefix]time.Time // when the last wrong password of an address is forgotten
	warned time.Time
}

// newPassword returns nil where no password is configured.
func newPassword(cfg config.HTTP, log *slog.Logger) *password {
	secret := cfg.Password
	if secret.IsZero() {
		return nil
	}
	p := &password{log: log, until: map[netip.Prefix]time.Time{}}
	p.digest = &fileCache[[sha256.Size]byte]{name: "http.password", log: log, load: func() (none [sha256.Size]byte, err error) {
		text, err := cfg.ReadPassword()
		if err != nil {
			return none, err
		}
		return sha256.Sum256([]byte(text)), nil
	}}
	if secret.File != "" {
		p.digest.files = []string{os.Expand(secret.File, os.Getenv)}
	}
	return p
}

// check reports whether a request brings the password, as that of any user
// (Basic) or as a token (Bearer), and for how long its address has to wait if it
// gave too many wrong ones.
func (p *password) check(r *http.Request) (a admission, wait time.Duration) {
	if p == nil {
		return admitted, 0
	}
	given, ok := passwordOf(r)
	if !ok {
		return withoutPassword, 0
	}
	want, err := p.digest.get()
	if err != nil {
		return wrongPassword, 0 // there is none yet: nothing is right
	}
	got := sha256.Sum256([]byte(given))
	from := sourceOf(r.RemoteAddr)
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if wait := p.until[from].Add(-(freeAttempts - 1) * attemptPause).Sub(now); wait > 0 {
		return tooManyAttempts, wait
	}
	if subtle.ConstantTimeCompare(got[:], want[:]) == 1 {
		return admitted, 0
	}
	p.fail(from, now)
	return wrongPassword, 0
}

// fail notes a wrong password.
func (p *password) fail(from netip.Prefix, now time.Time) {
	if len(p.until) >= maxAttackers {
		var first netip.Prefix
		for addr, until := range p.until {
			if until.Before(now) {
				delete(p.until, addr)
			} else if p.until[first].IsZero() || until.Before(p.until[first]) {
				first = addr
			}
		}
		if len(p.until) >= maxAttackers {
			delete(p.until, first)
		}
	}
	until := p.until[from]
	if until.Before(now) {
		until = now
	}
	until = until.Add(attemptPause)
	p.until[from] = until
	if until.Sub(now) > (freeAttempts-1)*attemptPause && now.Sub(p.warned) > time.Minute {
		p.warned = now
		p.log.Warn("an address gave too many wrong passwords and has to wait between attempts", "address", from.Addr().String())
	}
}

// passwordOf returns the password or token that a request brings.
func passwordOf(r *http.Request) (text string, ok bool) {
	if _, text, ok = r.BasicAuth(); ok {
		return text, true
	}
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", r.Header.Get("Authorization") != ""
	}
	return strings.TrimSpace(token), true
}

// newCertificate reads the certificate now, and again when a file has changed.
func newCertificate(c config.Certificate, log *slog.Logger) *fileCache[*tls.Certificate] {
	return &fileCache[*tls.Certificate]{name: "http.tls", files: c.Files(), log: log, load: func() (*tls.Certificate, error) {
		pair, err := c.Load()
		return &pair, err
	}}
}
