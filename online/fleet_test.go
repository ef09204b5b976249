package online

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/online/fleet"
	"edge/test/fleettest"
)

// fleetConfig is small enough for many learners in one test.
func fleetConfig() Config {
	cfg := DefaultConfig()
	cfg.Inducing, cfg.Window, cfg.Features = 12, 60, []string{"a", "b"}
	cfg.Experts.Forest = NoForest
	return cfg
}

// ring draws a sample of one of some classes, which lie on a circle.
func ring(rng *rand.Rand, classes []string) Event {
	k := rng.IntN(len(classes))
	var at int
	fmt.Sscanf(classes[k], "c%d", &at)
	return Event{Kind: Observe, X: []float64{circle[at][0] + 0.5*rng.NormFloat64(), circle[at][1] + 0.5*rng.NormFloat64()}, Label: classes[k]}
}

var circle = [...][2]float64{{1, 0}, {0, 1}, {-1, 0}, {0, -1}}

// taught returns a learner that has learnt n samples of these classes.
func taught(t testing.TB, cfg Config, seed uint64, n int, classes ...string) *Learner {
	t.Helper()
	l, err := NewLearner(cfg)
	if err != nil {
		t.Fatal(err)
	}
	teach(l, seed, n, classes...)
	return l
}

func teach(l *Learner, seed uint64, n int, classes ...string) {
	for _, ev := range samples(seed, n, classes...) {
		l.Add(&ev)
	}
}

// samples draws n labelled samples of these classes.
func samples(seed uint64, n int, classes ...string) (all []Event) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for range n {
		all = append(all, ring(rng, classes))
	}
	return all
}

func contribution(t testing.TB, l *Learner, member string, sequence uint64) *fleet.Contribution {
	t.Helper()
	c, err := l.Contribution(member)
	if err != nil {
		t.Fatal(err)
	}
	c.Version = fleet.Version{Epoch: 1, Sequence: sequence}
	if c, err = fleet.Decode(fleettest.Encode(t, c)); err != nil {
		t.Fatal(err)
	}
	return c
}

func merged(t *testing.T, l *Learner, set *fleet.Set) *fleet.Merge {
	t.Helper()
	m, err := l.Merge("own", set)
	if err != nil {
		t.Fatal(err)
	}
	ev := MergeEvent(m)
	if out := l.Add(&ev); out.Refused != nil {
		t.Fatal(out.Refused)
	}
	return m
}

func stateOf(l *Learner) []byte {
	data, _ := l.AppendBinary(nil)
	return data
}

// A learner's own posterior and parameters are the same to the last bit with and without
// a fleet, although the parameters are learnt and merges come within a minibatch, and its
// contribution is, but for the exponents. The answer without the fleet is that of the learner
// alone, and goes on when the fleet ends.
func TestFleetLeavesTheOwnPosterior(t *testing.T) {
	cfg, all := fleetConfig(), []string{"c0", "c1", "c2", "c3"}
	set := fleet.NewSet(0)
	for i := range 3 {
		set.Put(contribution(t, taught(t, cfg, uint64(10+i), 300, all...), fmt.Sprint("m", i), 1))
	}
	alone, with := taught(t, cfg, 1, 100, all...), taught(t, cfg, 1, 100, all...)
	for round := range 6 {
		if m := merged(t, with, set); m.Taken() == 0 {
			t.Fatalf("nobody was taken: %+v", m.Members)
		}
		for _, l := range []*Learner{alone, with} {
			teach(l, uint64(100+round), 105, all...)
		}
		if with.Pending() == 0 {
			t.Fatal("a merge comes between minibatches: the test shows less")
		}
	}
	answers := func(own func(probs []float64) []float64) (worst float64) {
		for _, ev := range samples(7, 50, all...) {
			want, _, _ := alone.view.PredictTo(nil, ev.X, &alone.ws)
			got, _, _ := with.view.PredictTo(nil, ev.X, &with.ws)
			for k, v := range own(got) {
				worst = max(worst, math.Abs(v-want[k]))
			}
		}
		return worst
	}
	if miss := answers(func([]float64) []float64 { _, own, _ := with.ws.Own(); return own }); miss > 1e-5 { // the floor of an expert is 1e-6
		t.Errorf("the answer without the fleet is %g beside that of a learner alone", miss)
	}
	if answers(func(probs []float64) []float64 { return probs }) < 1e-3 {
		t.Error("the fleet changes no answer: the test shows nothing")
	}
	if weight := with.view.FleetWeight(); weight < 0.01 {
		t.Errorf("the fleet has the weight %g: the test shows nothing", weight)
	}
	if a, b := alone.bank.Params().Theta, with.bank.Params().Theta; !slices.Equal(a, b) {
		t.Error("the parameters differ")
	}
	a, b := contribution(t, alone, "x", 1), contribution(t, with, "x", 1)
	if a.Exponents() != nil || b.Exponents() == nil {
		t.Error("a learner in a fleet alone teaches exponents")
	}
	b.SetExponents(nil)
	if !bytes.Equal(fleettest.Encode(t, a), fleettest.Encode(t, b)) {
		t.Error("the contributions differ")
	}
	for h := range cfg.Horizons {
		if !slices.Equal(alone.view.Bank[h].Mean, with.view.Bank[h].Mean) {
			t.Errorf("the posterior of horizon %d differs", h)
		}
	}
	merged(t, with, fleet.NewSet(0))
	if miss := answers(func(probs []float64) []float64 { return probs }); miss > 1e-12 {
		t.Errorf("after the fleet an answer is %g beside that of a learner alone", miss)
	}
}

