package conformal

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
)

// slowScores computes the scores of all classes from a sorted list.
func slowScores(probs []float64, u float64) (order []int, scores []float64) {
	for k := range probs {
		order = append(order, k)
	}
	sort.SliceStable(order, func(i, j int) bool { return probs[order[i]] > probs[order[j]] })
	scores = make([]float64, len(probs))
	above := 0.0
	for _, k := range order {
		scores[k] = math.Min(above+u*probs[k], 1)
		above += probs[k]
	}
	return order, scores
}

// randomProbs draws probabilities of which some may be equal or 0.
func randomProbs(rng *rand.Rand, classes int) []float64 {
	probs, sum := make([]float64, classes), 0.0
	for k := range probs {
		probs[k] = float64(rng.IntN(4)) + float64(rng.IntN(2))*rng.ExpFloat64()
		sum += probs[k]
	}
	for k := range probs {
		probs[k] /= max(sum, 1e-9)
	}
	return probs
}

// Scores, sets, sizes and membership are those of a sorted list, equal and zero
// probabilities included; sets are nested in the threshold.
func TestRanking(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		probs, x := randomProbs(rng, rng.IntN(7)), []float64{rng.NormFloat64()}
		order, scores := slowScores(probs, dither(x))
		var smaller []int
		for _, threshold := range []float64{-0.1, 0, 0.2, 0.5, 0.9, 0.999, 1} {
			for _, never := range []bool{false, true} {
				var want []int
				for i, k := range order {
					if scores[k] <= threshold || never && i == 0 {
						want = append(want, k)
					}
				}
				u := Uncertainty{Coverage: 0.9, Threshold: threshold, NeverEmpty: never}
				got := u.AppendSet(nil, probs, x)
				if !slices.Equal(got, want) {
					t.Fatalf("%v at %v, never empty %v: set %v, want %v", probs, threshold, never, got, want)
				}
				m := u.Meta(probs, 0)
				if n := m.Size(probs, x); n != len(want) {
					t.Errorf("%v at %v: size %d, want %d", probs, threshold, n, len(want))
				}
				for k := range len(probs) + 2 {
					if got := m.Holds(probs, x, k); got != slices.Contains(want, k) {
						t.Errorf("%v at %v: holds %d: %v, set %v", probs, threshold, k, got, want)
					}
				}
				if !never {
					if !slices.Equal(got[:len(smaller)], smaller) {
						t.Errorf("set %v at %v does not begin with the smaller set %v", got, threshold, smaller)
					}
					smaller = got
				}
			}
		}
		for k, want := range scores {
			if got := scoreOf(k, probs, x); got != want {
				t.Errorf("score of %d in %v: %v, want %v", k, probs, got, want)
			}
		}
		if got := scoreOf(len(probs), probs, x); got != 1 {
			t.Errorf("score of a class that is not known: %v, want 1", got)
		}
		if len(smaller) != len(probs) {
			t.Errorf("the threshold 1 gives %v of %d classes", smaller, len(probs))
		}
	}
}

// The dither is uniform over different features, by Kolmogorov's statistic, and
// does not depend on how NaN and 0 are written.
func TestDither(t *testing.T) {
	const n = 4000
	for name, x := range map[string]func(i int) []float64{
		"counting":  func(i int) []float64 { return []float64{float64(i), 3} },
		"last of 8": func(i int) []float64 { return []float64{1, 2, 3, 4, 5, 6, 7, float64(i) / 8} },
		"missing":   func(i int) []float64 { return []float64{math.NaN(), 1e-3 * float64(i)} },
	} {
		var all []float64
		for i := range n {
			u := dither(x(i))
			if !(u >= 0 && u < 1) {
				t.Fatalf("%s: dither %v", name, u)
			}
			all = append(all, u)
		}
		slices.Sort(all)
		var d float64
		for i, u := range all {
			d = max(d, float64(i+1)/n-u, u-float64(i)/n)
		}
		if d > 1.95/math.Sqrt(n) { // exceeded with probability 0.001
			t.Errorf("%s: distance %v from the uniform distribution", name, d)
		}
	}
	odd := math.Float64frombits(math.Float64bits(math.NaN()) ^ 5<<40)
	if dither([]float64{odd, 0}) != dither([]float64{math.NaN(), math.Copysign(0, -1)}) {
		t.Error("the dither depends on the bits of NaN or the sign of 0")
	}
}

// Under the true probabilities the score of the label is uniform: a threshold
// covers as much as it says, also within the easy and the hard samples.
func TestScoreIsUniform(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	const n = 20000
	var covered [2]int
	for i := range n {
		probs := []float64{0.97, 0.02, 0.01}
		if i%2 == 1 {
			probs = []float64{0.3, 0.4, 0.1, 0.2}
		}
		label, v := 0, rng.Float64()
		for v -= probs[0]; v > 0 && label < len(probs)-1; v -= probs[label] {
			label++
		}
		if scoreOf(label, probs, []float64{float64(i)}) <= 0.8 {
			covered[i%2]++
		}
	}
	for i, c := range covered {
		if got := float64(c) / (n / 2); math.Abs(got-0.8) > 0.013 { // 3 standard deviations
			t.Errorf("kind %d: coverage %v, want 0.8", i, got)
		}
	}
}

// Walking and appending into room that is there allocates nothing.
func TestSetsDoNotAllocate(t *testing.T) {
	u := Uncertainty{Coverage: 0.9, Threshold: 0.95}
	x, probs, set := []float64{1, 2}, []float64{0.5, 0.2, 0.1, 0.2}, make([]int, 0, 4)
	m := u.Meta(probs, 0)
	if n := testing.AllocsPerRun(100, func() {
		set = u.AppendSet(set[:0], probs, x)
		m.Decide(probs, x, 2)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
