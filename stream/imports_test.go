package stream

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model"
	"edge/online"
	core "edge/online/fleet"
)

// importer is a node's part that keeps the classes of a learner, which learns its records, and
// whose notices are heard, later.
type importer struct {
	*fakeModel
	cfg     online.Config
	learner *online.Learner
	node    *Node
	records []online.Record
	learnt  int
	old     int             // records of the earlier run
	notices []online.Notice // to be heard
	saved   []byte          // a state, and the records in it
	at      int
}

func (im *importer) Posterior() *model.Posterior { return im.learner.Posterior() }

func (im *importer) classes() *classes { return im.node.models[0].classes }

// start begins a run at the saved state.
func (im *importer) start(t *testing.T) {
	l, err := online.Restore(im.cfg, im.saved)
	if err != nil {
		t.Fatal(err)
	}
	im.learner, im.learnt, im.old, im.notices = l, im.at, len(im.records), nil
	cfg, m := testConfig()
	m.Model, m.Classes, m.Unlearnt = im, im.cfg.Classes, online.ClassEvents(im.cfg, im.records[im.at:])
	im.node = newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal()})
}

func (im *importer) save() { im.saved, im.at = must(im.learner.AppendBinary(nil)), im.learnt }

func must(data []byte, _ error) []byte { return data }

func (im *importer) record(ev online.Event) {
	im.classes().commit()
	im.records = append(im.records, online.Record{Event: ev})
}

// learn learns one record. Notices of an earlier run were heard in that.
func (im *importer) learn() (refused error) {
	ev := &im.records[im.learnt].Event
	out := im.learner.Add(ev)
	im.learnt++
	tell := func(kind, name string, imported bool) {
		if im.learnt > im.old && name != "" {
			im.notices = append(im.notices, online.Notice{Model: im.node.models[0].Name, Kind: kind, Detail: name, Imported: imported})
		}
	}
	tell(online.NoticeClassAdded, out.ClassAdded, false)
	for _, name := range out.Imported {
		tell(online.NoticeClassAdded, name, true)
	}
	for _, name := range out.Dropped {
		tell(online.NoticeClassRemoved, name, true)
	}
	if im.learnt == len(im.records) && im.old > 0 {
		im.old = 0
		tell(online.NoticeRecovered, "all records", false)
	}
	if ev.Kind == online.Merge { // it may find too few classes
		return nil
	}
	return out.Refused
}

func (im *importer) hear() {
	im.node.Notify(im.notices[0])
	im.notices = im.notices[1:]
}

// members returns the contributions of four members of a fleet.
func members(t *testing.T, cfg online.Config) (all []*core.Contribution) {
	rng := rand.New(rand.NewPCG(1, 3))
	for i := range 4 {
		l, err := online.NewLearner(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for j := range 60 {
			l.Add(&online.Event{Kind: online.Observe, X: []float64{rng.NormFloat64(), 1}, Label: string(rune('c' + i + j%3))})
		}
		c, err := l.Contribution(fmt.Sprint("m", i))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// Every label and class that is accepted is learnt, however late the learner says which classes
// a merge has brought and which have left, also after a crash; once it has said so, both know
// the same classes, and which of them were brought.
//
// Long: the steps and the checks.
func TestImportedClassesAsTheLearner(t *testing.T) {
	cfg := online.DefaultConfig()
	cfg.Features, cfg.Inducing, cfg.Warmup, cfg.Fleet.Unseen = []string{"x", "y"}, 4, 24, online.MixUnseen
	cfg.Experts.Forest = online.NoForest
	all := members(t, cfg)
	full := 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 9))
		cfg.Classes.Max, cfg.Classes.Confirm = 4+rng.IntN(3), 1+2*rng.IntN(2)
		late := cfg.Classes.Confirm == 1 && rng.IntN(2) == 0 // otherwise more labels than there is room for may wait for their confirmation
		l, err := online.NewLearner(cfg)
		if err != nil {
			t.Fatal(err)
		}
		im := &importer{fakeModel: newFakeModel(2), cfg: cfg, learner: l}
		im.save()
		im.start(t)
		for range 150 {
			label, quiet := string(rune('a'+rng.IntN(9))), im.learnt == len(im.records)
			switch op := rng.IntN(24); {
			case op < 2 && quiet:
				set := core.NewSet(0)
				for _, c := range all {
					if rng.IntN(3) > 0 {
						set.Put(c)
					}
				}
				sum, err := im.learner.Merge("own", set)
				if err != nil {
					t.Fatal(err)
				}
				im.record(online.MergeEvent(sum))
			case op < 4:
				if im.classes().declare(label) == nil {
					im.record(online.Event{Kind: online.ClassAdd, Label: label})
				}
			case op == 4 && im.learnt >= im.old:
				im.save()
			case op == 5:
				im.start(t)
			case op == 6 && quiet && im.old == 0 && len(im.notices) == 0:
				if to := string(rune('a' + rng.IntN(9))); im.classes().rename(label, to) == nil {
					im.record(online.Event{Kind: online.ClassRename, Label: label, Name: to})
				}
			case im.classes().refusal(label) != "":
				full++
			default:
				im.node.models[0].labelled(label)
				im.record(online.Event{Kind: online.Observe, X: []float64{rng.NormFloat64(), 1}, Label: label})
			}
			for im.learnt < len(im.records) && (!late || rng.IntN(3) == 0) {
				if err := im.learn(); err != nil && cfg.Classes.Confirm == 1 {
					t.Fatalf("seed %d: %s was accepted: %v", seed, im.records[im.learnt-1].Label, err)
				}
			}
			for len(im.notices) > 0 && (!late || rng.IntN(3) == 0) {
				im.hear()
			}
			if im.learnt < len(im.records) || im.old > 0 || len(im.notices) > 0 {
				continue
			}
			p, classes := im.learner.Posterior(), im.classes()
			got, want := slices.Sorted(slices.Values(classes.names())), slices.Sorted(slices.Values(p.Classes()))
			if !slices.Equal(got, want) || classes.count() != len(want) {
				t.Fatalf("seed %d: the classes are %q, %d, in the learner %q", seed, got, classes.count(), want)
			}
			if got := slices.Sorted(maps.Keys(classes.imported)); p.Fleet != nil && !slices.Equal(got, p.Fleet.Imported) {
				t.Fatalf("seed %d: the classes that members have brought are %q, in the learner %q", seed, got, p.Fleet.Imported)
			}
		}
	}
	if full == 0 {
		t.Error("no label was refused")
	}
}
