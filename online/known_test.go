package online

import (
	"math/rand/v2"
	"testing"
)

// A stream of labels that were known before their samples leaves the order of labels as
// it was, and is judged without it: it equals a stream under temporal: off, whose
// sample scores and answers it has, although every label repeats the one before.
func TestKnownLabelsHaveNoOrder(t *testing.T) {
	cfg := testConfig(3, "a", "b", "c")
	off := cfg
	off.Temporal = TemporalOff
	known, plain := newTestLearner(t, cfg), newTestLearner(t, off)
	rng := rand.New(rand.NewPCG(5, 5))
	for i := range 300 {
		ev := blob(rng, 3)
		ev.Label = []string{"a", "b", "c"}[i/40%3]
		plain.Add(&ev)
		ev.Known = true
		known.Add(&ev)
	}
	if o := known.Posterior().Pool.Order; o.Labels != 0 || o.Last >= 0 {
		t.Errorf("the order has %d labels, the last %d", o.Labels, o.Last)
	}
	a, b := known.Scores(), plain.Scores()
	if a.N != b.N || a.Error != b.Error {
		t.Errorf("error %g of %d samples, want %g of %d", a.Error, a.N, b.Error, b.N)
	}
}

// A held sample of a new label is known before it also after a restart.
func TestKnownHeldSampleRestored(t *testing.T) {
	cfg := testConfig(3, "a", "b")
	cfg.Classes.Confirm = 3
	l := newTestLearner(t, cfg)
	rng := rand.New(rand.NewPCG(6, 6))
	for range 2 {
		ev := blob(rng, 3)
		ev.Label, ev.Known = "new", true
		l.Add(&ev)
	}
	state, err := l.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Restore(cfg, state)
	if err != nil {
		t.Fatal(err)
	}
	ev := blob(rng, 3)
	ev.Label, ev.Known = "new", true
	for _, of := range []*Learner{l, r} {
		if out := of.Add(&ev); out.ClassAdded != "new" {
			t.Fatalf("outcome %+v", out)
		}
	}
	if n := r.Posterior().Pool.Order.Labels; n != 0 || l.Digest() != r.Digest() {
		t.Errorf("the order has %d labels; digests %s, %s", n, l.Digest(), r.Digest())
	}
}
