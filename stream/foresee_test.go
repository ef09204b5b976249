package stream

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/online"
	core "edge/online/fleet"
)

// The classes after a crash are those that the committer had, before the learner has
// learnt them again.
func TestClassesOfTheJournal(t *testing.T) {
	labels := func(names ...string) (records []online.Record) {
		for _, name := range names {
			records = append(records, online.Record{Event: online.Event{Kind: online.Observe, X: []float64{1}, Label: name}})
		}
		return records
	}
	request := func(kind online.Kind, label, name string) []online.Record {
		return []online.Record{{Event: online.Event{Kind: kind, Label: label, Name: name}}}
	}
	cfg := online.DefaultConfig()
	cfg.Features, cfg.Inducing, cfg.Classes.Names = []string{"x"}, 4, []string{"a"}
	cfg.Fleet.Unseen = online.MixUnseen
	earlier, err := online.NewLearner(cfg)
	if err != nil {
		t.Fatal(err)
	}
	earlier.Add(&online.Event{Kind: online.ClassAdd, Label: "r"})
	earlier.Add(&online.Event{Kind: online.ClassRename, Label: "r", Name: "s"})
	state, _ := earlier.AppendBinary(nil)
	merged := online.MergeEvent(&core.Merge{Members: []core.Member{{Name: "other"}}, Classes: []string{"a", "b", "f"}})
	refused := online.MergeEvent(&core.Merge{Members: []core.Member{{Name: "other", Refused: core.Distrusted}}, Classes: []string{"f"}})
	for name, tc := range map[string]struct {
		records []online.Record
		want    []string
	}{
		"labels":                   {labels("b", "c", "b"), []string{"a", "b", "c"}},
		"added, removed":           {slices.Concat(labels("b"), request(online.ClassAdd, "z", ""), request(online.ClassRemove, "b", "")), []string{"a", "z"}},
		"labelled again":           {slices.Concat(labels("b"), request(online.ClassRemove, "b", ""), labels("b")), []string{"a", "b"}},
		"removed by another name":  {slices.Concat(labels("b"), request(online.ClassRename, "b", "c"), request(online.ClassRename, "b", "d"), request(online.ClassRemove, "c", "")), []string{"a"}},
		"renamed":                  {slices.Concat(labels("b"), request(online.ClassRename, "b", "c"), labels("b")), []string{"a", "c"}},
		"reset":                    {slices.Concat(labels("b"), request(online.Reset, "", ""), labels("c")), []string{"a", "c"}},
		"rolled back":              {slices.Concat(labels("b"), []online.Record{{Event: online.Event{Kind: online.Replace, State: state}}}, labels("c", "r")), []string{"a", "c", "s"}},
		"merged":                   {slices.Concat(labels("b"), []online.Record{{Event: merged}}, request(online.ClassRename, "f", "g")), []string{"a", "b", "g"}},
		"renamed to one that left": {slices.Concat(labels("b"), []online.Record{{Event: merged}, {Event: refused}}, request(online.ClassRename, "b", "f")), []string{"a", "f"}},
		"left a fleet":             {slices.Concat(labels("b"), []online.Record{{Event: refused}}), []string{"a", "b"}},
	} {
		m := &modelState{ModelConfig: ModelConfig{Model: newFakeModel(1), Classes: cfg.Classes}, classes: newClasses(true, 20)}
		m.knowClasses()
		m.foresee(online.ClassEvents(cfg, tc.records))
		if got := slices.Sorted(slices.Values(m.classes.names())); !slices.Equal(got, tc.want) || m.classes.count() != len(tc.want) {
			t.Errorf("%s: the classes are %q, want %q", name, got, tc.want)
		}
	}
	cfg.Fleet.Unseen = online.ReportUnseen
	if events := online.ClassEvents(cfg, []online.Record{{Event: merged}}); len(events) > 0 {
		t.Errorf("a merge whose classes are only reported leads to %v", events)
	}
}

