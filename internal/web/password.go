package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"edge/internal/config"
	"edge/internal/web/bounds"
)

const (
	freeAttempts = 10 // wrong passwords from one address before it must wait
	attemptPause = 6 * time.Second
	maxAttackers = 1000 // remembered addresses
)

// admission is the result of a password check.
type admission int

const (
	admitted admission = iota
	withoutPassword
	wrongPassword
	tooManyAttempts
)

// password checks the password of requests. A nil password admits all requests.
type password struct {
	digest *fileCache[[sha256.Size]byte]
	log    *slog.Logger

	mu     sync.Mutex
	until  map[netip.Prefix]time.Time // when the wrong passwords of an address are forgotten
	warned time.Time
}

// newPassword returns nil if no password is configured.
func newPassword(cfg config.HTTP, log *slog.Logger) *password {
	secret := cfg.Password
	if secret.IsZero() {
		return nil
	}
	p := &password{log: log, until: map[netip.Prefix]time.Time{}}
	p.digest = &fileCache[[sha256.Size]byte]{name: "http.password", log: log, load: func() (none [sha256.Size]byte, err error) {
		text, err := cfg.Password.Resolve()
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

// check checks the password of a request, which is that of any user (Basic) or a
// token (Bearer). After too many wrong passwords wait is the time that the address
// must wait.
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
		return wrongPassword, 0 // no password is loaded yet: every password is wrong
	}
	got := sha256.Sum256([]byte(given))
	from := bounds.SourceOf(r.RemoteAddr)
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

// fail records a wrong password.
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
		p.log.Warn("an address gave too many wrong passwords and must wait between attempts", "address", from.Addr().String())
	}
}

// passwordOf returns the password or token of a request.
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
