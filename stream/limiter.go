package stream

import (
	"sync"
	"time"

	"edge/stream/codec"
)

// limiter allows burst events at once and then one for each interval. The zero value
// allows none.
type limiter struct {
	interval time.Duration
	burst    int

	mu   sync.Mutex
	full time.Time // time at which the whole burst is available again
}

// allow reports whether an event may happen now.
func (l *limiter) allow(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.full
	if next.Before(now) {
		next = now
	}
	next = next.Add(l.interval)
	if next.Sub(now) > time.Duration(l.burst)*l.interval {
		return false
	}
	l.full = next
	return true
}

// rateLimits holds a limiter for each reason of a refusal.
type rateLimits map[codec.Reason]*limiter

func newRateLimits(interval time.Duration, burst int) rateLimits {
	all := rateLimits{}
	for _, reason := range codec.Reasons() {
		all[reason] = &limiter{interval: interval, burst: burst}
	}
	return all
}
