package online

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
)

// The threshold is what the definition says, computed from a list of all labels.
func TestConformalThreshold(t *testing.T) {
	for _, coverage := range []float64{0.5, 0.9, 0.99} {
		rng := rand.New(rand.NewPCG(1, 2))
		c := newConformal(coverage)
		if want := math.Log(coverage / (1 - coverage)); math.Abs(c.threshold-want) > 1e-12 {
			t.Errorf("first threshold %v, want %v", c.threshold, want)
		}
		var all []float64
		missed := 0
		for i := range 1200 {
			s := float64(float32(5 * rng.NormFloat64()))
			if s > c.threshold {
				missed++
			}
			all = append(all, s)
			c.learn(s)
			last := slices.Clone(all[max(0, len(all)-strangeWindow):])
			sort.Float64s(last)
			n := len(last)
			at := min(max(coverage*float64(n+1)-1, 0), float64(n-1))
			low := int(at)
			q := last[low]
			if low+1 < n {
				q = q*(1-(at-float64(low))) + last[low+1]*(at-float64(low))
			}
			want := q + strangeGain*(float64(missed)-float64(i+1)*(1-coverage))
			if math.Abs(c.threshold-want) > 1e-9 {
				t.Fatalf("coverage %v: threshold %v after %d labels, want %v", coverage, c.threshold, i+1, want)
			}
		}
	}
}

// Whatever the stream does, the achieved coverage is the wanted one up to a
// constant over the number of labels: here strangeness jumps as an enemy would
// have it, just above and just below the threshold, and drifts.
func TestConformalCoverageOfAnyStream(t *testing.T) {
	const n = 5000
	bound := 2*math.Log(1/minStrange) + ditherWidth // of the strangeness's range
	for name, next := range map[string]func(i int, c *conformal) float64{
		"just above": func(_ int, c *conformal) float64 { return c.threshold + 1e-3 },
		"just below": func(_ int, c *conformal) float64 { return c.threshold - 1e-3 },
		"drift":      func(i int, _ *conformal) float64 { return -15 + 30*float64(i)/n },
		"jumps":      func(i int, _ *conformal) float64 { return float64(i/500%2*20 - 10) },
		"all alike":  func(int, *conformal) float64 { return 0 },
	} {
		c := newConformal(0.9)
		covered := 0
		for i := range n {
			s := min(max(next(i, &c), -bound/2), bound/2)
			if s <= c.threshold {
				covered++
			}
			c.learn(s)
		}
		if got := float64(covered) / n; math.Abs(got-0.9) > (bound/strangeGain+1)/n {
			t.Errorf("%s: coverage %v of %d, want 0.9 within %v", name, got, n, (bound/strangeGain+1)/n)
		}
	}
}

// A set holds the most probable classes first, and what is published is what is
// judged.
func TestSets(t *testing.T) {
	d := Doubt{Coverage: 0.9, Threshold: strangeness(0.2)}
	x := []float64{1, 2}
	probs := []float64{0.21, 0.02, 0.5, 0.27}
	if got := d.AppendSet(nil, probs, x); !slices.Equal(got, []int{2, 3, 0}) {
		t.Errorf("set %v, want 2 3 0", got)
	}
	if n := setSize(d.Threshold, probs, dither(x)); n != 3 {
		t.Errorf("size %d, want 3", n)
	}
	d.Threshold = strangeness(0.6)
	if got := d.AppendSet(nil, probs, x); len(got) != 0 {
		t.Errorf("set %v, want none", got)
	}
	// Predictions that are all alike are told apart by their features, evenly.
	var sum float64
	seen := map[float64]bool{}
	const n = 4000
	for i := range n {
		v := dither([]float64{float64(i), 3}) / ditherWidth
		if !(v >= 0 && v < 1) {
			t.Fatalf("dither %v", v)
		}
		sum += v
		seen[v] = true
	}
	if mean := sum / n; math.Abs(mean-0.5) > 0.03 || len(seen) != n {
		t.Errorf("%d different dithers, mean %v", len(seen), mean)
	}
}

