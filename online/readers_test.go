package online

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"edge/model"
)

// TestReaders learns while others read snapshots, kept ones and ones that are used again;
// the race detector finds a step that writes to one of them.
func TestReaders(t *testing.T) {
	cfg := testConfig(3, "a", "b", "c")
	direct := newTestLearner(t, cfg)
	feed(direct, rand.New(rand.NewPCG(2, 2)), 500)
	readers := new(Readers)
	lp := NewLoop(newTestLearner(t, cfg), LoopOptions{Model: "m", Queue: 4, Readers: readers})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- lp.Run(ctx) }()
	learning, learnt := context.WithCancel(ctx)
	var reading sync.WaitGroup
	for _, snapshot := range []func() *model.Posterior{lp.Snapshot, lp.Posterior} {
		reading.Go(func() {
			ws, x := model.NewWorkspace(), []float64{9, 10, 11}
			var kept *model.Posterior
			var answer []float64
			for learning.Err() == nil {
				readers.Enter()
				p := snapshot()
				first, _, _ := p.PredictTo(nil, x, ws)
				if again, _, _ := p.PredictTo(nil, x, ws); !slices.Equal(again, first) {
					t.Errorf("a snapshot answers %v, answered %v", again, first)
				}
				readers.Leave()
				if kept == nil {
					kept = lp.Posterior()
					answer, _, _ = kept.PredictTo(nil, x, ws)
				}
			}
			if again, _, _ := kept.PredictTo(nil, x, ws); !slices.Equal(again, answer) {
				t.Errorf("a kept snapshot answers %v, answered %v", again, answer)
			}
		})
	}
	rng := rand.New(rand.NewPCG(2, 2))
	for seq := 1; seq <= 500; seq += 5 {
		if err := lp.Learn(ctx, records(rng, seq, 5)); err != nil {
			t.Fatal(err)
		}
	}
	if err := lp.Idle(ctx); err != nil {
		t.Fatal(err)
	}
	learnt()
	reading.Wait()
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if lp.Learner().Digest() != direct.Digest() {
		t.Error("the state of the loop differs")
	}
}

// TestMemoryIsUsedAgain steps with and without readers: the step after the next uses the
// memory of a snapshot, unless a reader may have it.
func TestMemoryIsUsedAgain(t *testing.T) {
	cases := map[string]struct {
		readers *Readers
		read    func(lp *Loop, r *Readers)
		again   bool
	}{
		"not counted":  {nil, func(*Loop, *Readers) {}, false},
		"none":         {new(Readers), func(*Loop, *Readers) {}, true},
		"has left":     {new(Readers), func(lp *Loop, r *Readers) { r.Enter(); lp.Snapshot(); r.Leave() }, true},
		"still reads":  {new(Readers), func(lp *Loop, r *Readers) { r.Enter(); lp.Snapshot() }, false},
		"has kept one": {new(Readers), func(lp *Loop, _ *Readers) { lp.Posterior() }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := newTestLearner(t, testConfig(3, "a", "b", "c"))
			rng := rand.New(rand.NewPCG(2, 2))
			feed(l, rng, 200)
			lp := NewLoop(l, LoopOptions{Model: "m", Queue: 4, Readers: c.readers})
			step := func() *model.Memory {
				t.Helper()
				feed(l, rng, l.Config().Batch.MaxSize)
				lp.newer = true
				lp.publish()
				return lp.Snapshot().Memory
			}
			step()
			first := step()
			c.read(lp, c.readers)
			second := step()
			if third := step(); first == second || second == third || (third == first) != c.again {
				t.Errorf("the memory of the first snapshot is used again: %t, want %t", third == first, c.again)
			}
		})
	}
}
