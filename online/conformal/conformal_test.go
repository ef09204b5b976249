package conformal

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"edge/online/wire"
)

// coverages are those of the tests below.
var coverages = []float64{0.5, 0.9, 0.99}

// sample makes a prediction of two classes whose label 0 has about the score s.
func sample(s float64, i int) (probs, x []float64, class int) {
	x = []float64{float64(i)}
	p := 1 - s // the label is the second class of two
	if class = 1; s < 0.5 {
		class = 0
	}
	return []float64{max(s, p), min(s, p)}, x, class
}

// The threshold follows its definition, computed from a list of all labels: the
// labels of a minibatch count when it is closed.
func TestThreshold(t *testing.T) {
	for _, coverage := range coverages {
		for _, size := range []int{1, 16, 100} {
			rng := rand.New(rand.NewPCG(1, 2))
			c := NewThreshold(Config{Coverage: coverage})
			if u := c.Uncertainty(); u.Threshold != coverage || u.Quantile != coverage || u.Coverage != coverage {
				t.Errorf("before the first label %+v, want the threshold %v", u, coverage)
			}
			var all []float64
			var missed, shift float64
			for i := range 1200 {
				probs, x, class := sample(rng.Float64(), i)
				_, scores := slowScores(probs, dither(x))
				before := c.Uncertainty()
				c.Judge(probs, x, class)
				if c.Uncertainty() != before {
					t.Fatal("a label counts before its minibatch is closed")
				}
				if scores[class] > before.Threshold {
					missed++
				}
				all = append(all, float64(float32(scores[class])))
				if (i+1)%size > 0 {
					continue
				}
				c.Learn()
				shift += 0.05 * (missed - float64(size)*(1-coverage)) / float64(max(size, 2))
				missed = 0
				last := slices.Clone(all[max(0, len(all)-windowLabels):])
				sort.Float64s(last)
				n := float64(len(last))
				at := min(max(coverage*(n+1)-1, 0), n-1)
				low := int(at)
				q := last[low]
				if low+1 < len(last) {
					q = q*(1-(at-float64(low))) + last[low+1]*(at-float64(low))
				}
				want := (n*q+20*coverage)/(n+20) + shift
				if u := c.Uncertainty(); math.Abs(u.Threshold-want) > 1e-9 || math.Abs(u.Threshold-u.Quantile-shift) > 1e-9 {
					t.Fatalf("coverage %v, minibatches of %d: %+v after %d labels, want %v", coverage, size, u, i+1, want)
				}
			}
		}
	}
}

// Whatever the stream does, the achieved coverage is the configured one up to a
// constant times the size of the minibatch over the number of labels: here the score
// is just above and just below the threshold, drifts and jumps. A set that is never
// empty covers more, not less.
func TestCoverageOfAnyStream(t *testing.T) {
	const n = 6400
	for name, next := range map[string]func(i int, threshold float64) float64{
		"just above": func(_ int, threshold float64) float64 { return threshold + 1e-3 },
		"just below": func(_ int, threshold float64) float64 { return threshold - 1e-3 },
		"drift":      func(i int, _ float64) float64 { return float64(i) / n },
		"jumps":      func(i int, _ float64) float64 { return 0.05 + 0.9*float64(i/500%2) },
		"all alike":  func(int, float64) float64 { return 0.5 },
		"sure":       func(int, float64) float64 { return 0 },
	} {
		for _, size := range []int{1, 16, 100} {
			for _, never := range []bool{false, true} {
				c := NewThreshold(Config{Coverage: 0.9, NeverEmpty: never})
				covered := 0
				for i := range n {
					u := c.Uncertainty()
					probs, x, class := withScore(min(max(next(i, u.Threshold), 0), 1))
					m := u.Meta(probs, 0)
					if m.Holds(probs, x, class) {
						covered++
					}
					if c.Judge(probs, x, class); (i+1)%size == 0 {
						c.Learn()
					}
				}
				got, bound := float64(covered)/n-0.9, (1/integralGain+1)*float64(max(size, 2))/n
				if got < -bound || got > bound && !never {
					t.Errorf("%s, minibatches of %d, never empty %v: coverage off by %v, bound %v", name, size, never, got, bound)
				}
				if u := c.Uncertainty(); never && u.Threshold < 0 {
					t.Errorf("%s: threshold %v", name, u.Threshold)
				}
			}
		}
	}
}

// dithers are those of the features 0, 1, 2, ….
var dithers = func() (all []float64) {
	for i := range 4000 {
		all = append(all, dither([]float64{float64(i)}))
	}
	return all
}()

