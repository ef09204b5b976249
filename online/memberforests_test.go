package online

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model"
	"edge/online/fleet"
	"edge/test/fleettest"
)

func forestFleetConfig() Config {
	cfg := fleetConfig()
	cfg.Experts.Forest = SmallForest
	return cfg
}

// The forests of members answer together with the own one. The own forest and the sites that
// a learner contributes are the same to the last bit as without them; the forest that it
// contributes has the same partitions, and weights that are tuned to the mean.
func TestMemberForestsLeaveTheOwnForest(t *testing.T) {
	cfg, all := forestFleetConfig(), []string{"c0", "c1", "c2", "c3"}
	set := fleetOf(t, cfg, 2, all...)
	alone, with := taught(t, cfg, 1, 144, all...), taught(t, cfg, 1, 144, all...)
	if m := merged(t, with, set); len(m.Forests) != 2 {
		t.Fatalf("%d forests of 2 members", len(m.Forests))
	}
	for _, l := range []*Learner{alone, with} {
		teach(l, 7, 160, all...)
	}
	if s := with.view.Pool.Stack.Members; s == nil || len(s.All) != 2 || s.Own != 304 || s.All[0].Weight != 288 {
		t.Fatalf("members' forests: %+v", s)
	}
	if share := with.mix.ForestShare(); !(share > 0.05 && share < 1) || share == 0.5 {
		t.Errorf("the members' forests have the share %g", share)
	}
	if a, b := alone.view.Pool.Stack.Forest, with.view.Pool.Stack.Forest; !slices.Equal(a.Weights, b.Weights) || !slices.Equal(a.Nodes, b.Nodes) {
		t.Error("the own forest differs")
	}
	a, b := contribution(t, alone, "x", 1), contribution(t, with, "x", 1)
	if own, tuned := a.Forest(), b.Forest(); own == nil || tuned == nil || !slices.Equal(own.Nodes, tuned.Nodes) || slices.Equal(own.Weights, tuned.Weights) {
		t.Error("the contributed forest is not there, has other partitions, or is not tuned")
	}
	b.SetExponents(nil)
	a.SetForest(nil)
	b.SetForest(nil)
	if !bytes.Equal(fleettest.Encode(t, a), fleettest.Encode(t, b)) {
		t.Error("the contributed sites differ")
	}
	set.Remove("m0")
	merged(t, with, set)
	if s := with.view.Pool.Stack.Members; len(s.All) != 1 {
		t.Errorf("%d forests of 1 member", len(s.All))
	}
	set.Remove("m1")
	merged(t, with, set)
	if s := with.view.Pool.Stack; s.Members != nil || s.Tuned != nil || len(with.fleet.forests) > 0 || with.mix.ForestShare() != 0.5 {
		t.Errorf("members' forests without members: %+v", s.Members)
	}
}

// The event of a merge brings its forests along; one that has the encoded merge alone, as
// from a journal, leads to the same state.
func TestForestsOfAMergeEvent(t *testing.T) {
	cfg, all := forestFleetConfig(), []string{"c0", "c1", "c2", "c3"}
	set := fleetOf(t, cfg, 2, all...)
	for name, labels := range map[string]int{"warm-up": 37, "after it": 144} {
		live, replayed := taught(t, cfg, 1, labels, all...), taught(t, cfg, 1, labels, all...)
		m, err := live.Merge("own", set)
		if err != nil {
			t.Fatal(err)
		}
		event := MergeEvent(m)
		live.Add(&event)
		event.forests = nil
		replayed.Add(&event)
		if len(m.Forests) != 2 || len(live.fleet.forests) != 2 || live.fleet.forests[0].Forest != m.Forests[0].Forest {
			t.Errorf("%s: the learner has not taken over the forests of the merge", name)
		}
		if replayed.fleet.forests[0].Forest == m.Forests[0].Forest {
			t.Errorf("%s: the encoded forests were not read", name)
		}
		for _, l := range []*Learner{live, replayed} {
			teach(l, 7, 60, all...)
		}
		if !bytes.Equal(stateOf(live), stateOf(replayed)) {
			t.Errorf("%s: the states differ", name)
		}
	}
}

