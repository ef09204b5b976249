package stream

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/online"
	"edge/online/fleet"
	"edge/stream/codec"
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
	earlier, err := online.NewLearner(cfg)
	if err != nil {
		t.Fatal(err)
	}
	earlier.Add(&online.Event{Kind: online.ClassAdd, Label: "r"})
	earlier.Add(&online.Event{Kind: online.ClassRename, Label: "r", Name: "s"})
	state, _ := earlier.AppendBinary(nil)
	merged := online.MergeEvent(&fleet.Merge{Members: []fleet.Member{{Name: "other"}}, Classes: []string{"a", "b", "f"}})
	for name, tc := range map[string]struct {
		records []online.Record
		want    []string
	}{
		"labels":                  {labels("b", "c", "b"), []string{"a", "b", "c"}},
		"added, removed":          {slices.Concat(labels("b"), request(online.ClassAdd, "z", ""), request(online.ClassRemove, "b", "")), []string{"a", "z"}},
		"labelled again":          {slices.Concat(labels("b"), request(online.ClassRemove, "b", ""), labels("b")), []string{"a", "b"}},
		"removed by another name": {slices.Concat(labels("b"), request(online.ClassRename, "b", "c"), request(online.ClassRename, "b", "d"), request(online.ClassRemove, "c", "")), []string{"a"}},
		"renamed":                 {slices.Concat(labels("b"), request(online.ClassRename, "b", "c"), labels("b")), []string{"a", "c"}},
		"reset":                   {slices.Concat(labels("b"), request(online.Reset, "", ""), labels("c")), []string{"a", "c"}},
		"rolled back":             {slices.Concat(labels("b"), []online.Record{{Event: online.Event{Kind: online.Replace, State: state}}}, labels("c", "r")), []string{"a", "c", "s"}},
		"merged":                  {slices.Concat(labels("b"), []online.Record{{Event: merged}}), []string{"a", "b"}},
	} {
		for i := range tc.records {
			tc.records[i].Seq = uint64(i + 1)
		}
		learner := newFakeModel(1)
		learner.say(0, "a")
		classes := newClasses(cfg.Classes, learner.Status)
		classes.foresee(online.ClassRecords(cfg, tc.records), 0)
		if got := classes.names(); !slices.Equal(got, tc.want) || classes.count() != len(tc.want) {
			t.Errorf("%s: the classes are %q, want %q", name, got, tc.want)
		}
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
	classes, rng := newClasses(cfg.Classes, newFakeModel(1).Status), rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		name := func() string { return string(rune('a' + rng.IntN(8))) }
		ev := online.Event{Kind: online.ClassAdd, Label: name()}
		switch rng.IntN(4) {
		case 0:
		case 1:
			ev.Kind = online.ClassRemove
		default:
			ev.Kind, ev.Name = online.ClassRename, name()
		}
		err := classes.change(1, &ev)
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
		err, out := classes.change(1, &ev), learner.Add(&ev)
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

// The only learnt class is not removed, also by a former name; during the warm-up, and
// where another one may have been learnt meanwhile, the learner decides.
func TestOnlyLearntClassStays(t *testing.T) {
	request := func(kind online.Kind, label, name string) online.Event {
		return online.Event{Kind: kind, Label: label, Name: name}
	}
	gone := request(online.ClassRemove, "b", "")
	for name, tc := range map[string]struct {
		samples int
		before  []online.Event // that the learner has learnt
		ahead   []online.Event
		remove  string
		refused bool
	}{
		"two classes":     {60, nil, nil, "a", false},
		"only class":      {60, []online.Event{gone}, nil, "a", true},
		"former name":     {60, []online.Event{gone, request(online.ClassRename, "a", "c")}, nil, "a", true},
		"no such class":   {60, []online.Event{gone}, nil, "b", true},
		"warm-up":         {3, []online.Event{gone}, nil, "a", false},
		"a class besides": {60, []online.Event{gone, request(online.ClassAdd, "c", "")}, nil, "c", false},
		"a label ahead":   {60, []online.Event{gone}, []online.Event{{Kind: online.Observe, X: []float64{1}, Label: "c"}}, "a", false},
		"a reset ahead":   {60, []online.Event{gone}, []online.Event{{Kind: online.Reset}, {Kind: online.Observe, X: []float64{1}, Label: "a"}}, "a", false},
	} {
		cfg := online.DefaultConfig()
		cfg.Features, cfg.Inducing = []string{"x"}, 4
		learner, err := online.NewLearner(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for i := range tc.samples {
			learner.Add(&online.Event{Kind: online.Observe, X: []float64{float64(i % 7)}, Label: string(rune('a' + i%2))})
		}
		for i := range tc.before {
			learner.Add(&tc.before[i])
		}
		said := &online.Status{Classes: learner.ClassList()}
		classes := newClasses(cfg.Classes, func() *online.Status { return said })
		for i := range tc.ahead {
			if err := classes.change(uint64(i+1), &tc.ahead[i]); err != nil {
				t.Fatal(err)
			}
			learner.Add(&tc.ahead[i])
		}
		remove := request(online.ClassRemove, tc.remove, "")
		refusal, out := classes.change(9, &remove), learner.Add(&remove)
		if (refusal != nil) != tc.refused || (out.Refused != nil) != tc.refused {
			t.Errorf("%s: %v, by the learner %v", name, refusal, out.Refused)
		}
	}
}

// names returns the names of the classes, in order.
func (c *classes) names() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, class := range c.known {
		if name == class {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// say lets the model have learnt the records up to seq, and have these classes.
func (m *fakeModel) say(seq uint64, names ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	post := *m.post
	post.Names, post.Counts = names, make([]uint64, len(names))
	m.post, m.seq = &post, seq
}

// forget removes classes.
func (m *fakeModel) forget(names ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	post := *m.post
	post.Names, post.Counts = nil, nil
	for k, name := range m.post.Names {
		if !slices.Contains(names, name) {
			post.Names, post.Counts = append(post.Names, name), append(post.Counts, m.post.Counts[k])
		}
	}
	m.post = &post
}

// aheadClasses are classes whose learner is behind.
type aheadClasses struct {
	t       *testing.T
	node    *Node
	learner *fakeModel
	*classes
	seq uint64 // of the newest record
}

func newAheadClasses(t *testing.T, of online.Classes, names ...string) *aheadClasses {
	cfg, m := testConfig()
	a := &aheadClasses{t: t, learner: newFakeModel(2)}
	a.learner.say(0, names...)
	m.Model, m.Classes = a.learner, of
	a.node = newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal()})
	a.classes = a.node.models[0].classes
	return a
}

// write commits a record.
func (a *aheadClasses) write(kind online.Kind, label, name string) {
	a.t.Helper()
	if kind == online.Observe && a.refusal(label) != "" {
		a.t.Errorf("label %s is refused", label)
	}
	if err := a.change(uncommitted, &online.Event{Kind: kind, Label: label, Name: name}); err != nil {
		a.t.Error(err)
	}
	a.seq++
	a.commit([]online.Record{{Seq: a.seq}})
}

// learns lets the learner have learnt the records up to seq, say so, and have these classes.
func (a *aheadClasses) learns(kind string, seq uint64, names ...string) {
	a.learner.say(seq, names...)
	a.node.Notify(online.Notice{Model: "bearing", Kind: kind, Seq: seq})
}

func (a *aheadClasses) are(want ...string) {
	a.t.Helper()
	if got := a.names(); !slices.Equal(got, want) || a.count() != len(want) {
		a.t.Errorf("the classes are %q, want %q", got, want)
	}
}

// A class that a merge brought counts, and requests may rename and remove it.
func TestImportedClassIsKnown(t *testing.T) {
	a := newAheadClasses(t, online.Classes{Open: true, Max: 64})
	a.learner.imported = []string{"f"}
	a.learns(online.NoticeClassAdded, 0, "f")
	a.are("f")
	a.write(online.ClassRename, "f", "g")
	a.are("g")
	a.write(online.ClassRemove, "g", "")
	a.are()
}

// From the 16th class on the learner confirms a class that several samples carry: requests
// may then remove it, and it counts. One that was removed meanwhile does not come back.
func TestConfirmedClassIsKnown(t *testing.T) {
	for name, confirm := range map[string]int{"confirm 1": 1, "confirm 3": 3} {
		t.Run(name, func(t *testing.T) {
			var all []string
			for i := range 16 {
				all = append(all, fmt.Sprint("class ", i+10))
			}
			a := newAheadClasses(t, online.Classes{Open: true, Max: 64, Confirm: confirm}, all...)
			a.write(online.Observe, "17th", "")
			a.are(all...)
			all = append([]string{"17th"}, all...)
			a.learns(online.NoticeClassAdded, 1, all...)
			a.are(all...)
			a.write(online.ClassRemove, "17th", "")
			a.learns(online.NoticeClassAdded, 1, all...)
			a.are(all[1:]...)
			a.learns(online.NoticeClassRemoved, 2, all[1:]...)
			a.are(all[1:]...)
		})
	}
}

// Labels that may become classes of a learner which is behind leave no room for others: what is
// accepted is learnt.
func TestWaitingLabelsTakeRoom(t *testing.T) {
	a := newAheadClasses(t, online.Classes{Open: true, Max: 3, Confirm: 2}, "a", "b")
	a.write(online.Observe, "x", "")
	a.write(online.Observe, "x", "")
	if got := a.refusal("y"); got != codec.TooManyClasses {
		t.Errorf("y is refused by %q: x may take the last place", got)
	}
	if err := a.change(uncommitted, &online.Event{Kind: online.ClassAdd, Label: "y"}); err == nil {
		t.Error("class_add y is accepted: x may take the last place")
	}
	if err := a.change(uncommitted, &online.Event{Kind: online.ClassRename, Label: "a", Name: "x"}); err == nil {
		t.Error("a is renamed to x, which may become another class")
	}
	a.write(online.Observe, "x", "")
	a.learner.say(2, "a", "b") // a correction took one of the two
	if got := a.refusal("y"); got != codec.TooManyClasses {
		t.Errorf("y is refused by %q: the third x is not learnt yet", got)
	}
	a.learner.say(3, "a", "b")
	a.write(online.Observe, "y", "")
	a.learns(online.NoticeClassAdded, 4, "a", "b", "y")
	a.are("a", "b", "y")
	if got := a.refusal("z"); got != codec.TooManyClasses {
		t.Errorf("z is refused by %q", got)
	}
}

// What records change stays while the learner says what earlier ones did, also when a model has
// recovered and when another node continues it.
func TestChangesAheadOfTheLearner(t *testing.T) {
	a := newAheadClasses(t, online.Classes{Open: true, Max: 20}, "a", "b", "c", "d")
	a.learner.post.Aliases = map[string]string{"e": "a", "f": "d"}
	a.learner.say(0, "a", "b", "c", "d")
	a.catchUp()
	a.write(online.ClassRemove, "e", "")
	a.write(online.ClassRemove, "c", "")
	if err := a.change(uncommitted, &online.Event{Kind: online.Observe, Label: "c"}); err != nil {
		t.Fatal(err)
	}
	a.rollback() // c did not come again
	a.learns(online.NoticeRecovered, 0, "a", "b", "c", "d", "g")
	a.are("b", "d", "g")
	if _, known := a.known["e"]; known {
		t.Error("a former name is known again")
	}
	next := newClasses(a.Classes, a.learner.Status)
	next.takeOver(a.classes)
	if got := next.names(); !slices.Equal(got, []string{"b", "d", "g"}) {
		t.Errorf("another node knows %q", got)
	}
	a.learner.post.Aliases = map[string]string{"f": "d"}
	a.learns(online.NoticeClassRemoved, 1, "b", "c", "d", "g")
	a.are("b", "d", "g")
	a.learns(online.NoticeClassRemoved, 2, "b", "d", "g")
	a.are("b", "d", "g")
	a.learns(online.NoticeMerged, 2, "b", "c", "d", "g") // a merge brings it again
	a.are("b", "c", "d", "g")
	if len(a.ahead) > 0 {
		t.Errorf("%v are kept in mind", a.ahead)
	}
}

// A request that the learner refuses, of a class that has just left or is the only one, has
// changed nothing.
func TestRefusedByTheLearner(t *testing.T) {
	a := newAheadClasses(t, online.Classes{Open: true, Max: 20}, "a")
	a.write(online.ClassRemove, "a", "")
	a.are()
	a.learns(online.NoticeEventRefused, 1, "a")
	a.are("a")
}

// The classes after a rollback are those of the earlier state, and those of the labels and
// requests that follow it, whatever the learner says of the records before.
func TestRollbackAheadOfTheLearner(t *testing.T) {
	a := newAheadClasses(t, online.Classes{Open: true, Max: 20, Confirm: 1}, "a", "b")
	a.write(online.Observe, "before", "")
	of := func(kind online.Kind, label, name string) online.Record {
		return online.Record{Event: online.Event{Kind: kind, Label: label, Name: name}}
	}
	a.foresee([]online.Record{
		of(online.Replace, "", ""), of(online.ClassAdd, "a", ""), of(online.Merge, "f", ""),
		of(online.ClassRename, "a", "was"), of(online.ClassRename, "was", "a"),
	}, uncommitted)
	a.are("a", "f")
	a.rollback()
	a.are("a", "b", "before")
	a.foresee([]online.Record{of(online.Replace, "", ""), of(online.ClassAdd, "a", "")}, uncommitted)
	a.seq++
	a.commit([]online.Record{{Seq: a.seq}})
	a.write(online.Observe, "after", "")
	a.are("a", "after")
	a.learns(online.NoticeClassAdded, 1, "a", "b", "before")
	a.are("a", "after")
	a.write(online.ClassRemove, "after", "")
	a.write(online.ClassAdd, "z", "")
	a.learns(online.NoticeRolledBack, 2, "a")
	a.are("a", "z")
	a.learns(online.NoticeClassAdded, 3, "a", "after")
	a.are("a", "z")
	a.learns(online.NoticeClassRemoved, 4, "a")
	a.learns(online.NoticeClassAdded, 5, "a", "z")
	a.are("a", "z")
}

// count returns the number of classes.
func (c *classes) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}
