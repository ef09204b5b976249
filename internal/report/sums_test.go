package report

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/online/score"
)

// The scores of each tenth are those of its samples alone.
func TestTenths(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var all score.Judge
	var got Tenths
	for i := range 10 {
		var part score.Judge
		for range 3 + i {
			p, class := rng.Float64(), rng.IntN(2)
			all.Add([]float64{p, 1 - p}, class)
			part.Add([]float64{p, 1 - p}, class)
		}
		got.Add(all.Scores([]string{"a", "b"}))
		want := part.Scores([]string{"a", "b"})
		if at := got.List[i]; at.N != want.N || math.Abs(float64(at.Error)-want.Error) > 1e-12 || math.Abs(float64(at.NLL)-want.NLL) > 1e-12 {
			t.Errorf("tenth %d: %d samples, error %v, log loss %v; want %d, %v, %v", i, at.N, at.Error, at.NLL, want.N, want.Error, want.NLL)
		}
	}
}

// Charts of several runs add up the samples of each class, in whatever order the runs have them.
func TestPool(t *testing.T) {
	first := &Report{Charts: Charts{
		Matrix: [][]uint64{{5, 1}, {2, 8}}, PerClass: []score.ClassScore{{Class: "idle", N: 6}, {Class: "busy", N: 10}},
		Reliability: []score.Bin{{N: 4, Confidence: 0.5, Accuracy: 0.25}, {}},
	}}
	second := &Report{Charts: Charts{
		Matrix: [][]uint64{{3, 0, 1}, {0, 4, 0}, {1, 0, 2}}, PerClass: []score.ClassScore{{Class: "busy", N: 4}, {Class: "off", N: 4}, {Class: "idle", N: 3}},
		Reliability: []score.Bin{{N: 12, Confidence: 0.7, Accuracy: 0.75}, {N: 1, Confidence: 0.9, Accuracy: 1}},
	}}
	got := pool([]*Report{first, second})
	want := [][]uint64{{7, 2, 0}, {3, 11, 0}, {0, 0, 4}}
	if !slices.EqualFunc(got.Matrix, want, slices.Equal) {
		t.Errorf("matrix %v, want %v", got.Matrix, want)
	}
	for k, c := range []struct {
		name              string
		n                 uint64
		precision, recall float64
	}{{"idle", 9, 7. / 10, 7. / 9}, {"busy", 14, 11. / 13, 11. / 14}, {"off", 4, 1, 1}} {
		s := got.PerClass[k]
		if s.Class != c.name || s.N != c.n || math.Abs(float64(s.Precision)-c.precision) > 1e-12 || math.Abs(float64(s.Recall)-c.recall) > 1e-12 || math.Abs(float64(s.Prevalence)-float64(c.n)/27) > 1e-12 {
			t.Errorf("%+v, want %+v of 27", s, c)
		}
	}
	for i, want := range []score.Bin{{N: 16, Confidence: 0.65, Accuracy: 0.625}, {N: 1, Confidence: 0.9, Accuracy: 1}} {
		if b := got.Reliability[i]; b.N != want.N || math.Abs(b.Confidence-want.Confidence) > 1e-12 || math.Abs(b.Accuracy-want.Accuracy) > 1e-12 {
			t.Errorf("bin %d: %+v, want %+v", i, b, want)
		}
	}
}