// A state holds the forests of members: the restored learner goes on to the same bytes,
// in the warm-up, across its end and after it, and after the classes have changed.
func TestMemberForestsAreRestored(t *testing.T) {
	cfg, all := forestFleetConfig(), []string{"c0", "c1", "c2", "c3"}
	set := fleetOf(t, cfg, 2, all...)
	for name, first := range map[string]int{"no label": 0, "few labels": 37, "after the warm-up": 120} {
		t.Run(name, func(t *testing.T) {
			live := taught(t, cfg, 1, first, all[:3]...)
			merged(t, live, set)
			teach(live, 3, 5, all[:3]...)
			var again *Learner
			for part := range 6 {
				if part%2 == 0 {
					var err error
					if again, err = Restore(cfg, stateOf(live)); err != nil {
						t.Fatal(err)
					}
				}
				if !bytes.Equal(stateOf(live), stateOf(again)) {
					t.Fatalf("part %d: the states differ", part)
				}
				for _, l := range []*Learner{live, again} {
					if part == 3 {
						rename, remove := Event{Kind: ClassRename, Label: "c0", Name: "d0"}, Event{Kind: ClassRemove, Label: "c1"}
						l.Add(&rename)
						if out := l.Add(&remove); out.Refused != nil {
							t.Fatal(out.Refused)
						}
					}
					teach(l, uint64(20+part), 23, all...)
				}
				x := []float64{0.3, 0.4}
				if f := again.view.Fleet; f.Guest != nil && (f.Guest.Pool.Stack.Members == nil || len(f.Guest.Pool.Stack.Members.All) != 2) {
					t.Fatalf("part %d: the guest has lost the forests", part)
				}
				a, _ := live.Predict(x)
				b, _ := again.Predict(x)
				if !slices.Equal(a.Probs, b.Probs) || !slices.Equal(stateOf(live), stateOf(again)) {
					t.Fatalf("part %d: predictions %v, restored %v", part, a.Probs, b.Probs)
				}
			}
			s := live.view.Pool.Stack.Members
			if s == nil || len(s.All) != 2 {
				t.Fatal("the members' forests are gone")
			}
			var want []int // c0 is renamed and known by its old name, c1 was removed and has come again
			for _, name := range live.fleet.forests[0].Classes {
				k, known := live.classes.index[name]
				if !known {
					k = -1
				}
				want = append(want, k)
			}
			if !slices.Equal(s.All[0].Index, want) {
				t.Errorf("the classes of a member are %v, want %v", s.All[0].Index, want)
			}
		})
	}
}

// A state with the forests of members is read without a forest in the configuration, and
// without a configuration.
func TestMemberForestsAndConfigurations(t *testing.T) {
	cfg, all := forestFleetConfig(), []string{"c0", "c1", "c2", "c3"}
	live := taught(t, cfg, 1, 150, all...)
	merged(t, live, fleetOf(t, cfg, 2, all...))
	for size, members := range map[ForestSize]int{NoForest: 0, FullForest: 2, StoredForest: 2} {
		other := cfg
		other.Experts.Forest = size
		l, err := Restore(other, stateOf(live))
		if err != nil {
			t.Fatal(err)
		}
		if s := l.view.Pool.Stack.Members; (s == nil) != (members == 0) || s != nil && len(s.All) != members {
			t.Errorf("forest %q: %+v", size, s)
		}
		teach(l, 9, 40, all...)
		again, err := Restore(other, stateOf(l))
		if err != nil || !bytes.Equal(stateOf(l), stateOf(again)) {
			t.Errorf("forest %q: another state (%v)", size, err)
		}
		if size == StoredForest && !bytes.Equal(stateOf(live), stateOf(restored(t, other, live))) {
			t.Error("a reader without the configuration has another state")
		}
	}
	data := stateOf(live)
	for i := 0; i < len(data); i += len(data) / 20 {
		if _, err := Restore(cfg, data[:i]); err == nil {
			t.Fatalf("the first %d bytes are a state", i)
		}
	}
}

