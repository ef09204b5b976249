package online

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model"
)

// TestReaders learns while others read snapshots, kept ones and ones that are used again;
// the race detector finds a step that writes to one of them.
func TestReaders(t *testing.T) {
	readers := new(Readers)
	read := func(lp *Loop, learning context.Context, snapshot func() *model.Posterior) {
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
	}
	readWhileLearning(t, LoopOptions{Readers: readers},
		func(lp *Loop, learning context.Context) { read(lp, learning, lp.Snapshot) },
		func(lp *Loop, learning context.Context) { read(lp, learning, lp.Posterior) })
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
