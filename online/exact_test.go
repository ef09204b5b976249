package online

import (
	"fmt"
	"math/rand/v2"
	"testing"

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
