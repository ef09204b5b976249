package online

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"edge/online/fleet"
	"edge/online/natural"
)

// again returns the learner of l's state.
func again(t *testing.T, l *Learner) *Learner {
	t.Helper()
	r, err := Restore(l.cfg, stateOf(l))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(stateOf(l), stateOf(r)) {
		t.Error("another state after it was read")
	}
	return r
}

// junk returns a set whose member other has two more classes than the first one.
func junk(t *testing.T, cfg Config) *fleet.Set {
	set := fleetOf(t, cfg, 1, "c0", "c1")
	for _, m := range fleetOf(t, cfg, 1, "c0", "c2", "c1", "c3").Members() {
		c := told(t, m, func(h *fleet.Header, _ *fleet.Basis) *natural.Exponents {
			h.Member, h.Classes = "other", []string{"c0", "j0", "c1", "j1"}
			return nil
		})
		set.Put(c)
	}
	return set
}

// Classes that a merge has brought leave with the members that know them, unless an own label
// is of them: in the warm-up and, mixed in, afterwards, within a minibatch. The model is then
// what it would have been without them.
func TestImportedClassesLeave(t *testing.T) {
	for _, unseen := range []Unseen{ReportUnseen, MixUnseen} {
		for _, n := range []int{0, 21, 149} {
			t.Run(fmt.Sprint(unseen, n), func(t *testing.T) {
				cfg := fleetConfig()
				cfg.Fleet.Unseen = unseen
				set := junk(t, cfg)
				l, alone := taught(t, cfg, 1, n, "c0", "c1"), taught(t, cfg, 1, n, "c0", "c1")
				merged(t, l, set)
				brings := n < 100 || unseen == MixUnseen
				if got := slices.Contains(l.classes.names, "j0"); got != brings {
					t.Fatalf("the classes are %q", l.classes.names)
				}
				if got := l.ClassList().Imported; brings && !slices.Contains(got, "j1") {
					t.Errorf("imported are %q", got)
				}
				teach(l, 2, 5, "c0", "c1")
				teach(alone, 2, 5, "c0", "c1")
				if brings { // of which it has an own label now
					for _, l := range []*Learner{l, alone} {
						l.Add(&Event{Kind: Observe, X: circle[2][:], Label: "j0"})
					}
				}
				l = again(t, l)
				set.Remove("other")
				m, err := l.Merge("own", set)
				if err != nil {
					t.Fatal(err)
				}
				ev := MergeEvent(m)
				if out := l.Add(&ev); out.Refused != nil || brings != slices.Equal(out.Dropped, []string{"j1"}) {
					t.Fatalf("dropped %q, refused %v", out.Dropped, out.Refused)
				}
				l = again(t, l)
				teach(l, 3, 20, "c0", "c1")
				teach(alone, 3, 20, "c0", "c1")
				ev = MergeEvent(&fleet.Merge{})
				l.Add(&ev)
				l = again(t, l)
				if a, b := slices.Sorted(slices.Values(l.classes.names)), slices.Sorted(slices.Values(alone.classes.names)); !slices.Equal(a, b) || len(l.classes.imported) > 0 {
					t.Errorf("the classes are %q, without a fleet %q", a, b)
				}
				for _, name := range alone.classes.names {
					a, _ := alone.Predict([]float64{0.3, 0.1})
					b, _ := l.Predict([]float64{0.3, 0.1})
					pa, pb := a.Probs[slices.Index(a.Classes, name)], b.Probs[slices.Index(b.Classes, name)]
					if n > 100 && (pa-pb > 1e-4 || pb-pa > 1e-4) { // in the warm-up the classes come in another order
						t.Errorf("%s: %g, without a fleet %g", name, pb, pa)
					}
				}
			})
		}
	}
}

// A label takes the place of an imported class where there is no room, and a request for one
// keeps it.
func TestLabelsDisplaceImportedClasses(t *testing.T) {
	cfg := fleetConfig()
	cfg.Classes.Max = 4
	l := taught(t, cfg, 1, 20, "c0", "c1")
	merged(t, l, junk(t, cfg))
	l.Add(&Event{Kind: ClassAdd, Label: "j0"})
	for _, tc := range []struct {
		ev            Event
		want, dropped []string
		refused       bool
	}{
		{Event{Kind: Observe, X: circle[2][:], Label: "c2"}, []string{"c0", "c1", "j0", "c2"}, []string{"j1"}, false},
		{Event{Kind: Observe, X: circle[3][:], Label: "c3"}, []string{"c0", "c1", "j0", "c2"}, nil, true},
		{Event{Kind: ClassAdd, Label: "c3"}, []string{"c0", "c1", "j0", "c2"}, nil, true},
	} {
		out := l.Add(&tc.ev)
		slices.Sort(tc.want)
		if got := slices.Sorted(slices.Values(l.classes.names)); !slices.Equal(got, tc.want) || !slices.Equal(out.Dropped, tc.dropped) || (out.Refused != nil) != tc.refused {
			t.Errorf("%v of %s: the classes are %q, dropped %q, refused %v", tc.ev.Kind, tc.ev.Label, got, out.Dropped, out.Refused)
		}
		l = again(t, l)
	}
	teach(l, 2, 100, "c0", "c1", "c2")
	checkSound(t, l)
}

