package stream

import (
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
	state, _ := earlier.AppendBinary(nil)
	merged := online.MergeEvent(&core.Merge{Members: []core.Member{{Name: "other"}}, Classes: []string{"a", "b", "f"}})
	refused := online.MergeEvent(&core.Merge{Members: []core.Member{{Name: "other", Refused: core.Distrusted}}, Classes: []string{"f"}})
	for name, tc := range map[string]struct {
		records []online.Record
		want    []string
	}{
		"labels":         {labels("b", "c", "b"), []string{"a", "b", "c"}},
		"added, removed": {slices.Concat(labels("b"), request(online.ClassAdd, "z", ""), request(online.ClassRemove, "b", "")), []string{"a", "z"}},
		"labelled again": {slices.Concat(labels("b"), request(online.ClassRemove, "b", ""), labels("b")), []string{"a", "b"}},
		"renamed":        {slices.Concat(labels("b"), request(online.ClassRename, "b", "c"), labels("b")), []string{"a", "c"}},
		"reset":          {slices.Concat(labels("b"), request(online.Reset, "", ""), labels("c")), []string{"a", "c"}},
		"rolled back":    {slices.Concat(labels("b"), []online.Record{{Event: online.Event{Kind: online.Replace, State: state}}}, labels("c")), []string{"a", "c", "r"}},
		"merged":         {slices.Concat(labels("b"), []online.Record{{Event: merged}}, request(online.ClassRename, "f", "g")), []string{"a", "b", "g"}},
		"left a fleet":   {slices.Concat(labels("b"), []online.Record{{Event: refused}}), []string{"a", "b"}},
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

// A class that was removed before the learner has learnt so stays removed when a model has
// recovered and when another node continues it, unless it comes again.
func TestRemovedAheadOfTheLearner(t *testing.T) {
	cfg, m := testConfig()
	learner := newFakeModel(2)
	learner.post.Names, learner.post.Aliases = []string{"a", "b", "c", "d"}, []string{"e", "f"}
	m.Model = learner
	node := newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal()})
	classes := node.models[0].classes
	for _, name := range []string{"a", "c", "e"} {
		if err := classes.remove(name); err != nil {
			t.Fatal(err)
		}
	}
	classes.commit()
	classes.add("c")
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
	for _, name := range []string{"a", "c", "e"} {
		if err := classes.remove(name); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "c", "e"} {
		node.Notify(online.Notice{Kind: online.NoticeClassRemoved, Model: m.Name, Detail: name})
	}
	if len(classes.gone) > 0 {
		t.Errorf("%v are kept in mind", classes.gone)
	}
}