// withScore returns a prediction whose label has about the given nonconformity
// score: the score is the dither of its only class, or the mass above the second.
func withScore(s float64) (probs, x []float64, class int) {
	probs, u := []float64{1}, s
	if s > 0.5 && s < 1 {
		probs, u, class = []float64{s, 1 - s}, 0, 1
	}
	nearest := 0
	for i, v := range dithers {
		if math.Abs(v-u) < math.Abs(dithers[nearest]-u) {
			nearest = i
		}
		if math.Abs(v-u) < 1e-3 {
			break
		}
	}
	return probs, []float64{float64(nearest)}, class
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
// own sets, with late ones nearly. Every published set counts, from the first.
func TestCoverageController(t *testing.T) {
	const n, target = 10_000, 0.9
	for _, late := range []int{0, 30, 200} {
		rng := rand.New(rand.NewPCG(1, 2))
		var a CoverageController
		u := Uncertainty{Coverage: target, Quantile: 0.2, Threshold: 0.15} // out of date
		type published struct {
			holds bool
			known uint64
		}
		var waiting []published
		covered, learner := 0, 0
		at := func(i int) float64 { return 0.5 + 0.3*math.Sin(float64(i)/2000) }
		for i := range n {
			s := at(i) + 0.1*rng.NormFloat64()
			if late > 0 { // the quantile lags behind the stream
				u.Quantile = 0.128 + at(i-late-250)
				u.Threshold = u.Quantile - 0.05
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
		got, margin := float64(covered)/n, 0.003
		if late > 0 {
			margin = 0.015
		}
		if math.Abs(got-target) > margin {
			t.Errorf("late by %d: coverage %.4f, the learner's threshold %.4f", late, got, float64(learner)/n)
		}
		if c := a.Coverage(); int(c.N) != n-late || c.Size != 1 || c.Empty != 0 || late == 0 && float64(c.Covered) != got {
			t.Errorf("late by %d: %+v, coverage %.4f", late, c, got)
		}
		if other := a.Threshold(Uncertainty{Coverage: 0.5, Quantile: 0.6, Threshold: 0.75}); math.Abs(other.Threshold-0.75) > 1e-12 {
			t.Errorf("another target begins with the threshold %v", other.Threshold)
		}
	}
}

// A published set that no label has tested holds the most probable class at least.
func TestUntriedSets(t *testing.T) {
	var a CoverageController
	threshold := NewThreshold(Config{Coverage: 0.9})
	size := func() (least int) {
		u := a.Threshold(threshold.Uncertainty())
		least = 2
		for i := range 100 {
			x := []float64{float64(i)}
			meta := u.Meta([]float64{0.97, 0.03}, 0)
			set := u.AppendSet(nil, []float64{0.97, 0.03}, x)
			if least = min(least, len(set)); meta.Size([]float64{0.97, 0.03}, x) != len(set) {
				t.Errorf("the set %v has another size by its metadata %+v", set, meta)
			}
		}
		return least
	}
	if least := size(); least != 1 {
		t.Errorf("before the first label the smallest of 100 sets has %d classes, want 1", least)
	}
	threshold.Judge([]float64{0.97, 0.03}, []float64{1}, 0)
	threshold.Learn()
	if least := size(); least != 0 {
		t.Errorf("after it the smallest has %d, want 0", least)
	}
}

// Sets that knew no label count as often as the others, and once: the integral is
// 0.05 times the misses above the target over the distance.
func TestFirstLateLabels(t *testing.T) {
	const late = 100
	var a CoverageController
	u := Uncertainty{Coverage: 0.9, Quantile: 0.5, Threshold: 0.5}
	a.Threshold(u)
	misses := 0.0
	for i := range 3 * late {
		holds := i%3 > 0
		misses += excess(!holds, 0.9)
		a.Judge(holds, 1, uint64(max(i-late+1, 0)), uint64(i)+1)
		want := 0.5 + 0.05*misses/late
		if i < late {
			want = 0.5
		}
		if got := a.Threshold(u).Threshold; math.Abs(got-want) > 1e-12 {
			t.Fatalf("threshold %v after %d labels, want %v", got, i+1, want)
		}
	}
	u.NeverEmpty, u.Quantile = true, -9
	if got := a.Threshold(u).Threshold; got != 0 {
		t.Errorf("threshold %v of sets that are never empty, want 0", got)
	}
}

// The state carries the window, the integral and the open minibatch on to the bit;
// another coverage keeps the window, and a state of log odds is read and dropped.
func TestThresholdState(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	feed := func(c *Threshold, from, to int) {
		for i := from; i < to; i++ {
			probs, x, class := sample(float64(i*7%100)/100, i)
			if c.Judge(probs, x, class); (i+1)%16 == 0 {
				c.Learn()
			}
		}
	}
	for _, n := range []int{0, 5, 700} {
		c := NewThreshold(Config{Coverage: 0.9})
		feed(&c, 0, n)
		var e wire.Encoder
		c.Encode(&e)
		read := NewThreshold(Config{Coverage: 0.9})
		d := wire.NewDecoder(e.Buf, "", wire.ErrState)
		if read.Decode(d, 16); d.End() != nil {
			t.Fatal(d.End())
		}
		feed(&c, n, n+40)
		feed(&read, n, n+40)
		if c.Uncertainty() != read.Uncertainty() {
			t.Errorf("after %d labels: %+v, want %+v", n, read.Uncertainty(), c.Uncertainty())
		}
		other := NewThreshold(Config{Coverage: 0.8})
		d = wire.NewDecoder(e.Buf, "", wire.ErrState)
		if other.Decode(d, 16); d.End() != nil || other.shift != 0 || len(other.ring) != min(n/16*16, windowLabels) {
			t.Errorf("another coverage: %v, %+v", d.End(), other.Uncertainty())
		}
		if n%16 == 0 {
			continue
		}
		d = wire.NewDecoder(e.Buf, "", wire.ErrState)
		if other.Decode(d, n%16-1); d.Err() == nil {
			t.Errorf("a minibatch of %d labels was read, of at most %d", n%16, n%16-1)
		}
	}
	var old wire.Encoder
	old.Float(0.9)
	old.Float(-3.5)
	old.Int(3)
	for range 3 {
		old.Float32(float64(float32(rng.NormFloat64())))
	}
	old.Int(0)
	d := wire.NewDecoder(old.Buf, "", wire.ErrState)
	if DecodeLogOdds(d); d.End() != nil {
		t.Errorf("a state of log odds: %v", d.End())
	}
}
