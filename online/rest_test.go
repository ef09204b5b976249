package online

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"edge/model"
)

// runs are configurations and events that change everything that snapshots share.
func runs(rng *rand.Rand) map[string]struct {
	cfg    Config
	events []Event
} {
	shared := testConfig(3, "a", "b")
	shared.Classes.Open = true
	own := shared
	own.Kernel = PerClass
	var events []Event
	for i := range 400 {
		ev := blob(rng, 3)
		if i > 150 && i%5 == 0 {
			ev.Label = "d"
		}
		events = append(events, ev)
		switch i {
		case 130, 131, 132: // filtered one by one
			events = append(events, Event{Kind: Boundary})
		case 250:
			wrong := events[len(events)-4]
			events = append(events, Event{Kind: Correct, X: wrong.X, Label: "a", Name: wrong.Label})
		case 300:
			events = append(events, Event{Kind: ClassRemove, Label: "d"})
		}
	}
	return map[string]struct {
		cfg    Config
		events []Event
	}{"one kernel": {shared, events}, "a kernel each": {own, events}}
}

// TestSnapshotsStay keeps every snapshot: none may change when its learner carries on.
func TestSnapshotsStay(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	x := blob(rng, 3).X
	for name, r := range runs(rng) {
		t.Run(name, func(t *testing.T) {
			type kept struct {
				post  *model.Posterior
				probs []float64
			}
			l, ws := newTestLearner(t, r.cfg), model.NewWorkspace()
			var all []kept
			for i := range r.events {
				l.Add(&r.events[i])
				if i == 320 {
					if err := l.reseed(); err != nil { // as a drift would
						t.Fatal(err)
					}
				}
				p := l.Posterior()
				probs, _, err := p.PredictTo(nil, x, ws)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, kept{p, probs})
			}
			for i, k := range all {
				if probs, _, _ := k.post.PredictTo(nil, x, ws); !slices.Equal(probs, k.probs) {
					t.Fatalf("snapshot %d answers %v, answered %v", i, probs, k.probs)
				}
			}
		})
	}
}

// TestRest rests before every event, and takes a snapshot after it: the learnt state
// is the same as without either.
func TestRest(t *testing.T) {
	for name, r := range runs(rand.New(rand.NewPCG(3, 3))) {
		t.Run(name, func(t *testing.T) {
			busy, lazy := newTestLearner(t, r.cfg), newTestLearner(t, r.cfg)
			for i := range r.events {
				lazy.rest()
				a, b := busy.Add(&r.events[i]), lazy.Add(&r.events[i])
				lazy.Posterior()
				if (a.Refused == nil) != (b.Refused == nil) || a.Stepped != b.Stepped {
					t.Fatalf("event %d: %+v, without rest %+v", i, b, a)
				}
			}
			if busy.Digest() != lazy.Digest() {
				t.Error("the state of a learner that rests differs")
			}
		})
	}
}

// readWhileLearning calls each of read in a goroutine of its own while a loop learns 500
// records; learning ends with them. The loop ends in the state of a learner alone.
func readWhileLearning(t *testing.T, opts LoopOptions, read ...func(lp *Loop, learning context.Context)) {
	t.Helper()
	cfg := testConfig(3, "a", "b", "c")
	direct := newTestLearner(t, cfg)
	feed(direct, rand.New(rand.NewPCG(2, 2)), 500)
	opts.Model, opts.Queue = "m", 4
	lp := NewLoop(newTestLearner(t, cfg), opts)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- lp.Run(ctx) }()
	learning, learnt := context.WithCancel(ctx)
	var reading sync.WaitGroup
	for _, f := range read {
		reading.Go(func() { f(lp, learning) })
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

// TestLoopRests reads snapshots and rests while the loop learns; the race detector
// finds a step that writes to a snapshot.
func TestLoopRests(t *testing.T) {
	rest := func(lp *Loop, learning context.Context) {
		ws, x := model.NewWorkspace(), []float64{9, 10, 11}
		for learning.Err() == nil {
			p := lp.Posterior()
			first, _, _ := p.PredictTo(nil, x, ws)
			if lp.Rest(learning) != nil {
				return
			}
			if again, _, _ := p.PredictTo(nil, x, ws); !slices.Equal(again, first) {
				t.Errorf("a snapshot answers %v, answered %v", again, first)
			}
		}
	}
	readWhileLearning(t, LoopOptions{}, rest, rest)
}

// TestRestWhileReconfigured rests while the configuration replaces the learner; the
// race detector finds a Rest that reads the learner outside Run.
func TestRestWhileReconfigured(t *testing.T) {
	cfg := testConfig(3, "a", "b", "c")
	lp := NewLoop(newTestLearner(t, cfg), LoopOptions{Model: "m", Queue: 4})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- lp.Run(ctx) }()
	rests := make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < 20 && err == nil; i++ {
			err = lp.Rest(ctx)
		}
		rests <- err
	}()
	for range 20 {
		cfg.LearningRate *= 0.99
		if err := lp.Reconfigure(ctx, cfg, time.Minute, 100, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-rests; err != nil {
		t.Error(err)
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
