package online

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

func TestLoopBackPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lp := NewLoop(newTestLearner(t, testConfig(3)), LoopOptions{Model: "m", Queue: 1})
		rng := rand.New(rand.NewPCG(1, 1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if lp.Busy() {
			t.Error("busy without a record")
		}
		if err := lp.Learn(ctx, records(rng, 1, 1)); err != nil {
			t.Fatal(err)
		}
		if !lp.Busy() {
			t.Error("not busy with a record in the queue")
		}
		// Run has not started: the queue is full, and Learn waits for its context.
		if err := lp.Learn(ctx, records(rng, 2, 1)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a full queue gave %v", err)
		}
		if err := lp.Idle(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Idle with a record in the queue gave %v", err)
		}
	})
}

// A loop that begins after a long journal saves its state immediately.
// The queue is bounded by memory as well. One group is taken whatever its size.
func TestLoopBoundsMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := records(rand.New(rand.NewPCG(1, 1)), 1, 300)
		lp := NewLoop(newTestLearner(t, testConfig(3)), LoopOptions{Model: "m", Queue: 10, QueueBytes: memoryOf(all[:150])})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := lp.Learn(ctx, all[:200]); err != nil {
			t.Fatal(err)
		}
		if err := lp.Learn(ctx, all[200:201]); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("beside a group that is too large: %v", err)
		}
		run, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if err := lp.Run(run); err != nil {
				t.Error(err)
			}
		}()
		for at := 200; at < 300; at += 10 { // Learn waits for room
			if err := lp.Learn(t.Context(), all[at:at+10]); err != nil {
				t.Fatal(err)
			}
		}
		if err := lp.Idle(t.Context()); err != nil || lp.waiting.bytes != 0 || lp.Status().Seq != 300 {
			t.Errorf("%v, %d bytes and record %d, want 0 and 300", err, lp.waiting.bytes, lp.Status().Seq)
		}
		stop()
		<-ended
	})
}
