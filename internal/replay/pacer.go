package replay

import (
	"context"
	"time"

	"edge/internal/timing"
)

// pacer spaces events evenly. After a pause it catches up for at most catchUp.
type pacer struct {
	rate float64 // events a second; 0: no limit
	next time.Time
}

const catchUp = 100 * time.Millisecond

// duration returns a time in nanoseconds, at most 146 years: a larger one would overflow.
func duration(ns float64) time.Duration { return time.Duration(min(ns, 1<<62)) }

func (p *pacer) wait(ctx context.Context) error {
	if p.rate <= 0 {
		return ctx.Err()
	}
	now := time.Now()
	if p.next.Before(now.Add(-catchUp)) {
		p.next = now
	}
	due := p.next
	p.next = due.Add(duration(float64(time.Second) / p.rate))
	return timing.Sleep(ctx, due.Sub(now))
}