// Random requests, also under former names of classes, lead to the same classes and names as
// in the learner, and are refused as there.
func TestRequestsAsTheLearner(t *testing.T) {
	cfg := online.DefaultConfig()
	cfg.Features, cfg.Inducing, cfg.Classes.Max = []string{"x"}, 4, 4
	learner, err := online.NewLearner(cfg)
	if err != nil {
		t.Fatal(err)
	}
	classes, rng := newClasses(true, cfg.Classes.Max), rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		name := func() string { return string(rune('a' + rng.IntN(8))) }
		ev := online.Event{Kind: online.ClassAdd, Label: name()}
		var err error
		switch rng.IntN(4) {
		case 0:
			err = classes.declare(ev.Label)
		case 1:
			ev.Kind = online.ClassRemove
			err = classes.remove(ev.Label)
		default:
			ev.Kind, ev.Name = online.ClassRename, name()
			err = classes.rename(ev.Label, ev.Name)
		}
		if out := learner.Add(&ev); (out.Refused == nil) != (err == nil) {
			t.Fatalf("%+v: %v, by the learner %v", ev, err, out.Refused)
		}
		p := learner.Posterior()
		want := map[string]string{}
		maps.Copy(want, p.Aliases)
		for _, class := range p.Classes() {
			want[class] = class
		}
		if !maps.Equal(classes.known, want) || classes.count() != len(p.Classes()) {
			t.Fatalf("%+v: %d classes with the names %v, want %d with %v", ev, classes.count(), classes.known, len(p.Classes()), want)
		}
	}
	for i := 0; ; i++ { // until no more names are accepted
		ev := online.Event{Kind: online.ClassRename, Label: classes.names()[0], Name: fmt.Sprint("name ", i)}
		err, out := classes.rename(ev.Label, ev.Name), learner.Add(&ev)
		if (out.Refused == nil) != (err == nil) {
			t.Fatalf("%+v with %d names: %v, by the learner %v", ev, len(classes.known), err, out.Refused)
		}
		if err != nil {
			break
		}
	}
	if len(classes.known) != online.MaxNames {
		t.Errorf("%d names are known, want %d", len(classes.known), online.MaxNames)
	}
}

// A class that a merge brought counts, and requests may rename and remove it.
func TestImportedClassIsKnown(t *testing.T) {
	cfg, m := testConfig()
	node := newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal()})
	classes := node.models[0].classes
	before := classes.count()
	node.Notify(online.Notice{Kind: online.NoticeClassAdded, Model: m.Name, Detail: "f", Imported: true})
	if classes.count() != before+1 {
		t.Errorf("%d classes, want %d", classes.count(), before+1)
	}
	if err := classes.rename("f", "g"); err != nil {
		t.Error(err)
	}
	if err := classes.remove("g"); err != nil {
		t.Error(err)
	}
}

// From the 16th class on the learner confirms a class that several samples carry: requests
// may then remove it, and it counts. One that was removed meanwhile does not come back.
func TestConfirmedClassIsKnown(t *testing.T) {
	for name, confirm := range map[string]int{"confirm 1": 1, "confirm 3": 3} {
		t.Run(name, func(t *testing.T) {
			cfg, m := testConfig()
			m.Classes.Confirm = confirm
			node := newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal()})
			classes := node.models[0].classes
			for i := 0; classes.count() < 16; i++ {
				classes.labelled(fmt.Sprint("class ", i))
			}
			classes.commit()
			node.models[0].labelled("17th")
			added := online.Notice{Kind: online.NoticeClassAdded, Model: m.Name, Detail: "17th"}
			node.Notify(added)
			if classes.count() != 17 {
				t.Errorf("%d classes, want 17", classes.count())
			}
			if err := classes.remove("17th"); err != nil {
				t.Error(err)
			}
			node.Notify(added)
			if names := classes.names(); slices.Contains(names, "17th") {
				t.Errorf("a removed class is known again: %q", names)
			}
		})
	}
}

// A class that was removed before the learner has learnt so stays removed when a model has
// recovered and when another node continues it, unless it comes again.
func TestRemovedAheadOfTheLearner(t *testing.T) {
	cfg, m := testConfig()
	learner := newFakeModel(2)
	learner.post.Names, learner.post.Aliases = []string{"a", "b", "c", "d"}, map[string]string{"e": "a", "f": "d"}
	m.Model = learner
	node := newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal()})
	classes := node.models[0].classes
	for _, name := range []string{"e", "c"} {
		if err := classes.remove(name); err != nil {
			t.Fatal(err)
		}
	}
	classes.commit()
	classes.labelled("c")
	if err := classes.remove("b"); err != nil {
		t.Fatal(err)
	}
	classes.rollback()                                   // c was not removed for the last time, and b not at all
	learner.post.Names = append(learner.post.Names, "g") // several samples have confirmed it
	node.Notify(online.Notice{Kind: online.NoticeRecovered, Model: m.Name})
	is := func(c interface {
		names() []string
		count() int
	}, want ...string) {
		t.Helper()
		if got := slices.Sorted(slices.Values(c.names())); !slices.Equal(got, want) || c.count() != len(want) {
			t.Errorf("the classes are %q, want %q", got, want)
		}
	}
	is(classes, "b", "d", "g")
	if _, known := classes.known["e"]; known {
		t.Error("a former name is known again")
	}
	next := newClasses(true, 20)
	next.takeOver(classes)
	next.addLearnt(learner.post.Names, learner.post.Aliases)
	is(next, "b", "d", "g")
	node.Notify(online.Notice{Kind: online.NoticeRolledBack, Model: m.Name}) // to a state that has them
	is(classes, "a", "b", "c", "d", "g")
	for _, name := range []string{"e", "c"} {
		if err := classes.remove(name); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"e", "c"} {
		node.Notify(online.Notice{Kind: online.NoticeClassRemoved, Model: m.Name, Detail: name})
	}
	if len(classes.gone) > 0 {
		t.Errorf("%v are kept in mind", classes.gone)
	}
}
