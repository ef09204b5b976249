package conformal

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
)

// The threshold follows its definition, computed from a list of all labels.
func TestConformalThreshold(t *testing.T) {
	for _, coverage := range []float64{0.5, 0.9, 0.99} {
		rng := rand.New(rand.NewPCG(1, 2))
		c := NewThreshold(Config{Coverage: coverage})
		if want := math.Log(coverage / (1 - coverage)); math.Abs(c.value-want) > 1e-12 {
			t.Errorf("first threshold %v, want %v", c.value, want)
		}
		var all []float64
		missed := 0
		for i := range 1200 {
			s := float64(float32(5 * rng.NormFloat64()))
			if s > c.value {
				missed++
			}
			all = append(all, s)
			c.Learn(s)
			last := slices.Clone(all[max(0, len(all)-windowLabels):])
			sort.Float64s(last)
			n := len(last)
			at := min(max(coverage*float64(n+1)-1, 0), float64(n-1))
			low := int(at)
			q := last[low]
			if low+1 < n {
				q = q*(1-(at-float64(low))) + last[low+1]*(at-float64(low))
			}
			want := q + integralGain*(float64(missed)-float64(i+1)*(1-coverage))
			if math.Abs(c.value-want) > 1e-9 {
				t.Fatalf("coverage %v: threshold %v after %d labels, want %v", coverage, c.value, i+1, want)
			}
		}
	}
}

// Whatever the stream does, the achieved coverage is the configured one up to a
// constant over the number of labels: here the score jumps adversarially, just above and just below the threshold, and drifts.
func TestConformalCoverageOfAnyStream(t *testing.T) {
	const n = 5000
	bound := 2*math.Log(1/minOdds) + noiseWidth // range of the score
	for name, next := range map[string]func(i int, c *Threshold) float64{
		"just above": func(_ int, c *Threshold) float64 { return c.value + 1e-3 },
		"just below": func(_ int, c *Threshold) float64 { return c.value - 1e-3 },
		"drift":      func(i int, _ *Threshold) float64 { return -15 + 30*float64(i)/n },
		"jumps":      func(i int, _ *Threshold) float64 { return float64(i/500%2*20 - 10) },
		"all alike":  func(int, *Threshold) float64 { return 0 },
	} {
		c := NewThreshold(Config{Coverage: 0.9})
		covered := 0
		for i := range n {
			s := min(max(next(i, &c), -bound/2), bound/2)
			if s <= c.value {
				covered++
			}
			c.Learn(s)
		}
		if got := float64(covered) / n; math.Abs(got-0.9) > (bound/integralGain+1)/n {
			t.Errorf("%s: coverage %v of %d, want 0.9 within %v", name, got, n, (bound/integralGain+1)/n)
		}
	}
}

// A set holds the most probable classes first.
func TestSets(t *testing.T) {
	d := Uncertainty{Coverage: 0.9, Threshold: nonconformity(0.2)}
	x := []float64{1, 2}
	probs := []float64{0.21, 0.02, 0.5, 0.27}
	if got := d.AppendSet(nil, probs, x); !slices.Equal(got, []int{2, 3, 0}) {
		t.Errorf("set %v, want 2 3 0", got)
	}
	if n := setSize(d.Threshold, probs, tieNoise(x)); n != 3 {
		t.Errorf("size %d, want 3", n)
	}
	d.Threshold = nonconformity(0.6)
	if got := d.AppendSet(nil, probs, x); len(got) != 0 {
		t.Errorf("set %v, want none", got)
	}
	// Equal predictions get different noise by their features, evenly.
	var sum float64
	seen := map[float64]bool{}
	const n = 4000
	for i := range n {
		v := tieNoise([]float64{float64(i), 3}) / noiseWidth
		if !(v >= 0 && v < 1) {
			t.Fatalf("tie-breaking noise %v", v)
		}
		sum += v
		seen[v] = true
	}
	if mean := sum / n; math.Abs(mean-0.5) > 0.03 || len(seen) != n {
		t.Errorf("%d different values of the noise, mean %v", len(seen), mean)
	}
}

func TestAbstains(t *testing.T) {
	for name, c := range map[string]struct {
		rule    Abstain
		probs   []float64
		novelty float64
		want    PredictionMeta
	}{
		"off":           {Abstain{NoveltyAbove: 1}, []float64{0.5, 0.5}, 1, PredictionMeta{}},
		"novel":         {Abstain{NoveltyAbove: 0.7}, []float64{1, 0}, 0.71, PredictionMeta{Ruled: true, Abstained: true}},
		"known":         {Abstain{NoveltyAbove: 0.7}, []float64{0.5, 0.5}, 0.7, PredictionMeta{Ruled: true}},
		"unsure":        {Abstain{NoveltyAbove: 1, ConfidenceBelow: 0.6}, []float64{0.41, 0.59}, 0, PredictionMeta{Ruled: true, Abstained: true}},
		"sure":          {Abstain{NoveltyAbove: 1, ConfidenceBelow: 0.6}, []float64{0.4, 0.6}, 1, PredictionMeta{Ruled: true}},
		"nothing known": {Abstain{NoveltyAbove: 1, ConfidenceBelow: 0.6}, nil, 1, PredictionMeta{Ruled: true, Abstained: true}},
	} {
		d := Uncertainty{Abstain: c.rule}
		if got := d.Meta(c.probs, c.novelty); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// Published sets keep the coverage although the learner's threshold is behind the
// stream, with labels that are known at once to the same bound as the learner's
// own sets, with late ones nearly.
func TestCoverageController(t *testing.T) {
	const n, target = 10_000, 0.9
	for _, late := range []int{0, 30, 200} {
		rng := rand.New(rand.NewPCG(1, 2))
		var a CoverageController
		u := Uncertainty{Coverage: target, Quantile: -2, Threshold: -2.5} // out of date
		type published struct {
			holds bool
			known uint64
		}
		var waiting []published
		covered, learner := 0, 0
		for i := range n {
			s := 3*math.Sin(float64(i)/2000) + rng.NormFloat64()
			if late > 0 { // the quantile lags behind the stream
				u.Quantile = 1.28 + 3*math.Sin(float64(i-late-250)/2000)
				u.Threshold = u.Quantile - 0.5
			}
			holds := s <= a.Threshold(u).Threshold
			if holds {
				covered++
			}
			if s <= u.Threshold {
				learner++
			}
			if late == 0 {
				a.JudgeNow(holds, 1)
				continue
			}
			if waiting = append(waiting, published{holds, uint64(max(i-late, 0))}); len(waiting) > late {
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
			judged = n - 2*late // the others knew no label, or their label has not come yet
		}
		if c := a.Coverage(); math.Abs(float64(int(c.N)-judged)) > 1 || c.Size != 1 || c.Empty != 0 || late == 0 && float64(c.Covered) != got {
			t.Errorf("late by %d: %+v, coverage %.4f", late, c, got)
		}
		if other := a.Threshold(Uncertainty{Coverage: 0.5, Quantile: 1, Threshold: 1.25}); other.Threshold != 1.25 {
			t.Errorf("another target begins with the threshold %v", other.Threshold)
		}
	}
}
