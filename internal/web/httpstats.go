package web

import (
	"maps"
	"sync"
)

// Why the web server refused something: a value of a metric's label.
const (
	refusedPlace    = "connections" // a connection was closed for a new one
	refusedBusy     = "requests"    // too many at a time
	refusedViewer   = "viewers"     // too many of them
	refusedScrape   = "scrapes"     // too many readers of the metrics
	refusedHost     = "host"        // a name that is not this machine's
	refusedNone     = "no_password"
	refusedPassword = "wrong_password"
	refusedAttempt  = "attempts" // too many wrong passwords before
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
	for _, reason := range []string{refusedPlace, refusedBusy, refusedViewer, refusedScrape, refusedHost, refusedNone, refusedPassword, refusedAttempt} {
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

func (s *httpStats) snapshot() (open int, refused map[string]uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open, maps.Clone(s.refused)
}
