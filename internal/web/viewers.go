package web

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	MaxViewers   = 8                // open event streams
	viewerStays  = 10 * time.Second // before another may replace it
	viewerReads  = 10 * time.Second // to read a message, or its stream ends
	viewerBuffer = 8 << 10          // bytes of the send buffer, as far as the system obeys
)

// viewers bounds the event streams. At the bound a new stream ends the oldest of the
// address with the most, unless that has stayed for too short a time. A browser reconnects by
// itself; a client that does not read its stream cannot keep others out.
type viewers struct {
	max int

	mu   sync.Mutex
	open []*viewer // oldest first
}

// viewer is an event stream.
type viewer struct {
	from  netip.Prefix
	since time.Time
	end   func() // ends the stream; it does not wait
}

// enter adds a viewer, which leave removes. At the bound it replaces one that has entered stays ago or
// earlier; else leave is nil, and wait is the time until then.
func (v *viewers) enter(from netip.Prefix, stays time.Duration, end func()) (leave func(), wait time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	if len(v.open) >= v.max {
		oldest := v.oldest()
		if wait := stays - now.Sub(oldest.since); wait > 0 {
			return nil, wait
		}
		v.remove(oldest)
		oldest.end()
	}
	entered := &viewer{from, now, end}
	v.open = append(v.open, entered)
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.remove(entered)
	}, 0
}

// oldest returns the oldest viewer of the address with the most.
func (v *viewers) oldest() *viewer {
	held := map[netip.Prefix]int{}
	for _, w := range v.open {
		held[w.from]++
	}
	oldest := v.open[0]
	for _, w := range v.open {
		if held[w.from] > held[oldest.from] {
			oldest = w
		}
	}
	return oldest
}

// remove removes a viewer, which may have gone. The caller holds mu.
func (v *viewers) remove(w *viewer) {
	v.open = slices.DeleteFunc(v.open, func(other *viewer) bool { return other == w })
}

// viewed serves an event stream within the bound.
func (w *Server) viewed(next http.HandlerFunc) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		connection := connOf(r)
		leave, wait := w.viewers.enter(sourceOf(r.RemoteAddr), w.Timeouts.ViewerStays, func() {
			cancel()
			if connection != nil {
				connection.Close() // a write to it may block
			}
		})
		if leave == nil {
			w.busy(rw, refusedViewer, wait, fmt.Sprintf("%d viewers follow already", w.viewers.max))
			return
		}
		defer leave()
		if connection != nil {
			_ = connection.SetWriteBuffer(viewerBuffer) // a small buffer shows earlier that a viewer does not read
		}
		rw.Header().Set("Connection", "close")
		next(rw, r.WithContext(ctx))
	}
}
