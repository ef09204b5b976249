package online

import (
	"slices"
	"testing"

	"edge/model"
)

// Snapshots are not changed by later samples, and change none of them: a learner with a snapshot
// before each sample, whose memory it uses again, answers as one without any does, to the last
// bit. Minibatches of one sample are filtered three times, and every fourth one is a step.
func TestSnapshotsBesideAFleet(t *testing.T) {
	cfg, all := fleetConfig(), []string{"c0", "c1", "c2", "c3"}
	set := fleetOf(t, cfg, 2, all...)
	cfg.Batch.MaxSize = 1
	read, alone := taught(t, cfg, 1, 250, all[:3]...), taught(t, cfg, 1, 250, all[:3]...)
	merged(t, read, set)
	merged(t, alone, set)
	if len(alone.fleet.foreign) != 1 {
		t.Fatalf("the classes %q have no latent function, want one", alone.fleet.foreign)
	}
	var latest *model.Posterior
	read.Reuse(func(m *model.Memory) bool { return m != latest.Memory })
	asked := samples(4, 3, all...)
	answers := func(p *model.Posterior) (said []float64) {
		var ws model.Workspace
		for i := range asked {
			probs, novelty, err := p.PredictTo(nil, asked[i].X, &ws)
			if err != nil {
				t.Fatal(err)
			}
			said = append(append(said, probs...), novelty)
		}
		return said
	}
	for i, ev := range samples(5, 60, all[:3]...) {
		if i == 41 { // the class that only the fleet knows
			ev.Label = all[3]
		}
		latest = read.Posterior()
		before := answers(latest)
		if out := read.Add(&ev); out.Refused != nil {
			t.Fatal(out.Refused)
		}
		alone.Add(&ev)
		if after := answers(latest); !slices.Equal(after, before) {
			t.Fatalf("sample %d: the snapshot before it says %v, and said %v", i, after, before)
		}
		if got, want := answers(read.view), answers(alone.view); !slices.Equal(got, want) {
			t.Fatalf("sample %d: %v, want %v", i, got, want)
		}
	}
}
