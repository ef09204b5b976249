// Package timing waits, until a context ends: for a time, at intervals, or for a function
// that nothing interrupts.
package timing

import (
	"context"
	"time"
)

// Sleep waits for d, or for the end of ctx, whose error it returns.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Duration returns a time in nanoseconds, at most 146 years: a larger one would overflow.
func Duration(ns float64) time.Duration { return time.Duration(min(ns, 1<<62)) }

// Every calls f at once and then at intervals, until ctx ends.
func Every(ctx context.Context, interval time.Duration, f func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		f()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Await returns the error of f, or that of ctx once it ends. f may wait for a pipe that stays
// silent, which nothing interrupts: it is left alone then, since the program ends.
func Await(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	if ctx.Err() == nil {
		go func() { done <- f() }()
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
