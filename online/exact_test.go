package online

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"edge/model"
	"edge/online/drift"
	"edge/online/fleet"
)

// goesOn compares a learner with one that is restored from its state, now and after more
// samples.
func goesOn(t *testing.T, cfg Config, live *Learner, more []Event) {
	t.Helper()
	again, err := Restore(cfg, stateOf(live))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		if live.Digest() != again.Digest() {
			t.Fatalf("digests differ after %d more samples", i)
		}
		if i == len(more) {
			return
		}
		live.Add(&more[i])
		again.Add(&more[i])
	}
}

// A learner in its warm-up beside a guest goes on exactly, before its minibatch is closed.
func TestBesideAGuestExactly(t *testing.T) {
	cfg := fleetConfig()
	cfg.Experts.Forest = SmallForest
	set := fleet.NewSet(0)
	for i := range 2 {
		set.Put(contribution(t, taught(t, cfg, uint64(10+i), 300, "c0", "c1", "c2"), fmt.Sprint("m", i), 1))
	}
	t.Run("a new class", func(t *testing.T) {
		l := taught(t, cfg, 1, 34, "c0", "c1")
		merged(t, l, set)
		l.Add(&Event{Kind: Observe, X: []float64{0, -1}, Label: "c3"})
		goesOn(t, cfg, l, samples(50, 12, "c0", "c1", "c3"))
	})
	t.Run("a correction to a label that is not confirmed", func(t *testing.T) {
		cfg := cfg
		cfg.Classes.Confirm = 3
		l := taught(t, cfg, 1, 36, "c0", "c1")
		merged(t, l, set)
		s := samples(1, 1, "c0", "c1")[0]
		l.Add(&Event{Kind: Correct, X: s.X, Name: s.Label, Label: "typo"})
		goesOn(t, cfg, l, samples(50, 6, "c0", "c1"))
	})
}

// A forest of another size, which the configuration gives a member of a fleet, ends the joint
// exponents of the blends; what their weights are then is what a state says.
func TestAnotherForestExactly(t *testing.T) {
	cfg, all := fleetConfig(), []string{"c0", "c1", "c2"}
	cfg.Experts.Forest = SmallForest
	set := fleet.NewSet(0)
	var members []*Learner
	for i := range 3 {
		members = append(members, taught(t, cfg, uint64(10+i), 300, all...))
		set.Put(contribution(t, members[i], fmt.Sprint("m", i), 1))
	}
	for i, l := range members { // the exponents' evidence begins with a fleet
		merged(t, l, set)
		teach(l, uint64(20+i), 100, all...)
		set.Put(contribution(t, l, fmt.Sprint("m", i), 2))
	}
	l := members[0]
	merged(t, l, set)
	teach(l, 30, 100, all...)
	cfg.Experts.Forest = FullForest
	l, err := Restore(cfg, stateOf(l))
	if err != nil {
		t.Fatal(err)
	}
	goesOn(t, cfg, l, samples(50, 40, all...))
}

// A label that was known before its sample is not in an order that is off.
func TestKnownLabelExactly(t *testing.T) {
	cfg := testConfig(3, "a", "b", "c")
	cfg.Temporal = TemporalOff
	l, rng := newTestLearner(t, cfg), rand.New(rand.NewPCG(1, 2))
	feed(l, rng, 40)
	a, b := blob(rng, 3), blob(rng, 3)
	a.Label, b.Label, b.Known = "a", "b", true
	l.Add(&a)
	l.Add(&b)
	goesOn(t, cfg, l, nil)
}

// A sample that waits for the confirmation of its label has its features as a state keeps them.
func TestHeldSampleExactly(t *testing.T) {
	cfg := testConfig(3, "a", "b", "c")
	cfg.Classes.Confirm = 2
	l, rng := newTestLearner(t, cfg), rand.New(rand.NewPCG(1, 2))
	feed(l, rng, 60)
	ev := Event{Kind: Observe, X: []float64{1e200, 1, 2}, Label: "new"}
	l.Add(&ev)
	goesOn(t, cfg, l, []Event{ev})
}

