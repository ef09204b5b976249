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
	MaxViewers   = 8                // that follow the events at a time
	viewerStays  = 10 * time.Second // before another may take its place
	viewerReads  = 10 * time.Second // what is sent, or its stream ends
	viewerBuffer = 8 << 10          // bytes on their way to a viewer, as far as the system keeps to it
)

// viewers bounds the streams of events. When there are so many, a new one ends
// the oldest of the address that has most, unless that is younger than stays. A
// browser follows again by itself; a client that does not read its stream cannot
// keep others away.
type viewers struct {
	max     int
	stays   time.Duration
	timeout time.Duration // for what is sent to be read

	mu   sync.Mutex
	open []*viewer // oldest first
}

// viewer is a stream of events.
type viewer struct {
	from  netip.Prefix
	since time.Time
	end   func() // ends the stream; it does not wait
}

// enter adds a viewer; leave takes it out again. If there is no place, leave is
// nil and wait is how long it takes until there may be one.
func (v *viewers) enter(from netip.Prefix, end func()) (leave func(), wait time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	if len(v.open) >= v.max {
		oldest := v.oldest()
		if wait := v.stays - now.Sub(oldest.since); wait > 0 {
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

// oldest returns the oldest viewer of the address that has most.
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

func (v *viewers) remove(w *viewer) {
	v.open = slices.DeleteFunc(v.open, func(other *viewer) bool { return other == w })
}

func (v *viewers) len() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.open)
}

// viewed lets a stream of events be sent while there is a place for its viewer.
func (w *Server) viewed(next http.HandlerFunc) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		connection := placeOf(r)
		leave, wait := w.viewers.enter(sourceOf(r.RemoteAddr), func() {
			cancel()
			if connection != nil {
				connection.Close() // a write to it may be waiting
			}
		})
		if leave == nil {
			w.busy(rw, refusedViewer, wait, fmt.Sprintf("%d viewers follow already", w.viewers.max))
			return
		}
		defer leave()
		if connection != nil {
			_ = connection.SetWriteBuffer(viewerBuffer) // else it takes longer to notice one that does not read
		}
		rw.Header().Set("Connection", "close")
		next(rw, r.WithContext(ctx))
	}
}