func restored(t *testing.T, cfg Config, l *Learner) *Learner {
	t.Helper()
	again, err := Restore(cfg, stateOf(l))
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// A forest that is far too sure, and errs, is left out of a merge, and the sites of its member stay; one
// that says the opposite takes its member along.
func TestForestIsRefused(t *testing.T) {
	cfg, all := forestFleetConfig(), []string{"c0", "c1", "c2", "c3"}
	for factor, members := range map[float32]int{40: 3, -1: 2} {
		set := fleetOf(t, cfg, 2, all...)
		liar := contribution(t, taught(t, cfg, 13, 300, all...), "m2", 1)
		f := liar.Forest()
		for i := range f.Weights {
			f.Weights[i] *= factor
		}
		liar.SetForest(f)
		set.Put(liar)
		m := merged(t, taught(t, cfg, 101, 144, all...), set)
		if m.Taken() != members || len(m.Forests) != 2 || m.Forests[0].Member != "m0" || m.Forests[1].Member != "m1" {
			t.Errorf("times %g: %d members and %d forests are taken", factor, m.Taken(), len(m.Forests))
		}
	}
}

// Two members cannot be compared with each other. Once the first labels of a newcomer contradict them,
// their forests do not answer beside its own one either, until the next merge; those of members that
// its labels confirm do, and so do those of three.
func TestNewcomerDropsForests(t *testing.T) {
	cfg, all := forestFleetConfig(), []string{"c0", "c1", "c2", "c3"}
	for name, test := range map[string]struct{ good, bad, left int }{
		"two good": {2, 0, 2}, "both are bad": {0, 2, 0}, "three bad": {0, 3, 3},
	} {
		set := fleetOf(t, cfg, test.good, all...)
		for i := range test.bad {
			set.Put(contribution(t, shifted(t, cfg, uint64(20+i), 600, all...), fmt.Sprint("x", i), 1))
		}
		l := taught(t, cfg, 1, 0)
		merged(t, l, set)
		teach(l, 3, 16, all...)
		if n := len(l.fleet.forests); n != test.left || (l.view.Pool.Stack.Members != nil) != (n > 0) {
			t.Errorf("%s: %d forests, want %d; lead %.1f", name, n, test.left, l.mix.GuestLead())
		}
		again, err := Restore(cfg, stateOf(l))
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range []*Learner{l, again} {
			teach(l, 4, 10, all...)
			if merged(t, l, set); len(l.fleet.forests) != test.good+test.bad {
				t.Errorf("%s: %d forests after the next merge", name, len(l.fleet.forests))
			}
			teach(l, 5, 50, all...)
		}
		if !bytes.Equal(stateOf(l), stateOf(again)) {
			t.Errorf("%s: the states differ", name)
		}
	}
}

// The guest of a newcomer, and that of a follower, answers with the members' forests:
// against the powers of its answer without them and of the mean of the forests. A device
// without a forest of its own answers from the sites alone.
func TestGuestAnswersWithForests(t *testing.T) {
	cfg, all := forestFleetConfig(), []string{"c0", "c1", "c2", "c3"}
	set := fleetOf(t, cfg, 2, all...)
	set.Put(contribution(t, taught(t, cfg, 20, 200, all[:3]...), "m2", 1))
	plain := cfg
	plain.Experts.Forest = NoForest
	guests := func(cfg Config) (all []*model.Posterior) {
		newcomer := taught(t, cfg, 1, 0)
		merged(t, newcomer, set)
		follower, _, err := Follow(cfg, "own", set)
		if err != nil {
			t.Fatal(err)
		}
		teach(newcomer, 5, 5, "c0") // they wait in the minibatch
		return append(all, newcomer.Posterior(), follower)
	}
	with, without := guests(cfg), guests(plain)
	var inputs []float64
	rng := rand.New(rand.NewPCG(2, 2))
	for range 40 {
		inputs = append(inputs, ring(rng, all).X...)
	}
	inputs[8], inputs[13] = math.NaN(), math.NaN()
	n := len(inputs) / 2
	answers := func(p *model.Posterior) (guest, all [][]float64) {
		var ws model.Workspace
		if err := p.Load(inputs, n, &ws); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			probs, _ := p.AnswerTo(nil, i, 0, &ws)
			g, _ := ws.Guest()
			guest, all = append(guest, slices.Clone(g)), append(all, probs)
		}
		return guest, all
	}
	sites, _ := answers(without[0])
	for i, p := range with {
		if share := p.Fleet.GuestForests; i == 0 && (share == 0.5 || share <= 0 || share >= 1) || i == 1 && share != 1 { // five labels have come; a follower has none
			t.Errorf("guest %d: the forests have the share %v", i, share)
		}
		got, mixed := answers(p)
		if other, _ := answers(without[i]); !slices.EqualFunc(other, sites, slices.Equal) {
			t.Error("without forests newcomer and follower differ")
		}
		for at, g := range got {
			if at == 0 {
				var ws model.Workspace
				dst, _, _ := p.PredictTo(nil, inputs[:2], &ws)
				if n := testing.AllocsPerRun(20, func() { dst, _, _ = p.PredictTo(dst, inputs[2:4], &ws) }); n > 0 {
					t.Errorf("guest %d: %v allocations", i, n)
				}
			}
			want := withForests(set, sites[at], inputs[2*at:2*at+2], p.Names)
			for k, v := range sites[at] {
				want[k] += float64((1 - p.Fleet.GuestForests) * (v - want[k]))
			}
			if !near(g, want) {
				t.Fatalf("guest %d, input %d: %v, want %v", i, at, g, want)
			}
			weight, mean := p.Fleet.GuestWeight, make([]float64, len(g))
			for k, v := range g {
				mean[k] = float64(weight*v) + (1-weight)/float64(len(g))
			}
			if !near(mixed[at], mean) || weight < []float64{0.98, 0.999}[i] {
				t.Fatalf("guest %d, input %d: the answer is %v, of the guest %v with weight %g", i, at, mixed[at], g, weight)
			}
		}
	}
}