// A state holds the whole part in a fleet: the learner that is restored from it goes on
// to the same bytes, in the warm-up, where a guest answers, and after it, and across the
// end of the warm-up; and so does a replay of the events alone.
func TestFleetIsRestored(t *testing.T) {
	cfg, all := fleetConfig(), []string{"c0", "c1", "c2", "c3"}
	set := fleet.NewSet(0)
	for i := range 3 {
		set.Put(contribution(t, taught(t, cfg, uint64(10+i), 300, all...), fmt.Sprint("m", i), 1))
	}
	for name, first := range map[string]int{"no label": 0, "few labels": 37, "after the warm-up": 120} {
		t.Run(name, func(t *testing.T) {
			live := taught(t, cfg, 1, first, all[:3]...)
			merged(t, live, set)
			teach(live, 3, 5, all[:3]...)
			again, err := Restore(cfg, stateOf(live))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(stateOf(live), stateOf(again)) {
				t.Fatal("the restored learner has another state")
			}
			x := []float64{0.3, 0.4}
			for part := range 8 {
				a, _ := live.Predict(x)
				b, _ := again.Predict(x)
				if !slices.Equal(a.Probs, b.Probs) {
					t.Fatalf("part %d: predictions %v, restored %v", part, a.Probs, b.Probs)
				}
				for _, l := range []*Learner{live, again} {
					teach(l, uint64(20+part), 23, all...)
				}
				if part == 4 {
					merged(t, live, set)
					merged(t, again, set)
				}
				if !bytes.Equal(stateOf(live), stateOf(again)) {
					t.Fatalf("part %d: the states differ", part)
				}
			}
			if live.view.Fleet == nil || live.view.Fleet.Horizons != 3 {
				t.Errorf("the fleet has ended: %+v", live.view.Fleet)
			}
		})
	}
}

// fleetOf returns the contributions of n members that have learnt these classes.
func fleetOf(t testing.TB, cfg Config, n int, classes ...string) *fleet.Set {
	t.Helper()
	set := fleet.NewSet(0)
	for i := range n {
		set.Put(contribution(t, taught(t, cfg, uint64(10+i), 300, classes...), fmt.Sprint("m", i), 1))
	}
	return set
}

// correctly is the share of samples of these classes for which the learner says the class.
func correctly(t *testing.T, l *Learner, classes ...string) float64 {
	t.Helper()
	rng, right := rand.New(rand.NewPCG(8, 8)), 0
	for range 200 {
		ev := ring(rng, classes)
		p, err := l.Predict(ev.X)
		if err != nil {
			t.Fatal(err)
		}
		if p.Class == ev.Label {
			right++
		}
	}
	return float64(right) / 200
}

