package demo

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"edge/internal/timing"
	"edge/online"
	"edge/stream"
)

// unfinished reports whether the only error in err is stream.ErrUnfinished: the
// daemon stopped before the last samples were learnt.
func unfinished(err error) bool {
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(e.Unwrap(), func(err error) bool { return !unfinished(err) })
	case interface{ Unwrap() error }:
		return unfinished(e.Unwrap())
	}
	return err == stream.ErrUnfinished
}

// ending is an output that ends the demo where it cannot be written to any more. Several
// goroutines may use it.
type ending struct {
	io.Writer
	end context.CancelCauseFunc
	mu  sync.Mutex
}

func (e *ending) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n, err := e.Writer.Write(p)
	if err != nil {
		e.end(fmt.Errorf("demo: %w", err))
	}
	return n, err
}

// learner is the part of an online.Loop that the demo waits for.
type learner interface {
	Status() *online.Status
	Idle(ctx context.Context) error
}

const (
	learntPoll = 20 * time.Millisecond
	learntWait = 2 * time.Second // until the demo stops waiting for samples of an idle learner, and for a busy one at its end
)

// learnt waits until a number of samples have been scored and learnt. The daemon
// does not score rows that it refuses, so learnt also returns once an idle
// learner has made no progress for learntWait; a busy one, which may be building
// its first model, is waited for.
func learnt(ctx context.Context, l learner, rows uint64) error {
	last, since := uint64(0), time.Now()
	for {
		if err := l.Idle(ctx); err != nil {
			return err
		}
		s := l.Status()
		if s.Seq != last {
			last, since = s.Seq, time.Now()
		}
		if s.Scores.N >= rows || time.Since(since) >= learntWait {
			return nil
		}
		if err := timing.Sleep(ctx, learntPoll); err != nil {
			return err
		}
	}
}