// A newcomer that has a first model of its own asks the members' forests once for its blend
// and for the guest: the answers are those, to the last bit, of two questions.
func TestForestsAreAskedOnce(t *testing.T) {
	cfg, all := forestFleetConfig(), []string{"c0", "c1", "c2", "c3"}
	newcomer := taught(t, cfg, 1, 45, all...)
	merged(t, newcomer, fleetOf(t, cfg, 3, all...))
	once, twice := newcomer.Posterior(), newcomer.Posterior()
	guest := twice.Fleet.Guest
	if guest == nil || !once.Built() || newcomer.WarmedUp() || once.Pool.Stack.Members != once.Fleet.Guest.Pool.Stack.Members {
		t.Fatal("there is no guest beside an own model with the same forests")
	}
	members := *guest.Pool.Stack.Members
	guest.Pool.Stack.Members = &members
	other := once.Snapshot()
	other.Pool.Stack.Forest = nil // the next answer in the same workspace has not asked
	other.Pool.Stack.Ordered.Exponents, other.Pool.Stack.Plain.Exponents = nil, nil
	rng := rand.New(rand.NewPCG(3, 3))
	var a, b, c, d model.Workspace
	for i := range 40 {
		x := ring(rng, all).X
		if i == 7 {
			x[1] = math.NaN()
		}
		got, _, _ := once.PredictTo(nil, x, &a)
		want, _, _ := twice.PredictTo(nil, x, &b)
		with, _ := a.GuestForests()
		answer, _ := b.GuestForests()
		if !slices.Equal(got, want) || !slices.Equal(with, answer) {
			t.Fatalf("input %d: %v and of the guest %v, want %v and %v", i, got, with, want, answer)
		}
		after, _, _ := other.PredictTo(nil, x, &a)
		want, _, _ = other.PredictTo(nil, x, &c)
		if !slices.Equal(after, want) {
			t.Fatalf("input %d: after another answer %v, want %v", i, after, want)
		}
	}
	x := ring(rng, all).X
	if n := testing.AllocsPerRun(20, func() { got, _, _ := once.PredictTo(nil, x, &d); _ = got }); n > 1 { // the answer
		t.Errorf("%v allocations", n)
	}
}

