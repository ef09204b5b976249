package stream

import (
	"sync"
	"time"

	"edge/stream/codec"
)

// limiter lets burst events through at once and then one every interval. The
// zero value lets nothing through.
type limiter struct {
	interval time.Duration
	burst    int

	mu   sync.Mutex
	full time.Time // when the whole burst is available again
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

// limits are a limiter for each reason of a refusal.
type rateLimits map[codec.Reason]*limiter

func newRateLimits(interval time.Duration, burst int) rateLimits {
	all := rateLimits{}
	for _, reason := range codec.Reasons() {
		all[reason] = &limiter{interval: interval, burst: burst}
	}
	return all
}
