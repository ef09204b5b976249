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
func (s *Server) viewed(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		connection := bounds.ConnOf(r.Context())
		leave, wait := s.viewers.Enter(bounds.SourceOf(r.RemoteAddr), s.Timeouts.ViewerStays, func() {
			cancel()
			if connection != nil {
				connection.Close() // a write to it may block
			}
		})
		if leave == nil {
			s.busy(w, refusedViewer, wait, fmt.Sprintf("%d viewers follow already", s.viewers.Max))
			return
		}
		defer leave()
		if connection != nil {
			_ = connection.SetWriteBuffer(viewerBuffer) // a small buffer shows earlier that a viewer does not read
		}
		w.Header().Set("Connection", "close")
		next(w, r.WithContext(ctx))
	}
}
