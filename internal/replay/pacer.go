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

// wait waits for the next event.
func (p *pacer) wait(ctx context.Context) error {
	if p.rate <= 0 {
		return ctx.Err()
	}
	now := time.Now()
	if p.next.Before(now.Add(-catchUp)) {
		p.next = now
	}
	due := p.next
	p.next = due.Add(timing.Duration(float64(time.Second) / p.rate))
	return timing.Sleep(ctx, due.Sub(now))
}

// clock spaces rows as their times say, at a speed, or by the rate of its pacer.
type clock struct {
	pacer
	speed float64   // of the times; 0: the pacer's rate
	first int64     // time of the first row, in ns; −1: none has come
	begun time.Time // when it came
}

// waitFor waits for a row with that time, in ns; below 0: it has none.
func (c *clock) waitFor(ctx context.Context, at int64) error {
	if c.speed <= 0 || at < 0 {
		return c.wait(ctx)
	}
	if c.first < 0 {
		c.first, c.begun = at, time.Now()
	}
	return timing.Sleep(ctx, time.Until(c.begun.Add(timing.Duration(float64(at-c.first)/c.speed))))
}
