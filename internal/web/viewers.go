package web

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"edge/internal/web/bounds"
)

const (
	MaxViewers   = 8                // open event streams
	viewerStays  = 10 * time.Second // before another may replace it
	viewerReads  = 10 * time.Second // to read a message, or its stream ends
	viewerBuffer = 8 << 10          // bytes of the send buffer, as far as the system obeys
)

// viewed serves an event stream within the bound. A browser whose stream ends connects again by
// itself.
func (w *Server) viewed(next http.HandlerFunc) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		connection := bounds.ConnOf(r.Context())
		leave, wait := w.viewers.Enter(bounds.SourceOf(r.RemoteAddr), w.Timeouts.ViewerStays, func() {
			cancel()
			if connection != nil {
				connection.Close() // a write to it may block
			}
		})
		if leave == nil {
			w.busy(rw, refusedViewer, wait, fmt.Sprintf("%d viewers follow already", w.viewers.Max))
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
