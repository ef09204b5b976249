package bounds

import (
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Streams bounds the responses that go on without end. At the bound a new stream ends the oldest
// of the address with the most, unless that has stayed for too short a time: a client that does not
// read its stream cannot keep others out. The zero value with a bound is ready to use.
type Streams struct {
	Max int

	mu   sync.Mutex
	open []*stream // oldest first
}

type stream struct {
	from  netip.Prefix
	since time.Time
	end   func() // ends the stream; it does not wait
}

// Enter adds a stream, which leave removes. At the bound it replaces one that has entered stays ago or
// earlier; else leave is nil, and wait is the time until then.
func (s *Streams) Enter(from netip.Prefix, stays time.Duration, end func()) (leave func(), wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if len(s.open) >= s.Max {
		oldest := s.oldest()
		if wait := stays - now.Sub(oldest.since); wait > 0 {
			return nil, wait
		}
		s.remove(oldest)
		oldest.end()
	}
	entered := &stream{from, now, end}
	s.open = append(s.open, entered)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.remove(entered)
	}, 0
}

// oldest returns the oldest stream of the address with the most.
func (s *Streams) oldest() *stream {
	held := map[netip.Prefix]int{}
	for _, one := range s.open {
		held[one.from]++
	}
	oldest := s.open[0]
	for _, one := range s.open {
		if held[one.from] > held[oldest.from] {
			oldest = one
		}
	}
	return oldest
}

// remove removes a stream, which may have gone. The caller holds mu.
func (s *Streams) remove(one *stream) {
	s.open = slices.DeleteFunc(s.open, func(other *stream) bool { return other == one })
}
