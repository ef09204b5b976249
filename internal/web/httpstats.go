package web

import (
	"maps"
	"sync"
)

// Reasons for refusals, the values of a metric's label.
const (
	refusedConnection = "connections" // a connection was replaced by a new one
	refusedBusy       = "requests"    // too many in progress
	refusedViewer     = "viewers"     // too many event streams
	refusedScrape     = "scrapes"     // too many concurrent scrapes
	refusedHost       = "host"        // the Host header names another machine
	refusedNone       = "no_password"
	refusedPassword   = "wrong_password"
	refusedAttempt    = "attempts" // too many wrong passwords before
)

// httpStats counts connections and refusals of a web server. It outlives the server,
// which a reload replaces.
type httpStats struct {
	mu      sync.Mutex
	open    int               // connections
	refused map[string]uint64 // by reason
}

// newHTTPStats returns counters of 0 for every reason.
func newHTTPStats() *httpStats {
	s := &httpStats{refused: map[string]uint64{}}
	for _, reason := range []string{refusedConnection, refusedBusy, refusedViewer, refusedScrape, refusedHost, refusedNone, refusedPassword, refusedAttempt} {
		s.refused[reason] = 0
	}
	return s
}

// Connected changes the number of open connections.
func (s *httpStats) Connected(change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open += change
}

// Replaced counts a connection that was closed for a new one.
func (s *httpStats) Replaced() { s.refuse(refusedConnection) }

// refuse counts a refusal.
func (s *httpStats) refuse(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[reason]++
}

// snapshot returns the open connections and the refusals by reason.
func (s *httpStats) snapshot() (open int, refused map[string]uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open, maps.Clone(s.refused)
}