func TestAbstains(t *testing.T) {
	for name, c := range map[string]struct {
		rule    Abstain
		probs   []float64
		novelty float64
		want    Said
	}{
		"off":           {Abstain{NoveltyAbove: 1}, []float64{0.5, 0.5}, 1, Said{}},
		"novel":         {Abstain{NoveltyAbove: 0.7}, []float64{1, 0}, 0.71, Said{Ruled: true, Abstained: true}},
		"known":         {Abstain{NoveltyAbove: 0.7}, []float64{0.5, 0.5}, 0.7, Said{Ruled: true}},
		"unsure":        {Abstain{NoveltyAbove: 1, ConfidenceBelow: 0.6}, []float64{0.41, 0.59}, 0, Said{Ruled: true, Abstained: true}},
		"sure":          {Abstain{NoveltyAbove: 1, ConfidenceBelow: 0.6}, []float64{0.4, 0.6}, 1, Said{Ruled: true}},
		"nothing known": {Abstain{NoveltyAbove: 1, ConfidenceBelow: 0.6}, nil, 1, Said{Ruled: true, Abstained: true}},
	} {
		d := Doubt{Abstain: c.rule}
		if got := d.Say(c.probs, c.novelty); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// Sets and abstentions of a real stream of events: judged as they were said,
// late or not, over classes that turn up; the state carries them.
func TestDoubtInTheLearner(t *testing.T) {
	cfg := testConfig(3)
	cfg.Abstain.ConfidenceBelow = 0.6
	l := newTestLearner(t, cfg)
	rng := rand.New(rand.NewPCG(9, 9))
	for i := range 1500 {
		ev := blob(rng, 3)
		if i%7 == 6 { // a label that comes late judges what was said then
			ev.Probs, _, _ = l.Posterior().PredictTo(nil, ev.X, &l.ws)
			ev.Said = Said{Ruled: true, Abstained: true, Sets: true, Threshold: 50} // the whole of the classes
		}
		l.Add(&ev)
	}
	s := l.Scores()
	if s.Sets == nil || s.Sets.N != 1500 || s.Abstained == nil || s.Abstained.N != 1500 {
		t.Fatalf("sets %+v, abstentions %+v", s.Sets, s.Abstained)
	}
	late := float64(1500 / 7)
	if got := (float64(s.Sets.Covered)*1500 - late) / (1500 - late); math.Abs(got-0.9) > 0.01 {
		t.Errorf("coverage %v of the sets that the learner chose, want 0.9", got)
	}
	if kept := float64(s.Abstained.Kept); kept > 1-late/1500 || kept < 0.5 || float64(s.Abstained.Error) >= s.Error {
		t.Errorf("kept %v, error %v of those, %v of all", kept, s.Abstained.Error, s.Error)
	}

	// Another coverage carries on with the window, and begins the sum anew.
	state, _ := l.AppendBinary(nil)
	cfg.Conformal.Coverage = 0.8
	other, err := Restore(cfg, state)
	if err != nil {
		t.Fatal(err)
	}
	if other.conformal.excess != 0 || !slices.Equal(other.conformal.sorted, l.conformal.sorted) || other.Doubt().Threshold >= l.Doubt().Threshold-strangeGain*l.conformal.excess {
		t.Errorf("threshold %v, was %v; sum %v", other.Doubt().Threshold, l.Doubt().Threshold, other.conformal.excess)
	}
	cfg.Conformal.Coverage = 0
	if off, err := Restore(cfg, state); err != nil || off.Doubt().Coverage != 0 {
		t.Errorf("without sets: %+v, %v", off.Doubt(), err)
	}
}

// Published sets keep the coverage although the learner's threshold is behind the
// stream, with labels that are known at once to the same bound as the learner's
// own sets, with late ones nearly.
func TestAimOfPublishedSets(t *testing.T) {
	const n, target = 10_000, 0.9
	for _, late := range []int{0, 30, 200} {
		rng := rand.New(rand.NewPCG(1, 2))
		var a Aim
		doubt := Doubt{Coverage: target, Quantile: -2, Threshold: -2.5} // of long ago
		type said struct {
			holds bool
			known uint64
		}
		var waiting []said
		covered, learner := 0, 0
		for i := range n {
			s := 3*math.Sin(float64(i)/2000) + rng.NormFloat64()
			if late > 0 { // the quantile comes after the stream
				doubt.Quantile = 1.28 + 3*math.Sin(float64(i-late-250)/2000)
				doubt.Threshold = doubt.Quantile - 0.5
			}
			holds := s <= a.Threshold(doubt).Threshold
			if holds {
				covered++
			}
			if s <= doubt.Threshold {
				learner++
			}
			if late == 0 {
				a.JudgeNow(holds, 1)
				continue
			}
			if waiting = append(waiting, said{holds, uint64(max(i-late, 0))}); len(waiting) > late {
				a.Judge(waiting[0].holds, 1, waiting[0].known, uint64(i-late)+1)
				waiting = waiting[1:]
			}
		}
		got, margin := float64(covered)/n, 0.001
		if late > 0 {
			margin = 0.015
		}
		if math.Abs(got-target) > margin {
			t.Errorf("late by %d: coverage %.4f, the learner's threshold %.4f", late, got, float64(learner)/n)
		}
		judged := n
		if late > 0 {
			judged = n - 2*late // the others knew no label, or their label is still to come
		}
		if c := a.Coverage(); math.Abs(float64(int(c.N)-judged)) > 1 || c.Size != 1 || c.Empty != 0 || late == 0 && float64(c.Covered) != got {
			t.Errorf("late by %d: %+v, coverage %.4f", late, c, got)
		}
		if other := a.Threshold(Doubt{Coverage: 0.5, Quantile: 1, Threshold: 1.25}); other.Threshold != 1.25 {
			t.Errorf("another target begins with the threshold %v", other.Threshold)
		}
	}
}
