package web

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"time"
)

// placeKey is the key of a connection's place in the context of its requests.
type placeKey struct{}

// withPlace is the ConnContext of a server that listens on places.
func withPlace(ctx context.Context, c net.Conn) context.Context {
	if encrypted, ok := c.(*tls.Conn); ok {
		c = encrypted.NetConn()
	}
	return context.WithValue(ctx, placeKey{}, c)
}

// placeOf returns the place of a request's connection, nil if it has none.
func placeOf(r *http.Request) *place {
	c, _ := r.Context().Value(placeKey{}).(*place)
	return c
}

// guard sets what holds for every request and its answer: it keeps the place of
// the connection, its Host is a name of this machine, its body is bounded.
func (w *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if c := placeOf(r); c != nil {
			defer c.serve()()
		}
		h := rw.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		body := &body{ReadCloser: http.MaxBytesReader(rw, r.Body, maxBody)}
		r.Body = body
		if r.ContentLength != 0 {
			defer func() {
				if !body.ended { // else the server would wait for the rest of it
					_ = http.NewResponseController(rw).SetReadDeadline(time.Now().Add(-time.Second))
				}
			}()
		}
		if !w.hosts.has(r.Host) && !(r.Host == "" && isProbe(r)) { // HTTP/1.0 has no Host, as some load balancers speak it
			w.monitor.http.refuse(refusedHost)
			h.Set("Connection", "close")
			refuseRequest(rw, http.StatusForbidden, fmt.Sprintf("%.100q is not a name of this machine: use its address, or add the name to http.hosts", r.Host))
			return
		}
		next.ServeHTTP(rw, r)
	})
}

// body is that of a request.
type body struct {
	io.ReadCloser
	ended bool
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.ended = b.ended || err == io.EOF
	return n, err
}

// isProbe reports whether a request asks for a health check.
func isProbe(r *http.Request) bool { return r.URL.Path == "/healthz" || r.URL.Path == "/readyz" }

// probe serves a health check. Where there is a password, its details need it;
// whether the check fails does not.
func (w *Server) probe(examine func() health) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		h := examine()
		if a, _ := w.admit(r); a != admitted {
			h.Checks = nil
		}
		rw.Header().Set("Connection", "close") // a client cannot ask for more than it reads
		reply(rw, h.code(), h)
		_ = http.NewResponseController(rw).Flush() // while the connection keeps its place
	}
}

// admit checks the password of a request and counts what is wrong with it.
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

// authorised serves requests that bring the password, if there is one.
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

// inTurn serves a request if there is a turn for it.
func (w *Server) inTurn(t *turns, reason string, next http.HandlerFunc) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		giveBack, ok := t.take(sourceOf(r.RemoteAddr))
		if !ok {
			w.busy(rw, reason, time.Second, "too many requests at a time")
			return
		}
		defer giveBack()
		next(rw, r)
	}
}

// busy refuses a request that may be granted later.
func (w *Server) busy(rw http.ResponseWriter, reason string, wait time.Duration, why string) {
	w.monitor.http.refuse(reason)
	retryAfter(rw, wait)
	rw.Header().Set("Connection", "close")
	refuseRequest(rw, http.StatusServiceUnavailable, why+": try again")
}

func retryAfter(rw http.ResponseWriter, wait time.Duration) {
	rw.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
}