// A learner without a label answers by the members at once, and so does a follower.
func TestNewcomerAnswersBeforeItsFirstLabel(t *testing.T) {
	cfg, all := fleetConfig(), []string{"c0", "c1", "c2", "c3"}
	set := fleetOf(t, cfg, 2, all...)
	l := taught(t, cfg, 1, 0)
	merged(t, l, set)
	if got := correctly(t, l, all...); got < 0.8 {
		t.Errorf("a newcomer is right for %g of the samples", got)
	}
	p, m, err := Follow(cfg, "own", set)
	if err != nil || m.Taken() != 2 || !slices.Equal(p.Classes(), all) {
		t.Fatalf("follower: %v, %d members, classes %q", err, m.Taken(), p.Classes())
	}
	x := []float64{1, 0}
	follower, _, _ := p.PredictTo(nil, x, &l.ws)
	if got, _ := l.Predict(x); got.Class != "c0" || follower[0] < 0.5 {
		t.Errorf("the newcomer says %s, the follower %.3f", got.Class, follower)
	}
	wrong := taught(t, cfg, 3, 32, all...) // two minibatches
	before := wrong.view.N
	merged(t, wrong, set)
	if wrong.view.N != before || wrong.WarmedUp() {
		t.Error("a merge counts as labels")
	}
}

// Once the last member is gone, the learner predicts as if there had never been one.
func TestFleetLeavesNoTrace(t *testing.T) {
	cfg, all := fleetConfig(), []string{"c0", "c1", "c2", "c3"}
	set := fleetOf(t, cfg, 2, all...)
	alone, with := taught(t, cfg, 1, 144, all...), taught(t, cfg, 1, 144, all...)
	merged(t, with, set)
	set.Remove("m0")
	set.Remove("m1")
	merged(t, with, set)
	x := []float64{0.4, 0.5}
	a, _, _ := alone.view.PredictTo(nil, x, &alone.ws)
	b, _, _ := with.view.PredictTo(nil, x, &with.ws)
	if with.view.Fleet != nil || len(with.view.Bank) != len(cfg.Horizons) {
		t.Error("the fleet's horizons are still there")
	}
	var diff float64
	for k := range a {
		diff = max(diff, a[k]-b[k], b[k]-a[k])
	}
	if diff > 1e-12 { // the blend's exponents went to the fleet and came back
		t.Errorf("predictions differ by %g", diff)
	}
}

// A merge that does not fit, or is damaged, changes nothing.
func TestMergeIsRefused(t *testing.T) {
	cfg, all := fleetConfig(), []string{"c0", "c1"}
	l := taught(t, cfg, 1, 144, all...)
	other := cfg
	other.Features = []string{"a", "b", "c"}
	before := stateOf(l)
	wide, err := NewLearner(other)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		wide.Add(&Event{Kind: Observe, X: []float64{float64(i), 1, 2}, Label: all[i%2]})
	}
	set := fleet.NewSet(0)
	set.Put(contribution(t, wide, "wide", 1))
	if m, err := l.Merge("own", set); err != nil || m.Taken() != 0 || m.Members[0].Refused != fleet.OtherInputs {
		t.Errorf("a contribution of other features: %+v, %v", m, err)
	}
	foreign, err := wide.Merge("own", set)
	if err != nil {
		t.Fatal(err)
	}
	ev := MergeEvent(foreign)
	damaged := ev
	damaged.State = slices.Clone(ev.State)
	damaged.State[40] ^= 1
	for name, ev := range map[string]*Event{"of other features": &ev, "damaged": &damaged} {
		if out := l.Add(ev); out.Refused == nil {
			t.Errorf("a merge %s is accepted", name)
		}
	}
	if !bytes.Equal(before, stateOf(l)) {
		t.Error("a refused merge has changed the state")
	}
}

// Contributions and merges through a loop, with labels between proposal and event, end in
// the bytes of a replay of the records alone.
func TestMergesAreReplayed(t *testing.T) {
	for _, unseen := range []Unseen{ReportUnseen, MixUnseen} {
		t.Run(string(unseen), func(t *testing.T) { replayMerges(t, fleetConfig(), unseen) })
	}
	t.Run("with forests", func(t *testing.T) { replayMerges(t, forestFleetConfig(), ReportUnseen) })
}

