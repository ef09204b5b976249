package online

import (
	"bytes"
	"testing"

	"edge/online/fleet"
)

// A merge leaves out the forests of members that have learnt nothing since the one before. A replay
// of the journal, also from a checkpoint between both, leads to the same state, and to that of
// a merge with all forests.
func TestUnchangedForestsAreKept(t *testing.T) {
	cfg, all := forestFleetConfig(), []string{"c0", "c1", "c2", "c3"}
	for name, labels := range map[string]int{"warm-up": 37, "after it": 144} {
		t.Run(name, func(t *testing.T) {
			set := fleetOf(t, cfg, 3, all...)
			live, replayed, whole := taught(t, cfg, 1, labels, all...), taught(t, cfg, 1, labels, all...), taught(t, cfg, 1, labels, all...)
			var sizes []int
			for part := range 3 {
				if part == 2 {
					set.Put(contribution(t, taught(t, cfg, 11, 320, all...), "m1", 2))
				}
				m, err := live.Merge("own", set)
				if err != nil {
					t.Fatal(err)
				}
				event := MergeEvent(m)
				sizes = append(sizes, len(event.State))
				live.Add(&event)
				event.forests = nil
				replayed.Add(&event)
				m.Forests = live.fleet.forests
				event = MergeEvent(m)
				whole.Add(&event)
				for _, l := range []*Learner{live, replayed, whole} {
					teach(l, 7+uint64(part), 40, all...)
				}
				replayed = restored(t, cfg, replayed)
				if n := len(live.fleet.forests); n != 3 {
					t.Errorf("part %d: %d forests", part, n)
				}
				if state := stateOf(live); !bytes.Equal(state, stateOf(replayed)) || !bytes.Equal(state, stateOf(whole)) {
					t.Errorf("part %d: another state after a replay or with all forests", part)
				}
			}
			if first, same, one := sizes[0], sizes[1], sizes[2]; !(same < one && 2*(one-same) < first-same) {
				t.Errorf("%d bytes of a merge with three new forests, %d with none, %d with one", first, same, one)
			}
		})
	}
}

// A merge that leaves a forest to a learner without it, because another state was imported since,
// is carried out without it.
func TestKeptForestIsMissing(t *testing.T) {
	cfg, all := forestFleetConfig(), []string{"c0", "c1", "c2", "c3"}
	set := fleetOf(t, cfg, 2, all...)
	live, other := taught(t, cfg, 1, 144, all...), taught(t, cfg, 2, 144, all...)
	merged(t, live, set)
	m, err := live.Merge("own", set)
	if err != nil {
		t.Fatal(err)
	}
	m.Forests[0] = fleet.Forest{Member: "m0", N: 7}
	event := MergeEvent(m)
	if out := other.Add(&event); out.Refused != nil || len(other.fleet.forests) != 0 {
		t.Errorf("refused %v, %d forests of none that it has", out.Refused, len(other.fleet.forests))
	}
	if out := live.Add(&event); out.Refused != nil || len(live.fleet.forests) != 1 || live.fleet.forests[0].Member != "m1" {
		t.Errorf("refused %v, %d forests of the one that it has", out.Refused, len(live.fleet.forests))
	}
	if merged(t, live, set); len(live.fleet.forests) != 2 {
		t.Errorf("%d forests after the next merge", len(live.fleet.forests))
	}
}
