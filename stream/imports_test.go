package stream

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/online"
	"edge/online/fleet"
)

// history is a random history of a model: its records, the classes that the committer knows, and
// a learner that is behind.
type history struct {
	t       *testing.T
	seed    uint64
	rng     *rand.Rand
	cfg     online.Config
	learner *online.Learner
	said    *online.Status // by the learner, the newest
	classes *classes
	records []online.Record // committed
	group   []online.Record // not committed
	learnt  int             // records
	old     int             // records of earlier runs
	states  []earlierState  // that a crash or a rollback may return to; the newest last
	from    []*fleet.Contribution
	refused int // labels
}

// earlierState is an encoded learner.
type earlierState struct {
	data []byte
	at   int // records in it
}

func newHistory(t *testing.T, seed uint64, cfg online.Config, from []*fleet.Contribution) *history {
	h := &history{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 9)), cfg: cfg, from: from}
	l, err := online.NewLearner(cfg)
	if err != nil {
		t.Fatal(err)
	}
	h.learner = l
	h.say()
	h.save()
	h.start()
	return h
}

func (h *history) status() *online.Status { return h.said }

// say publishes a status.
func (h *history) say() {
	h.said = &online.Status{Seq: uint64(h.learnt), Recovering: h.learnt < h.old, Classes: h.learner.ClassList()}
}

func (h *history) save() {
	data, _ := h.learner.AppendBinary(nil)
	h.states = append(h.states, earlierState{data, h.learnt})
	if len(h.states) > 3 {
		h.states = h.states[1:]
	}
}

// start begins a run at the newest state.
func (h *history) start() {
	s := h.states[len(h.states)-1]
	l, err := online.Restore(h.cfg, s.data)
	if err != nil {
		h.t.Fatal(err)
	}
	h.learner, h.learnt, h.old, h.group = l, s.at, len(h.records), nil
	h.say()
	h.classes = newClasses(h.cfg.Classes, h.status)
	h.classes.foresee(online.ClassRecords(h.cfg, h.records[s.at:]), 0)
}

// handOver lets another node continue; the uncommitted records come to it again, or never.
func (h *history) handOver() {
	h.classes.rollback()
	h.group = nil
	next := newClasses(h.cfg.Classes, h.status)
	next.takeOver(h.classes)
	h.classes = next
}

// write adds a record to the group, if the classes allow it.
func (h *history) write(ev online.Event) {
	at := uncommitted + uint64(len(h.group))
	if ev.Kind == online.Observe || ev.Kind == online.Correct {
		if h.classes.refusal(ev.Label) != "" {
			h.refused++
			return
		}
	}
	if ev.Kind != online.Merge && h.classes.change(at, &ev) != nil {
		return
	}
	if ev.Kind == online.Replace {
		h.classes.foresee(online.ClassRecords(h.cfg, []online.Record{{Event: ev}}), at)
	}
	h.group = append(h.group, online.Record{Event: ev})
}

func (h *history) commit() {
	for i := range h.group {
		h.group[i].Seq = uint64(len(h.records) + i + 1)
	}
	h.classes.commit(h.group)
	h.records = append(h.records, h.group...)
	h.group = nil
}

// learn learns one record, and says so where that changes classes, as online.Loop does.
func (h *history) learn() {
	ev := &h.records[h.learnt].Event
	out := h.learner.Add(ev)
	h.learnt++
	fresh := h.learnt > h.old // the others were told of by the earlier run
	if fresh && (out.Change != "" || out.ClassAdded != "" || len(out.Dropped) > 0 || out.Refused != nil) || h.learnt == h.old {
		h.say()
		h.classes.catchUp()
	}
	if label := ev.Kind == online.Observe || ev.Kind == online.Correct; label && errors.Is(out.Refused, online.ErrClass) {
		h.t.Fatalf("seed %d: %s was accepted: %v", h.seed, ev.Label, out.Refused)
	}
}