func replayMerges(t *testing.T, cfg Config, unseen Unseen) {
	all := []string{"c0", "c1", "c2"}
	set := fleetOf(t, cfg, 2, "c0", "c1", "c2", "c3")
	cfg.Fleet.Unseen = unseen
	live, rng := taught(t, cfg, 1, 0), rand.New(rand.NewPCG(5, 1))
	var records []Record
	add := func(ev Event) {
		records = append(records, Record{Seq: uint64(len(records) + 1), Event: ev})
		if out := live.Add(&ev); out.Refused != nil {
			t.Fatal(out.Refused)
		}
	}
	for i := range 300 {
		if i%40 == 0 {
			m, err := live.Merge("own", set)
			if err != nil {
				t.Fatal(err)
			}
			for range 10 { // come while the merge is on its way to the journal
				add(ring(rng, all))
			}
			add(MergeEvent(m))
		}
		add(ring(rng, all))
		if i == 150 {
			add(Event{Kind: Correct, X: records[len(records)-1].X, Name: records[len(records)-1].Label, Label: "c0"})
			add(Event{Kind: ClassRename, Label: "c1", Name: "other"})
		}
		switch i {
		case 30, 230: // in the warm-up and after it
			add(Event{Kind: ClassRemove, Label: "c2"})
			add(Event{Kind: ClassAdd, Label: "declared"})
			add(Event{Kind: ClassRemove, Label: "declared"})
		}
		if i%50 == 49 {
			again, err := Restore(cfg, stateOf(live))
			if err != nil || again.Digest() != live.Digest() {
				t.Fatalf("after %d labels another state is restored: %v", i, err)
			}
			ev := ring(rng, all)
			a, _ := live.Predict(ev.X)
			if b, _ := again.Predict(ev.X); !slices.Equal(a.Probs, b.Probs) {
				t.Fatalf("after %d labels the restored learner predicts otherwise", i)
			}
		}
	}
	again, refused, err := Replay(func() (*Learner, error) { return NewLearner(cfg) }, records)
	if err != nil || len(refused) > 0 {
		t.Fatal(err, refused)
	}
	if live.Digest() != again.Digest() {
		t.Error("the replay ends in another state")
	}
	if f := live.view.Fleet; f.Members != 2 || f.Guest != nil || live.view.FleetWeight() <= 0 || live.bank.Counts.JoinedDropped != 0 {
		t.Errorf("%d members, weight %g, %d sums dropped", f.Members, live.view.FleetWeight(), live.bank.Counts.JoinedDropped)
	}
}

// A newcomer believes members whose answers its labels confirm, and no others, also where
// labels come late.
func TestNewcomerWithLateLabels(t *testing.T) {
	cfg, all := fleetConfig(), []string{"c0", "c1", "c2", "c3"}
	set := fleet.NewSet(0)
	for i := range 2 {
		set.Put(contribution(t, taught(t, cfg, uint64(10+i), 300, all...), fmt.Sprint("m", i), 1))
	}
	for _, right := range []bool{true, false} {
		l := taught(t, cfg, 1, 0)
		merged(t, l, set)
		for i, ev := range samples(5, 40, all...) {
			probs, _, err := l.view.PredictTo(nil, ev.X, &l.ws)
			if err != nil {
				t.Fatal(err)
			}
			ev.Probs, ev.Parts, ev.Epoch = probs, l.ws.AppendParts(nil), l.view.Epoch
			if !right {
				ev.Label = all[(i+slices.Index(all, ev.Label))%len(all)]
			}
			if out := l.Add(&ev); out.Refused != nil {
				t.Fatal(out.Refused)
			}
		}
		if weight := l.view.FleetWeight(); l.WarmedUp() || right != (weight > 0.5) {
			t.Errorf("labels that agree with the members: %v; their weight is %v", right, weight)
		}
	}
}

// What a fleet knows about a class counts from its first own sample on, also where that is
// filtered: a model that was restored in between learns the next ones alike.
func TestNewClassOfTheFleet(t *testing.T) {
	cfg, all := fleetConfig(), []string{"c0", "c1", "c2"}
	l := taught(t, cfg, 1, 304, all[:2]...)
	merged(t, l, fleetOf(t, cfg, 2, all...))
	for i, ev := range samples(3, 6, all[2]) {
		l.Add(&ev)
		l.Add(&Event{Kind: Boundary})
		again := restored(t, cfg, l)
		for f := range l.fleet.own {
			at := len(cfg.Horizons) + f
			if !slices.Equal(l.view.Bank[at].U, again.view.Bank[at].U) || !slices.Equal(l.view.Bank[at].Mean, again.view.Bank[at].Mean) {
				t.Fatalf("after %d samples of the new class the fleet's posterior %d is another one than after a restart", i+1, f)
			}
		}
	}
}
