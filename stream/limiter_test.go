package stream

import (
	"testing"
	"time"
)

func TestLimiter(t *testing.T) {
	l := limiter{interval: time.Second, burst: 3}
	now := time.Unix(1e9, 0)
	allowed := func(at time.Duration, n int) (k int) {
		for range n {
			if l.allow(now.Add(at)) {
				k++
			}
		}
		return k
	}
	for _, c := range []struct {
		at   time.Duration
		want int
	}{{0, 3}, {999 * time.Millisecond, 0}, {time.Second, 1}, {3 * time.Second, 2}, {time.Hour, 3}} {
		if got := allowed(c.at, 10); got != c.want {
			t.Errorf("after %v: %d allowed, want %d", c.at, got, c.want)
		}
	}
}
