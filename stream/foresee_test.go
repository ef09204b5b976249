package stream

import (
	"slices"
	"testing"

	"edge/online"
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
	state, _ := earlier.AppendBinary(nil)
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
	} {
		m := &modelState{ModelConfig: ModelConfig{Model: newFakeModel(1), Classes: cfg.Classes}, classes: newClasses(true, 20)}
		m.knowClasses()
		m.foresee(online.ClassEvents(cfg, tc.records))
		if got := slices.Sorted(slices.Values(m.classes.names())); !slices.Equal(got, tc.want) || m.classes.count() != len(tc.want) {
			t.Errorf("%s: the classes are %q, want %q", name, got, tc.want)
		}
	}
}