// check compares the classes of the committer with those of a learner that has learnt all.
func (h *history) check() {
	h.say()
	h.classes.catchUp()
	list := h.learner.ClassList()
	got, want := h.classes.names(), slices.Sorted(slices.Values(list.Names))
	if !slices.Equal(got, want) || h.classes.count() != len(want) {
		h.t.Fatalf("seed %d: the classes are %q, %d, in the learner %q", h.seed, got, h.classes.count(), want)
	}
	if got := slices.Sorted(maps.Keys(h.classes.imported)); !slices.Equal(got, list.Imported) {
		h.t.Fatalf("seed %d: the classes that members have brought are %q, in the learner %q", h.seed, got, list.Imported)
	}
	if post := h.learner.Posterior(); post.Fleet == nil && len(list.Imported) > 0 {
		h.t.Fatalf("seed %d: without a fleet the classes %q of members are left", h.seed, list.Imported)
	}
	if len(h.classes.ahead) > 0 {
		h.t.Fatalf("seed %d: %v are kept in mind", h.seed, h.classes.ahead)
	}
}

// merge returns the merge of a random set of members.
func (h *history) merge() online.Event {
	set := fleet.NewSet(0)
	for _, c := range h.from {
		if h.rng.IntN(3) > 0 {
			set.Put(c)
		}
	}
	sum, err := h.learner.Merge("own", set)
	if err != nil {
		h.t.Fatal(err)
	}
	return online.MergeEvent(sum)
}

// step does one thing at random.
func (h *history) step() {
	name := func() string { return string(rune('a' + h.rng.IntN(9))) }
	x := []float64{h.rng.NormFloat64(), 1}
	switch op := h.rng.IntN(40); op {
	case 0, 1:
		h.write(h.merge())
	case 2, 3, 4:
		h.write(online.Event{Kind: online.ClassAdd, Label: name()})
	case 5, 6:
		h.write(online.Event{Kind: online.ClassRename, Label: name(), Name: name()})
	case 7, 8:
		h.write(online.Event{Kind: online.ClassRemove, Label: name()})
	case 9:
		h.write(online.Event{Kind: online.Reset})
	case 10, 11:
		h.write(online.Event{Kind: online.Replace, State: h.states[h.rng.IntN(len(h.states))].data})
	case 12:
		h.save()
	case 13:
		h.start()
	case 14:
		h.handOver()
	case 15, 16:
		h.write(online.Event{Kind: online.Correct, X: x, Label: name(), Name: name()})
	default:
		h.write(online.Event{Kind: online.Observe, X: x, Label: name()})
	}
}

// members returns the contributions of four members of a fleet.
func members(t *testing.T, cfg online.Config) (all []*fleet.Contribution) {
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

// Every label that is accepted is learnt, however far the learner is behind: among requests,
// merges, rollbacks, crashes and reloads. Once it has learnt all, both know the same classes,
// and which of them members of the fleet have brought.
func TestClassesAsTheLearner(t *testing.T) {
	cfg := online.DefaultConfig()
	cfg.Features, cfg.Inducing, cfg.Warmup = []string{"x", "y"}, 4, 24
	cfg.Experts.Forest = online.NoForest
	from := members(t, cfg)
	refused := 0
	for seed := range uint64(60) {
		cfg.Classes.Max, cfg.Classes.Confirm = 4+int(seed)%3, 1+2*int(seed/3)%4
		cfg.Classes.Names = []string{"a", "b"}[:seed%3]
		if cfg.Fleet.Unseen = online.ReportUnseen; seed%2 > 0 {
			cfg.Fleet.Unseen = online.MixUnseen
		}
		h := newHistory(t, seed, cfg, from)
		lag := int(seed % 5)
		for range 200 {
			h.step()
			if h.rng.IntN(3) == 0 {
				h.commit()
			}
			for h.learnt < len(h.records) && h.rng.IntN(2*lag+1) <= lag {
				h.learn()
			}
			if h.rng.IntN(8) == 0 {
				h.say()
			}
			if h.rng.IntN(30) == 0 {
				h.commit()
				for h.learnt < len(h.records) {
					h.learn()
				}
			}
			if h.learnt == len(h.records) && len(h.group) == 0 {
				h.check()
			}
		}
		refused += h.refused
	}
	if refused == 0 {
		t.Error("no label was refused")
	}
}
