package stream

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/online"
	core "edge/online/fleet"
)

// Every label that is accepted is learnt, however late the learner says which classes a merge
// has brought and which have left; once it has said so, both know the same classes.
//
// Long: the fleet and the checks.
func TestImportedClassesAsTheLearner(t *testing.T) {
	cfg := online.DefaultConfig()
	cfg.Features, cfg.Inducing, cfg.Warmup, cfg.Classes.Max, cfg.Fleet.Unseen = []string{"x"}, 4, 24, 5, online.MixUnseen
	cfg.Experts.Forest = online.NoForest
	rng := rand.New(rand.NewPCG(1, 3))
	var members []*core.Contribution
	for i := range 4 {
		l, err := online.NewLearner(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for j := range 60 {
			l.Add(&online.Event{Kind: online.Observe, X: []float64{rng.NormFloat64()}, Label: string(rune('c' + i + j%3))})
		}
		c, err := l.Contribution(fmt.Sprint("m", i))
		if err != nil {
			t.Fatal(err)
		}
		members = append(members, c)
	}
	for range 40 {
		learner, err := online.NewLearner(cfg)
		if err != nil {
			t.Fatal(err)
		}
		m := &modelState{ModelConfig: ModelConfig{Name: "m", Classes: cfg.Classes}, classes: newClasses(true, cfg.Classes.Max)}
		var late []online.Outcome // that the node is yet to learn
		hear := func() {
			out := late[0]
			late = late[1:]
			m.classes.imports(out.Imported...)
			for _, name := range out.Dropped {
				m.classes.dropped(name)
			}
		}
		full := 0
		for range 120 {
			switch rng.IntN(12) {
			case 0:
				set := core.NewSet(0)
				for _, c := range members {
					if rng.IntN(3) > 0 {
						set.Put(c)
					}
				}
				sum, err := learner.Merge("own", set)
				if err != nil {
					t.Fatal(err)
				}
				ev := online.MergeEvent(sum)
				late = append(late, learner.Add(&ev))
			default:
				label := string(rune('a' + rng.IntN(9)))
				if m.classes.refusal(label) != "" {
					full++
					continue
				}
				m.classes.labelled(label, m.Classes.Needed(m.classes.count()) <= 1)
				m.classes.commit()
				out := learner.Add(&online.Event{Kind: online.Observe, X: []float64{rng.NormFloat64()}, Label: label})
				if out.Refused != nil {
					t.Fatalf("label %s was accepted: %v", label, out.Refused)
				}
				late = append(late, out)
			}
			for len(late) > 0 && rng.IntN(3) == 0 {
				hear()
			}
		}
		for len(late) > 0 {
			hear()
		}
		got, want := slices.Sorted(slices.Values(m.classes.names())), slices.Sorted(slices.Values(learner.Posterior().Classes()))
		if !slices.Equal(got, want) || m.classes.count() != len(want) || full == 0 {
			t.Fatalf("the classes are %q, %d, in the learner %q; %d labels refused", got, m.classes.count(), want, full)
		}
	}
}
