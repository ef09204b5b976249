package web

import (
	"maps"
	"sync"
)

// Reasons for refusals, the values of a metric's label.
const (
	RefusedConnection = "connections" // a connection was replaced by a new one
	refusedBusy       = "requests"    // too many in progress
	RefusedViewer     = "viewers"     // too many event streams
	refusedScrape     = "scrapes"     // too many concurrent scrapes
	RefusedHost       = "host"        // the Host header names another machine
	RefusedNone       = "no_password"
	RefusedPassword   = "wrong_password"
	RefusedAttempt    = "attempts" // too many wrong passwords before
)

// httpStats counts connections and refusals of a web server. It outlives the server,
// which a reload replaces.
type httpStats struct {
	mu      sync.Mutex
	open    int               // connections
	refused map[string]uint64 // by reason
}

func newHTTPStats() *httpStats {
	s := &httpStats{refused: map[string]uint64{}}
	for _, reason := range []string{RefusedConnection, refusedBusy, RefusedViewer, refusedScrape, RefusedHost, RefusedNone, RefusedPassword, RefusedAttempt} {
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

// Snapshot returns the open connections and the refusals by reason.
func (s *httpStats) Snapshot() (open int, refused map[string]uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open, maps.Clone(s.refused)
}