// Samples that wait for the confirmation of their label are learnt with its next one, if a
// merge or another name has made it that of a class.
func TestHeldSamplesAreLearnt(t *testing.T) {
	for name, makeClass := range map[string]func(t *testing.T, l *Learner){
		"merge":  func(t *testing.T, l *Learner) { merged(t, l, junk(t, l.cfg)) },
		"rename": func(t *testing.T, l *Learner) { l.Add(&Event{Kind: ClassRename, Label: "c1", Name: "j0"}) },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := fleetConfig()
			cfg.Fleet.Unseen, cfg.Classes.Confirm = MixUnseen, 4
			l := taught(t, cfg, 1, 150, "c0", "c1")
			for range 2 {
				l.Add(&Event{Kind: Observe, X: circle[2][:], Label: "j0"})
			}
			makeClass(t, l)
			l = again(t, l)
			judged := l.Scores().N
			l.Add(&Event{Kind: Observe, X: circle[2][:], Label: "j0"})
			if n := l.Scores().N - judged; n != 3 || l.classes.held() != 0 {
				t.Errorf("%d samples are learnt, want 3, and %d are held", n, l.classes.held())
			}
			l = again(t, l)
			teach(l, 2, 60, "c0", "c1")
			checkSound(t, l)
		})
	}
}

// An own class may get the name of one that members have brought: it is that class then.
func TestRenameToAnImportedClass(t *testing.T) {
	for _, n := range []int{20, 150} {
		cfg := fleetConfig()
		cfg.Fleet.Unseen = MixUnseen
		l := taught(t, cfg, 1, n, "c0", "c1")
		set := junk(t, cfg)
		merged(t, l, set)
		for _, tc := range []struct {
			from, to string
			want     []string
			imported []string
			refused  bool
		}{
			{"c0", "c1", []string{"c0", "c1", "j0", "j1"}, []string{"j0", "j1"}, true},
			{"j0", "j1", []string{"c0", "c1", "j1"}, []string{"j1"}, false},
			{"c1", "j1", []string{"c0", "j1"}, nil, false},
		} {
			out := l.Add(&Event{Kind: ClassRename, Label: tc.from, Name: tc.to})
			if got := slices.Sorted(slices.Values(l.classes.names)); !slices.Equal(got, tc.want) || !slices.Equal(l.importedNames(), tc.imported) || (out.Refused != nil) != tc.refused {
				t.Errorf("%d labels, %s to %s: the classes are %q, imported %q, refused %v", n, tc.from, tc.to, got, l.importedNames(), out.Refused)
			}
			l = again(t, l)
		}
		merged(t, l, set)
		teach(l, 2, 60, "c0", "c1") // by its former name
		if got := l.classes.names; !slices.Equal(got, []string{"c0", "j1", "j0"}) && !slices.Equal(got, []string{"c0", "j1"}) {
			t.Errorf("%d labels: the classes are %q after another merge", n, got)
		}
		p, err := l.Predict(circle[1][:])
		if err != nil || p.Probs[slices.Index(p.Classes, "j1")] < 0.9 {
			t.Errorf("%d labels: the answer is %v of %q, %v", n, p.Probs, p.Classes, err)
		}
		checkSound(t, l)
	}
}

// A learner that leaves its fleet in the warm-up drops all classes of the members: where labels
// take the place of so many that too few are left.
func TestImportedClassesLeaveInTheWarmup(t *testing.T) {
	cfg := fleetConfig()
	cfg.Classes.Max = 4
	for name, ev := range map[string]Event{
		"labels":     {Kind: Observe, X: circle[2][:], Label: "c2"},
		"correction": {Kind: Correct, X: circle[1][:], Label: "c2", Name: "c1"},
		"request":    {Kind: ClassAdd, Label: "c2"},
	} {
		t.Run(name, func(t *testing.T) {
			l := taught(t, cfg, 1, 20, "c0", "c1")
			merged(t, l, fleetOf(t, cfg, 1, "j0", "j1"))
			if got := len(l.classes.imported); got != 2 {
				t.Fatalf("%d classes are imported", got)
			}
			dropped := l.Add(&ev).Dropped
			slices.Sort(dropped)
			if l.view.Fleet != nil || len(l.classes.imported) > 0 || !slices.Equal(dropped, []string{"j0", "j1"}) {
				t.Errorf("in a fleet: %v, dropped %q, the classes are %q, imported %v", l.view.Fleet != nil, dropped, l.classes.names, l.classes.imported)
			}
			l = again(t, l)
			teach(l, 2, 200, "c0", "c1", "c2")
			checkSound(t, l)
		})
	}
}