// withForests computes the answer of a guest that says sites, by class, with the forests of a
// set: of each class the weighted mean of those that know it.
func withForests(set *fleet.Set, sites, x []float64, names []string) []float64 {
	raw := make([]float32, len(x))
	model.RawTo(raw, x)
	want, sum := make([]float64, len(sites)), 0.
	for k, v := range sites {
		mean, weights := 0., 0.
		for _, c := range set.Members() {
			logs := make([]float64, len(c.Classes))
			c.Forest().LogsTo(logs, raw)
			var share, said float64 // of the member's classes
			for i, name := range c.Classes {
				share += sites[slices.Index(names, name)]
				said += math.Exp(max(logs[i], math.Log(1e-6)))
			}
			if at := slices.Index(c.Classes, names[k]); at >= 0 {
				mean += float64(c.N) * (max(logs[at], math.Log(1e-6)) + math.Log(share/said))
				weights += float64(c.N)
			}
		}
		want[k] = math.Pow(v, 0.5) * math.Exp(0.4*mean/weights)
		sum += want[k]
	}
	for k := range want {
		want[k] /= sum
	}
	return want
}

// A newcomer does not ask the forest of a member that the others contradict.
func TestGuestLeavesOutTheForestOfALiar(t *testing.T) {
	cfg, all := forestFleetConfig(), []string{"c0", "c1", "c2", "c3"}
	set := fleetOf(t, cfg, 3, all...)
	set.Put(contribution(t, mistaught(t, cfg, 3, 300, all...), "m3", 1))
	newcomer := taught(t, cfg, 9, 0)
	merged(t, newcomer, set)
	follower, _, err := Follow(cfg, "own", set)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*model.Posterior{newcomer.Posterior(), follower} {
		if s := p.Fleet.Guest.Pool.Stack.Members; s == nil || len(s.All) != 3 {
			t.Errorf("%+v: want the forests of 3 members", s)
		}
	}
}

// The answers of members' forests in a prediction are, to the last bit, those to the same
// features later; a prediction that asks no forest has none.
func TestMemberAnswers(t *testing.T) {
	cfg, all := forestFleetConfig(), []string{"c0", "c1", "c2", "c3"}
	l := taught(t, cfg, 1, 120, all...)
	merged(t, l, fleetOf(t, cfg, 2, all...))
	p, rng := l.Posterior(), rand.New(rand.NewPCG(5, 5))
	members := p.Pool.Stack.Members
	if members == nil || len(members.All) != 2 {
		t.Fatal("there are no forests of members")
	}
	var ws model.Workspace
	own := []float64{-1, -2, -0.5, -3}
	for range 20 {
		x := ring(rng, all).X
		if _, _, err := p.PredictTo(nil, x, &ws); err != nil {
			t.Fatal(err)
		}
		raw := make([]float32, len(x))
		model.RawTo(raw, x)
		row, answers := ws.MemberAnswers(p)
		said, asked := slices.Clone(own), slices.Clone(own)
		members.MeanTo(said, answers, row, nil)
		members.MeanTo(asked, nil, raw, nil)
		if len(answers) == 0 || !slices.Equal(row, raw) || !slices.Equal(said, asked) {
			t.Fatalf("%v: the mean is %v by the answers %v, %v by the forests", x, said, answers, asked)
		}
	}
	alone := l.Posterior()
	alone.Pool.Stack.Ordered.Exponents, alone.Pool.Stack.Plain.Exponents = nil, nil
	if _, _, err := alone.PredictTo(nil, []float64{0.3, 0.4}, &ws); err != nil {
		t.Fatal(err)
	}
	if _, answers := ws.MemberAnswers(alone); answers != nil {
		t.Errorf("answers %v of forests that were not asked", answers)
	}
}
