package web

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"edge/internal/web/bounds"
)

// guard handles the rules of every request: its connection is not replaced meanwhile,
// its Host is a name of this machine, and its body is bounded.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c := bounds.ConnOf(r.Context()); c != nil {
			defer c.Serve()()
		}
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		body := &requestBody{ReadCloser: http.MaxBytesReader(w, r.Body, maxBody)}
		r.Body = body
		if r.ContentLength != 0 {
			defer func() {
				if !body.ended { // otherwise the server would wait for the rest
					_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(-time.Second))
				}
			}()
		}
		if !s.hosts.has(r.Host) && !(r.Host == "" && isProbe(r)) { // some load balancers use HTTP/1.0, which has no Host
			s.monitor.http.refuse(refusedHost)
			h.Set("Connection", "close")
			refuseRequest(w, http.StatusForbidden, fmt.Sprintf("%.100q is not a name of this machine: use its address, or add the name to http.hosts", r.Host))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// requestBody notes the end of a request's body.
type requestBody struct {
	io.ReadCloser
	ended bool
}

// Read notes the end of the body.
func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.ended = b.ended || err == io.EOF
	return n, err
}

// isProbe reports whether a request asks for a health check.
func isProbe(r *http.Request) bool { return r.URL.Path == "/healthz" || r.URL.Path == "/readyz" }

// probe serves a health check. A configured password is required for the details, not
// for the result.
func (s *Server) probe(examine func() health) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := examine()
		if a, _ := s.admit(r); a != admitted {
			h.Checks = nil
		}
		w.Header().Set("Connection", "close") // a client that does not read cannot send further requests
		reply(w, h.code(), h)
		_ = http.NewResponseController(w).Flush() // while the connection cannot be replaced
	}
}

// admit checks the password of a request and counts refusals.
func (s *Server) admit(r *http.Request) (a admission, wait time.Duration) {
	a, wait = s.password.check(r)
	switch {
	case a == withoutPassword && !isProbe(r):
		s.monitor.http.refuse(refusedNone)
	case a == wrongPassword:
		s.monitor.http.refuse(refusedPassword)
	case a == tooManyAttempts:
		s.monitor.http.refuse(refusedAttempt)
	}
	return a, wait
}

// authorised serves requests with the password, if one is configured.
func (s *Server) authorised(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch a, wait := s.admit(r); a {
		case admitted:
			next.ServeHTTP(w, r)
		case tooManyAttempts:
			retryAfter(w, wait)
			refuseRequest(w, http.StatusTooManyRequests, "too many wrong passwords came from this address: wait, then give the right one")
		default:
			w.Header().Set("WWW-Authenticate", `Basic realm="edge", charset="UTF-8"`)
			refuseRequest(w, http.StatusUnauthorized, "want the password that http.password names: with any user name, or as a token (Authorization: Bearer)")
		}
	})
}

// limited serves a request within the bounds of t.
func (s *Server) limited(t *bounds.Requests, reason string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		release, ok := t.Acquire(bounds.SourceOf(r.RemoteAddr))
		if !ok {
			s.busy(w, reason, time.Second, "too many requests at a time")
			return
		}
		defer release()
		next(w, r)
	}
}

// busy refuses a request that may succeed later.
func (s *Server) busy(w http.ResponseWriter, reason string, wait time.Duration, why string) {
	s.monitor.http.refuse(reason)
	retryAfter(w, wait)
	w.Header().Set("Connection", "close")
	refuseRequest(w, http.StatusServiceUnavailable, why+": try again")
}

// retryAfter sets the time after which a client is to try again.
func retryAfter(w http.ResponseWriter, wait time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
}
