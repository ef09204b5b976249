package online

import (
	"math"
	"math/rand/v2"
	"testing"

	"edge/online/conformal"
	"edge/online/wire"
)

// Sets and abstentions of a stream of events are judged as they were published, late
// or not, over classes that appear; the state carries them.
func TestUncertainty(t *testing.T) {
	cfg := testConfig(3)
	cfg.Abstain.ConfidenceBelow = 0.6
	l := newTestLearner(t, cfg)
	rng := rand.New(rand.NewPCG(9, 9))
	for i := range 1500 {
		ev := blob(rng, 3)
		if i%7 == 6 { // a late label is judged by the rules that were published
			ev.Probs, _, _ = l.Posterior().PredictTo(nil, ev.X, &l.ws)
			ev.Meta = conformal.PredictionMeta{Ruled: true, Abstained: true, Sets: true, Threshold: 50} // all classes
		}
		l.Add(&ev)
	}
	s := l.Scores()
	if s.Sets == nil || s.Sets.N != 1500 || s.Abstained == nil || s.Abstained.N != 1500 {
		t.Fatalf("sets %+v, abstentions %+v", s.Sets, s.Abstained)
	}
	late := float64(1500 / 7)
	if got := (float64(s.Sets.Covered)*1500 - late) / (1500 - late); math.Abs(got-0.9) > 0.01 {
		t.Errorf("coverage %v of the sets that the learner chose, want 0.9", got)
	}
	if kept := float64(s.Abstained.Kept); kept > 1-late/1500 || kept < 0.5 || float64(s.Abstained.Error) >= s.Error {
		t.Errorf("kept %v, error %v of those, %v of all", kept, s.Abstained.Error, s.Error)
	}

	// Another coverage carries on with the window, and begins the integral again.
	state, _ := l.AppendBinary(nil)
	cfg.Conformal.Coverage = 0.8
	other, err := Restore(cfg, state)
	if err != nil {
		t.Fatal(err)
	}
	if was, now := l.Uncertainty(), other.Uncertainty(); now.Threshold != now.Quantile || now.Threshold >= was.Quantile {
		t.Errorf("uncertainty %+v, was %+v", now, was)
	}
	cfg.Conformal.Coverage = 0
	if off, err := Restore(cfg, state); err != nil || off.Uncertainty().Coverage != 0 {
		t.Errorf("without sets: %+v, %v", off.Uncertainty(), err)
	}
}

// A label moves the threshold when its minibatch is closed, by count, by a boundary
// or by a rollback that drops it; a state within a minibatch carries on to the bit.
func TestThresholdWaitsForTheMinibatch(t *testing.T) {
	cfg := testConfig(3)
	l := newTestLearner(t, cfg)
	rng := rand.New(rand.NewPCG(4, 4))
	for i := range 100 {
		before := l.Uncertainty().Threshold
		ev := blob(rng, 3)
		closed := l.Add(&ev).Closed
		if moved := l.Uncertainty().Threshold != before; moved != closed {
			t.Fatalf("after %d labels the threshold moved: %v, and the minibatch was closed: %v", i+1, moved, closed)
		}
		if i%29 != 28 {
			continue
		}
		state, _ := l.AppendBinary(nil)
		twin, err := Restore(cfg, state)
		if err != nil {
			t.Fatal(err)
		}
		pending := l.Pending() > 0
		before = l.Uncertainty().Threshold
		for _, one := range []*Learner{l, twin} {
			one.Add(&Event{Kind: Boundary})
		}
		if l.Digest() != twin.Digest() || (l.Uncertainty().Threshold != before) != pending {
			t.Errorf("after %d labels a restored learner has the threshold %v, want %v", i+1, twin.Uncertainty().Threshold, l.Uncertainty().Threshold)
		}
	}
	state, _ := l.AppendBinary(nil)
	ev := blob(rng, 3)
	l.Add(&ev)
	before := l.Uncertainty().Threshold
	l.Add(&Event{Kind: Replace, Name: OnlyModel, State: state})
	if l.Uncertainty().Threshold == before {
		t.Errorf("the labels of a minibatch that a rollback dropped do not count: threshold %v", before)
	}
}