// randomConfig draws a small learner of any kind.
func randomConfig(rng *rand.Rand) Config {
	cfg := fleetConfig()
	cfg.Seed, cfg.Inducing = rng.Uint64(), 6+rng.IntN(7)
	cfg.Window, cfg.Batch.MaxSize = pick(rng, 0, 3, 12, 30), pick(rng, 1, 2, 5, 16)
	cfg.Horizons = pick(rng, []Horizon{Horizon(math.Inf(1)), 500, 100}, []Horizon{50}, []Horizon{Horizon(math.Inf(1)), 10})
	cfg.Classes.Names, cfg.Classes.Max, cfg.Classes.Confirm = pick(rng, nil, []string{"c0", "c1"}), pick(rng, 4, 9), 1+rng.IntN(3)
	cfg.LearningRate, cfg.Gradient, cfg.Track = pick(rng, 0, 0.02, 0.5), pick(rng, 0, 16), pick(rng, 0., 30)
	cfg.Temporal = pick(rng, TemporalOff, TemporalAuto, TemporalOn)
	cfg.Experts = Experts{Regression: pick(rng, On, Off), Forest: pick(rng, NoForest, SmallForest)}
	cfg.ClassWeights.Mode, cfg.Conformal.Coverage = pick(rng, Unweighted, Balanced), pick(rng, 0, 0.9)
	cfg.Drift.Detector, cfg.Drift.Action = pick(rng, drift.ADWIN, drift.PageHinkley, drift.Off), pick(rng, drift.ActionForget, drift.ActionReseed, drift.ActionNone)
	cfg.Drift.Cooldown, cfg.Drift.Delta, cfg.Drift.Lambda = 20, 0.3, 3
	cfg.Fleet.Unseen, cfg.Fleet.Shared = pick(rng, ReportUnseen, MixUnseen), rng.IntN(2) == 0
	return cfg
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// randomEvent draws an event for a learner, of samples that it has learnt too, and with
// merges of members, who learn as well.
func randomEvent(t *testing.T, rng *rand.Rand, l *Learner, members []*Learner, learnt []Event) Event {
	labels := []string{"c0", "c1", "c2", "c3", "c4"}
	ev := ring(rng, labels[:3])
	ev.Weight, ev.Known = pick(rng, 0, 0, 0, 0.01, 100), rng.IntN(6) == 0
	if rng.IntN(6) == 0 {
		ev.X[0] = pick(rng, math.NaN(), 1e300, -1e-300)
	}
	switch n := rng.IntN(100); {
	case n < 6:
		ev.Label = pick(rng, labels...)
	case n < 14:
		var ws model.Workspace
		post := l.Posterior()
		probs, novelty, _ := post.PredictNextTo(nil, ev.X, rng.IntN(3), &ws)
		u := l.Uncertainty()
		ev.Probs, ev.Epoch, ev.Meta = append([]float64{}, probs...), post.Epoch, u.Meta(probs, novelty)
		if rng.IntN(3) > 0 {
			ev.Parts = ws.AppendParts(nil)
		}
	case n < 16:
		return Event{Kind: Boundary}
	case n < 20:
		return Event{Kind: pick(rng, ClassAdd, ClassRemove), Label: pick(rng, labels...)}
	case n < 22:
		return Event{Kind: ClassRename, Label: pick(rng, labels...), Name: pick(rng, labels...)}
	case n < 28 && len(learnt) > 0:
		ev = learnt[max(0, len(learnt)-1-rng.IntN(30))]
		ev.Kind, ev.Name, ev.Label = Correct, ev.Label, pick(rng, labels...)
	case n < 34:
		set := fleet.NewSet(0)
		for i, m := range members {
			teach(m, rng.Uint64(), rng.IntN(30), labels[:3]...)
			if _, err := m.Contribution("m"); err == nil && rng.IntN(4) > 0 {
				set.Put(contribution(t, m, fmt.Sprint("m", i), rng.Uint64()))
			}
		}
		set.Vacant, set.Settled, set.Tag = rng.IntN(2) == 0, rng.IntN(4) == 0, rng.Uint64()
		if m, err := l.Merge("own", set); err == nil {
			return MergeEvent(m)
		}
	case n == 34 && rng.IntN(6) == 0:
		return Event{Kind: Reset}
	}
	return ev
}

// A learner of any kind goes on exactly from its state, whatever happens to it.
func TestRandomLearnersExactly(t *testing.T) {
	seeds := uint64(12)
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 771))
		cfg := randomConfig(rng)
		straight, broken := newTestLearner(t, cfg), newTestLearner(t, cfg)
		members := []*Learner{taught(t, cfg, rng.Uint64(), 100, "c0", "c1", "c2"), taught(t, cfg, rng.Uint64(), 60, "c1", "c2")}
		var learnt []Event
		for i := range 300 {
			ev := randomEvent(t, rng, straight, members, learnt)
			for j := range ev.X { // a sensor is replaced
				if seed%2 == 0 && i >= 150 && ev.Kind == Observe {
					ev.X[j] = 3*ev.X[j] + 100
				}
			}
			if ev.Kind == Observe {
				learnt = append(learnt, ev)
			}
			straight.Add(&ev)
			broken.Add(&ev)
			if rng.IntN(8) > 0 {
				continue
			}
			var err error
			if broken, err = Restore(cfg, stateOf(broken)); err != nil {
				t.Fatalf("seed %d after %d events, %+v: %v", seed, i+1, cfg, err)
			}
			if straight.Digest() != broken.Digest() {
				t.Fatalf("seed %d: digests differ after %d events, the last of kind %d: %+v", seed, i+1, ev.Kind, cfg)
			}
		}
		checkSound(t, straight)
	}
}
