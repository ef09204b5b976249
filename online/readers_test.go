package online

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model"
	"edge/online/fleet"
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
	nothing := func(*Readers) {}
	cases := map[string]struct {
		readers *Readers
		read    func(lp *Loop, r *Readers) // the first snapshot
		then    func(r *Readers)           // after the second came
		again   bool
	}{
		"not counted":         {nil, func(*Loop, *Readers) {}, nothing, false},
		"none":                {new(Readers), func(*Loop, *Readers) {}, nothing, true},
		"has left":            {new(Readers), func(lp *Loop, r *Readers) { r.Enter(); lp.Snapshot(); r.Leave() }, nothing, true},
		"still reads":         {new(Readers), func(lp *Loop, r *Readers) { r.Enter(); lp.Snapshot() }, nothing, false},
		"has kept one":        {new(Readers), func(lp *Loop, _ *Readers) { lp.Posterior() }, nothing, false},
		"reads the second":    {new(Readers), func(*Loop, *Readers) {}, (*Readers).Enter, true},
		"left before another": {new(Readers), func(lp *Loop, r *Readers) { r.Enter(); lp.Snapshot() }, func(r *Readers) { r.Leave(); r.Enter() }, true},
		"left after another":  {new(Readers), func(lp *Loop, r *Readers) { r.Enter(); lp.Snapshot() }, func(r *Readers) { r.Enter(); r.Leave() }, false},
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
			c.then(c.readers)
			if third := step(); first == second || second == third || (third == first) != c.again {
				t.Errorf("the memory of the first snapshot is used again: %t, want %t", third == first, c.again)
			}
		})
	}
}

// A snapshot stays as it is while the guest of a fleet learns the warm-up buffer.
func TestSnapshotOfAGuest(t *testing.T) {
	cfg, all := fleetConfig(), []string{"c0", "c1", "c2", "c3"}
	set := fleet.NewSet(0)
	set.Put(contribution(t, taught(t, cfg, 1, 200, all...), "other", 1))
	l := newTestLearner(t, cfg)
	ev := MergeEvent(merged(t, l, set))
	if out := l.Add(&ev); out.Refused != nil {
		t.Fatal(out.Refused)
	}
	p := l.Posterior()
	if p.Fleet == nil || p.Fleet.Guest == nil {
		t.Fatal("there is no guest")
	}
	var ws model.Workspace
	before, _, _ := p.PredictTo(nil, []float64{0.3, 0.4}, &ws)
	before = slices.Clone(before)
	teach(l, 5, 20, all...)
	if after, _, _ := p.PredictTo(nil, []float64{0.3, 0.4}, &ws); !slices.Equal(after, before) {
		t.Errorf("the snapshot answers %v, and %v before", after, before)
	}
}
