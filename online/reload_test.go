package online

import (
	"math/rand/v2"
	"testing"
	"time"

	"edge/model"
)

// The rules of prediction sets and abstention are those of the new configuration at once, not
// only after the next label.
func TestReconfigureChangesTheRules(t *testing.T) {
	cfg := testConfig(3, "a", "b", "c")
	lp := NewLoop(newTestLearner(t, cfg), LoopOptions{Model: "m", Queue: 4})
	ctx, done := t.Context(), make(chan struct{})
	go func() { lp.Run(ctx); close(done) }()
	t.Cleanup(func() { <-done })
	if err := lp.Learn(ctx, records(rand.New(rand.NewPCG(1, 1)), 1, 200)); err != nil {
		t.Fatal(err)
	}
	cfg.Conformal.Coverage, cfg.Abstain.ConfidenceBelow = 0.5, 0.99
	if err := lp.Reconfigure(ctx, cfg, time.Hour, 0, 0); err != nil {
		t.Fatal(err)
	}
	if u := lp.Uncertainty(); u.Coverage != 0.5 || u.Abstain.ConfidenceBelow != 0.99 {
		t.Errorf("after Reconfigure the coverage is %g, and answers are unsure below %g", u.Coverage, u.Abstain.ConfidenceBelow)
	}
}

// reloaded restores a state under another configuration. The learner and one that is restored
// from its checkpoint later learn the same events, to the same bytes.
func reloaded(t *testing.T, cfg Config, state []byte, events []Event, checkpoint int) {
	t.Helper()
	running, err := Restore(cfg, state)
	if err != nil {
		t.Fatal(err)
	}
	for i := range checkpoint {
		running.Add(&events[i])
	}
	saved, _ := running.AppendBinary(nil)
	restarted, err := Restore(cfg, saved)
	if err != nil {
		t.Fatal(err)
	}
	for i := checkpoint; i < len(events); i++ {
		running.Add(&events[i])
		restarted.Add(&events[i])
		if running.Digest() != restarted.Digest() {
			t.Fatalf("%d events after the checkpoint the states differ", i-checkpoint+1)
		}
	}
}

// A smaller batch.max_size while a minibatch is open.
func TestSmallerMinibatch(t *testing.T) {
	for _, open := range []int{3, 6, 9, 12, 15} {
		for seed := range uint64(4) {
			cfg := testConfig(3, "a", "b", "c")
			cfg.Window, cfg.Batch.MaxSize = 40, 16
			l, rng := newTestLearner(t, cfg), rand.New(rand.NewPCG(seed, 1))
			feed(l, rng, 320+open)
			state, _ := l.AppendBinary(nil)
			events := make([]Event, 41)
			for i := range events {
				events[i] = blob(rng, 3)
			}
			cfg.Batch.MaxSize = 1
			reloaded(t, cfg, state, events, 1) // which closes the minibatch
		}
	}
}

// late returns samples whose labels come after a reload, as l predicts them now.
func late(l *Learner, rng *rand.Rand, n int) (events []Event) {
	var ws model.Workspace
	p, u := l.Posterior(), l.Uncertainty()
	for range n {
		ev := blob(rng, 3)
		probs, novelty, _ := p.PredictNextTo(nil, ev.X, 1, &ws)
		ev.Probs, ev.Parts, ev.Meta, ev.Epoch = append([]float64{}, probs...), ws.AppendParts(nil), u.Meta(probs, novelty), p.Epoch
		events = append(events, ev)
	}
	return events
}

// The parts of a prediction say nothing once the order of labels or the forest is off.
func TestLabelsAfterOtherExperts(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"order": func(cfg *Config) { cfg.Temporal = TemporalOff }, "forest": func(cfg *Config) { cfg.Experts.Forest = NoForest },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(3, "a", "b", "c")
			cfg.Experts.Forest = SmallForest
			l, rng := newTestLearner(t, cfg), rand.New(rand.NewPCG(1, 1))
			feed(l, rng, 300)
			events := late(l, rng, 40)
			state, _ := l.AppendBinary(nil)
			change(&cfg)
			reloaded(t, cfg, state, events, 20)
			off, err := Restore(cfg, state)
			if err != nil {
				t.Fatal(err)
			}
			if off.view.Recall(events[0].Parts, new(model.Workspace)) {
				t.Error("the parts are taken for those of the present experts")
			}
		})
	}
}
