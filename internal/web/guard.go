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
func (w *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if c := bounds.ConnOf(r.Context()); c != nil {
			defer c.Serve()()
		}
		h := rw.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		body := &requestBody{ReadCloser: http.MaxBytesReader(rw, r.Body, maxBody)}
		r.Body = body
		if r.ContentLength != 0 {
			defer func() {
				if !body.ended { // otherwise the server would wait for the rest
					_ = http.NewResponseController(rw).SetReadDeadline(time.Now().Add(-time.Second))
				}
			}()
		}
		if !w.hosts.has(r.Host) && !(r.Host == "" && isProbe(r)) { // some load balancers use HTTP/1.0, which has no Host
			w.monitor.http.refuse(refusedHost)
			h.Set("Connection", "close")
			refuseRequest(rw, http.StatusForbidden, fmt.Sprintf("%.100q is not a name of this machine: use its address, or add the name to http.hosts", r.Host))
			return
		}
		next.ServeHTTP(rw, r)
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
func (w *Server) probe(examine func() health) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		h := examine()
		if a, _ := w.admit(r); a != admitted {
			h.Checks = nil
		}
		rw.Header().Set("Connection", "close") // a client that does not read cannot send further requests
		reply(rw, h.code(), h)
		_ = http.NewResponseController(rw).Flush() // while the connection cannot be replaced
	}
}

// admit checks the password of a request and counts refusals.
func (w *Server) admit(r *http.Request) (a admission, wait time.Duration) {
	a, wait = w.password.check(r)
	switch {
	case a == withoutPassword && !isProbe(r):
		w.monitor.http.refuse(refusedNone)
	case a == wrongPassword:
		w.monitor.http.refuse(refusedPassword)
	case a == tooManyAttempts:
		w.monitor.http.refuse(refusedAttempt)
	}
	return a, wait
}

// authorised serves requests with the password, if one is configured.
func (w *Server) authorised(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch a, wait := w.admit(r); a {
		case admitted:
			next.ServeHTTP(rw, r)
		case tooManyAttempts:
			retryAfter(rw, wait)
			refuseRequest(rw, http.StatusTooManyRequests, "too many wrong passwords came from this address: wait, then give the right one")
		default:
			rw.Header().Set("WWW-Authenticate", `Basic realm="edge", charset="UTF-8"`)
			refuseRequest(rw, http.StatusUnauthorized, "want the password that http.password names: with any user name, or as a token (Authorization: Bearer)")
		}
	})
}

// limited serves a request within the bounds of t.
func (w *Server) limited(t *bounds.Requests, reason string, next http.HandlerFunc) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		release, ok := t.Acquire(bounds.SourceOf(r.RemoteAddr))
		if !ok {
			w.busy(rw, reason, time.Second, "too many requests at a time")
			return
		}
		defer release()
		next(rw, r)
	}
}

// busy refuses a request that may succeed later.
func (w *Server) busy(rw http.ResponseWriter, reason string, wait time.Duration, why string) {
	w.monitor.http.refuse(reason)
	retryAfter(rw, wait)
	rw.Header().Set("Connection", "close")
	refuseRequest(rw, http.StatusServiceUnavailable, why+": try again")
}

// retryAfter tells a client when to try again.
func retryAfter(rw http.ResponseWriter, wait time.Duration) {
	rw.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
}
