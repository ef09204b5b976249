package eval

import (
	"maps"
	"math"
	"slices"
	"testing"

	"edge/internal/dataset"
	"edge/model"
	"edge/online"
	"edge/test/harness"
)

// Probabilities of true classes are those of labels without the learnt label noise.
func TestJudgeByTruth(t *testing.T) {
	table, err := dataset.LoadTable(harness.TableFile(t, "table.csv", 200), dataset.Format{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := online.DefaultConfig()
	cfg.Features, cfg.Inducing, cfg.LabelNoise = table.Features, 10, online.LabelNoise{Start: 0.15, Max: 0.2}
	e := Evaluation{}
	part, counted := table.Samples(table.All()), 0
	learner, err := e.learn(t.Context(), cfg, part, func(n int) { counted += n })
	if err != nil {
		t.Fatal(err)
	}
	if counted != 200 {
		t.Errorf("progress of %d rows of 200", counted)
	}
	p := learner.Posterior()
	want, eps := 0.0, p.Eps()
	for i := range part.Len() {
		x := make([]float64, len(table.Features))
		part.Row(i, x)
		probs, _, err := p.PredictTo(nil, x, model.NewWorkspace())
		if err != nil {
			t.Fatal(err)
		}
		// in the classes' order of the learner, which is the table's here
		v := (probs[part.Class(i)] - eps/3) / (1 - eps)
		want -= math.Log(max(v, 1e-6)) / float64(part.Len())
	}
	s, err := judgeAll(p, table.Classes, part, true)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(eps-0.15) > 1e-12 || math.Abs(s.NLL-want) > 1e-9 {
		t.Errorf("ε %g, log loss %.12f, want %.12f", eps, s.NLL, want)
	}
}

// Classes that were not learnt count in the scores, each by itself.
func TestJudgeOfUnknownClasses(t *testing.T) {
	table, err := dataset.LoadTable(harness.TableFile(t, "table.csv", 200), dataset.Format{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := online.DefaultConfig()
	cfg.Features, cfg.Inducing, cfg.Classes.Names = table.Features, 10, table.Classes[:1]
	var first []int
	want := map[string]uint64{}
	for i, k := range table.Labels {
		want[table.Classes[k]]++
		if k == 0 {
			first = append(first, i)
		}
	}
	e := Evaluation{}
	learner, err := e.learn(t.Context(), cfg, table.Samples(first), func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	s, err := judgeAll(learner.Posterior(), table.Classes, table.Samples(table.All()), false)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]uint64{}
	for _, c := range s.PerClass {
		got[c.Class] = c.N
	}
	if f1 := 2 * float64(len(first)) / float64(len(first)+200) / 3; !maps.Equal(got, want) || math.Abs(s.MacroF1-f1) > 1e-12 {
		t.Errorf("classes %v, macro-F1 %g; want %v, %g", got, s.MacroF1, want, f1)
	}
}

// The splits of cross-validation judge every row once; those of holdout share
// no row between learning and judging.
func TestSplits(t *testing.T) {
	s := Splits{Fraction: 0.7, Repeats: 5, Seed: 3}
	for _, mode := range []string{"holdout", "cv"} {
		all, err := s.cut(mode, &dataset.Table{Labels: make([]int, 23)})
		if err != nil {
			t.Fatal(err)
		}
		judged, learnt := map[int]int{}, 0
		for i := range all.n {
			one := all.at(i)
			learnt += len(one.learn)
			rows := slices.Sorted(slices.Values(append(slices.Clone(one.learn), one.judge...)))
			if len(rows) != 23 || len(slices.Compact(rows)) != 23 {
				t.Errorf("%s: %v and %v", mode, one.learn, one.judge)
			}
			for _, r := range one.judge {
				judged[r]++
			}
		}
		if learnt != all.learnt {
			t.Errorf("%s: %d rows are learnt, not %d", mode, learnt, all.learnt)
		}
		for r := range 23 {
			if mode == "cv" && judged[r] != 1 {
				t.Errorf("row %d is judged %d times", r, judged[r])
			}
		}
	}
}

// Each split is made when it is needed: those of a large table do not fit in memory together.
func TestManySplits(t *testing.T) {
	s := Splits{Fraction: 0.5, Repeats: 50_000, Seed: 3}
	for _, mode := range []string{"holdout", "cv"} {
		all, err := s.cut(mode, &dataset.Table{Labels: make([]int, s.Repeats)})
		if err != nil || all.n != s.Repeats {
			t.Fatalf("%s: %d splits, %v", mode, all.n, err)
		}
		if last := all.at(all.n - 1); len(last.learn)+len(last.judge) != s.Repeats || mode == "cv" && len(last.judge) != 1 {
			t.Errorf("%s: the last split learns %d rows and judges %d", mode, len(last.learn), len(last.judge))
		}
	}
}

func TestFlip(t *testing.T) {
	table, err := dataset.LoadTable(harness.TableFile(t, "table.csv", 3000), dataset.Format{})
	if err != nil {
		t.Fatal(err)
	}
	p := table.Samples(table.All())
	p.Flip(0.3, 1)
	changed := 0
	for i := range p.Len() {
		if p.Class(i) != table.Labels[i] {
			changed++
		}
	}
	if share := float64(changed) / 3000; math.Abs(share-0.3*2/3) > 0.03 { // a third is drawn as it was
		t.Errorf("%.3f of the labels have changed, want about 0.2", share)
	}
}