// Sets that are never empty cover enough, and the threshold stops at 0. The threshold
// of a state of log odds is dropped: it begins at the coverage.
func TestNeverEmptyAndOlderThreshold(t *testing.T) {
	cfg := testConfig(3)
	cfg.Conformal.NeverEmpty = true
	l := newTestLearner(t, cfg)
	feed(l, rand.New(rand.NewPCG(5, 5)), 1500)
	s := l.Scores().Sets
	if s.Empty*1500 > 5.5 || float64(s.Covered) < 0.895 || l.Uncertainty().Threshold < 0 { // empty before the first minibatch, while no class is known
		t.Errorf("sets %+v, threshold %v", s, l.Uncertainty().Threshold)
	}
	var e, body wire.Encoder
	e.Buf = append(e.Buf, stateMagic...)
	e.Uint(stateVersion)
	l.encodeCore(&e)
	body.Float(0.9)
	body.Float(-3.5)
	body.Int(2)
	body.Float32(1.5)
	body.Float32(-2.5)
	body.Int(0)
	e.String("conformal")
	e.Block(body.Buf)
	e.String("")
	old, err := Restore(cfg, e.Buf)
	if err != nil {
		t.Fatal(err)
	}
	if u := old.Uncertainty(); u.Threshold != 0.9 || u.Quantile != 0.9 {
		t.Errorf("after a state of log odds: %+v", u)
	}
}

// Sets go on over classes that are removed and added: a set that was published with
// a class that is gone is judged over the classes that are left, and a class that is
// not known yet is missed.
func TestSetsAcrossClassChanges(t *testing.T) {
	cfg := testConfig(3)
	l := newTestLearner(t, cfg)
	rng := rand.New(rand.NewPCG(6, 6))
	feed(l, rng, 300)
	ev := blob(rng, 3)
	u := l.Uncertainty()
	ev.Label, ev.Epoch = "b", l.Posterior().Epoch
	ev.Probs, _, _ = l.Posterior().PredictTo(nil, ev.X, &l.ws)
	ev.Meta = u.Meta(ev.Probs, 0)
	ev.Meta.Threshold = 1 // every class
	for _, change := range []Event{{Kind: ClassRemove, Label: "a"}, {Kind: ClassAdd, Label: "d"}} {
		if out := l.Add(&change); out.Refused != nil {
			t.Fatal(out.Refused)
		}
	}
	covered := func() float64 { s := l.Coverage(); return math.Round(float64(s.Covered) * float64(s.N)) }
	n, before := l.Coverage().N, covered()
	if l.Add(&ev); l.Coverage().N != n+1 || covered() != before+1 {
		t.Errorf("the published set of all classes: %+v, before %d sets, %v of them with the label", l.Coverage(), n, before)
	}
	ev.Label, ev.Probs = "d", ev.Probs[:1]
	ev.Probs[0], ev.Epoch = 1, l.Posterior().Epoch
	if l.Add(&ev); l.Coverage().N != n+2 || covered() != before+1 {
		t.Errorf("a label that the set could not hold: %+v", l.Coverage())
	}
	feed(l, rng, 300)
	if u := l.Uncertainty(); !(u.Threshold > 0.5 && u.Threshold < 1.5) {
		t.Errorf("after the changes %+v", u)
	}
}

// The rule "same as last label" answers by the label that was known when a sample whose
// label came late was predicted, in the classes of then.
func TestLastLabelWasKnown(t *testing.T) {
	cfg := testConfig(2, "gone", "a", "b")
	l := newTestLearner(t, cfg)
	epoch := l.Posterior().Epoch
	l.Add(&Event{Kind: ClassRemove, Label: "gone"})
	add := func(epoch uint64, last int, label string, classes int) {
		probs := make([]float64, classes)
		for k := range probs {
			probs[k] = 1 / float64(classes)
		}
		ev := Event{Kind: Observe, X: []float64{1, 2}, Label: label, Probs: probs, Epoch: epoch}
		ev.Meta.Last = last
		if out := l.Add(&ev); out.Refused != nil {
			t.Fatal(out.Refused)
		}
	}
	for range 8 { // labels that persist, most of them a
		add(epoch, 2, "a", 3)
	}
	add(epoch, 2, "b", 3)
	now := l.Posterior().Epoch
	for name, c := range map[string]struct {
		epoch uint64
		last  int
		label string
		wrong float64 // −1: the rule is that of the class prior
	}{
		"repeated":                {epoch, 3, "b", 0},
		"another":                 {epoch, 3, "a", 1},
		"in the present classes":  {now, 2, "b", 0},
		"its class was removed":   {epoch, 1, "b", -1},
		"no label was known":      {now, 0, "a", -1},
		"no class of that number": {now, 900, "a", -1},
	} {
		before := l.Scores()
		add(c.epoch, c.last, c.label, map[uint64]int{epoch: 3, now: 2}[c.epoch])
		after := l.Scores()
		n := float64(after.N)
		wrong := math.Round(n*after.Last.Error - (n-1)*before.Last.Error)
		rule, prior := n*after.Last.NLL-(n-1)*before.Last.NLL, n*after.Prior.NLL-(n-1)*before.Prior.NLL
		if c.wrong >= 0 && wrong != c.wrong || (math.Abs(rule-prior) < 1e-9) != (c.wrong < 0) {
			t.Errorf("%s: wrong %v, want %v; log loss %.4f, that of the prior %.4f", name, wrong, c.wrong, rule, prior)
		}
	}
}
