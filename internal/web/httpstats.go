package web

import (
	"maps"
	"sync"
)

// Why the web server refused something: a value of a metric's label.
const (
	RefusedPlace    = "connections" // a connection was closed for a new one
	refusedBusy     = "requests"    // too many at a time
	RefusedViewer   = "viewers"     // too many of them
	refusedScrape   = "scrapes"     // too many readers of the metrics
	RefusedHost     = "host"        // a name that is not this machine's
	RefusedNone     = "no_password"
	RefusedPassword = "wrong_password"
	RefusedAttempt  = "attempts" // too many wrong passwords before
)

// httpStats counts what a web server does. It outlives the server, which a
// reload replaces.
type httpStats struct {
	mu      sync.Mutex
	open    int               // connections
	refused map[string]uint64 // by reason
}

func newHTTPStats() *httpStats {
	s := &httpStats{refused: map[string]uint64{}}
	for _, reason := range []string{RefusedPlace, refusedBusy, RefusedViewer, refusedScrape, RefusedHost, RefusedNone, RefusedPassword, RefusedAttempt} {
		s.refused[reason] = 0
	}
	return s
}

func (s *httpStats) connected(change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open += change
}

func (s *httpStats) refuse(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[reason]++
}

func (s *httpStats) Snapshot() (open int, refused map[string]uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open, maps.Clone(s.refused)
}
