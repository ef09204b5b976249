package online

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"edge/model"
	"edge/online/fleet"
)

// TestClassesByRequest walks through the effects of commands on the list of classes.
func TestClassesByRequest(t *testing.T) {
	cfg := testConfig(2, "a", "b")
	cfg.Classes.Open, cfg.Classes.Max = false, 4
	l := newTestLearner(t, cfg)
	x := []float64{1, 2}
	for _, step := range []struct {
		ev    Event
		names []string // after it
		err   error
	}{
		{Event{Kind: Observe, X: x, Label: "c"}, []string{"a", "b"}, ErrClass},
		{Event{Kind: ClassAdd, Label: "c"}, []string{"a", "b", "c"}, nil},
		{Event{Kind: ClassAdd, Label: "c"}, []string{"a", "b", "c"}, ErrClass},
		{Event{Kind: ClassAdd, Label: ""}, []string{"a", "b", "c"}, ErrClass},
		{Event{Kind: Observe, X: x, Label: "c"}, []string{"a", "b", "c"}, nil},
		{Event{Kind: ClassRename, Label: "a", Name: "b"}, []string{"a", "b", "c"}, ErrClass},
		{Event{Kind: ClassRename, Label: "z", Name: "y"}, []string{"a", "b", "c"}, ErrClass},
		{Event{Kind: ClassRename, Label: "a", Name: "A"}, []string{"A", "b", "c"}, nil},
		{Event{Kind: Observe, X: x, Label: "a"}, []string{"A", "b", "c"}, nil}, // the old name still refers to it
		{Event{Kind: ClassAdd, Label: "a"}, []string{"A", "b", "c", "a"}, nil}, // until it is a class of its own
		{Event{Kind: ClassAdd, Label: "d"}, []string{"A", "b", "c", "a"}, ErrClass},
		{Event{Kind: ClassRemove, Label: "b"}, []string{"A", "c", "a"}, nil},
		{Event{Kind: ClassRemove, Label: "b"}, []string{"A", "c", "a"}, ErrClass},
		{Event{Kind: Observe, X: x, Label: "b"}, []string{"A", "c", "a"}, ErrClass},
		{Event{Kind: ClassRename, Label: "c", Name: "A"}, []string{"A", "c", "a"}, ErrClass},
		{Event{Kind: ClassRename, Label: "A", Name: "A"}, []string{"A", "c", "a"}, nil},
		{Event{Kind: 99}, []string{"A", "c", "a"}, ErrKind},
	} {
		out := l.Add(&step.ev)
		if !errors.Is(out.Refused, step.err) || (out.Refused == nil) != (step.err == nil) {
			t.Errorf("%+v: refused %v, want %v", step.ev, out.Refused, step.err)
		}
		if got := l.Posterior().Classes(); !slices.Equal(got, step.names) {
			t.Errorf("%+v: classes %v, want %v", step.ev, got, step.names)
		}
		state, _ := l.AppendBinary(nil)
		back, err := Restore(cfg, state) // the declared b must not come back
		if err != nil || back.Digest() != l.Digest() || !slices.Equal(back.classes.names, step.names) {
			t.Fatalf("%+v: restored %v with classes %v, want %v", step.ev, err, back.classes.names, step.names)
		}
	}
	if got := l.Posterior().Counts; !slices.Equal(got, []uint64{1, 1, 0}) {
		t.Errorf("counts %v: one sample under the old name, one of c", got)
	}
}

// TestRemoveClass: the other classes are unchanged.
func TestRemoveClass(t *testing.T) {
	for _, kernel := range []Kernel{Shared, PerClass} {
		t.Run(string(kernel), func(t *testing.T) {
			cfg := testConfig(3)
			cfg.Kernel = kernel
			l := newTestLearner(t, cfg)
			feed(l, rand.New(rand.NewPCG(1, 1)), 900)
			before := l.Scores()
			if out := l.Add(&Event{Kind: ClassRemove, Label: "b"}); out.Refused != nil || out.Change != "class_removed" {
				t.Fatalf("%+v", out)
			}
			checkSound(t, l)
			s := l.Scores()
			if len(s.Matrix) != 2 || s.Matrix[0][1] != before.Matrix[slices.Index(before.Classes, s.Classes[0])][slices.Index(before.Classes, s.Classes[1])] {
				t.Errorf("confusion %v of %v after %v of %v", s.Matrix, s.Classes, before.Matrix, before.Classes)
			}
			if s.N != before.N || s.NLL != before.NLL {
				t.Errorf("the scores of predictions that were made changed: %+v, then %+v", before, s)
			}
			// A fresh learner of the two classes errs about as often.
			fresh := newTestLearner(t, cfg)
			rng := rand.New(rand.NewPCG(2, 2))
			var wrong, freshWrong int
			ws := model.NewWorkspace()
			for range 600 {
				ev := blob(rng, 3)
				if ev.Label == "b" {
					continue
				}
				for _, one := range []struct {
					l *Learner
					n *int
				}{{l, &wrong}, {fresh, &freshWrong}} {
					probs, _, _ := one.l.Posterior().PredictTo(nil, ev.X, ws)
					if len(probs) == 0 || one.l.classes.names[slices.Index(probs, slices.Max(probs))] != ev.Label {
						*one.n++
					}
					one.l.Add(&ev)
				}
			}
			if wrong > freshWrong+10 {
				t.Errorf("%d errors of 400 with a removed class behind it, %d without", wrong, freshWrong)
			}
			checkSound(t, l)
			// One class remains at least.
			if out := l.Add(&Event{Kind: ClassRemove, Label: "a"}); out.Refused != nil {
				t.Fatal(out.Refused)
			}
			checkSound(t, l)
			if out := l.Add(&Event{Kind: ClassRemove, Label: "c"}); !errors.Is(out.Refused, ErrClass) {
				t.Errorf("the last class went: %+v", out)
			}
			feed(l, rng, 100)
			checkSound(t, l)
		})
	}
}

// TestConfirm: a label is a class when the configured number of samples carry it;
// they are judged and learnt then, and other labels are dropped in time.
func TestConfirm(t *testing.T) {
	cfg := testConfig(2, "a", "b")
	cfg.Classes.Confirm = 3
	l := newTestLearner(t, cfg)
	add := func(label string) Outcome { return l.Add(&Event{Kind: Observe, X: []float64{1, 2}, Label: label}) }
	for range 4 {
		add("a")
	}
	for i, want := range []string{"", "", "new"} {
		if out := add("new"); out.ClassAdded != want || out.Refused != nil {
			t.Fatalf("sample %d of a new label: %+v", i+1, out)
		}
		wantN := uint64(4)
		if want != "" {
			wantN = 7
		}
		if s := l.Scores(); s.N != wantN || s.Error != float64(wantN-4)/float64(wantN) {
			t.Errorf("after sample %d: %d judged, error %g", i+1, s.N, s.Error)
		}
	}
	for i := range maxUnconfirmed + 1 {
		add(fmt.Sprint("typo ", i))
		add(fmt.Sprint("typo ", i))
	}
	if out := add("typo 0"); out.ClassAdded != "" || l.Counters().CandidatesDropped != 2 {
		t.Errorf("the oldest candidate should have been forgotten: %+v, %+v", out, l.Counters())
	}
	if out := add(fmt.Sprint("typo ", maxUnconfirmed)); out.ClassAdded == "" {
		t.Errorf("the newest candidate should have been confirmed: %+v", out)
	}
	if out := l.Add(&Event{Kind: ClassAdd, Label: "typo 9"}); out.ClassAdded != "typo 9" {
		t.Errorf("a request confirms: %+v", out)
	}
	if got := l.Posterior().Counts[slices.Index(l.classes.names, "typo 9")]; got != 2 {
		t.Errorf("%d samples of the label that a request confirmed, want 2", got)
	}
}

// TestCorrect: a wrong label in the window is removed without a trace; one that has
// left the window is only outvoted.
//
// Long: four cases share a stream.
func TestCorrect(t *testing.T) {
	cfg := testConfig(2, "a", "b")
	cfg.LearningRate, cfg.Window, cfg.Inducing = 0, 60, 16
	cfg.LabelNoise = LabelNoise{Start: 0, Max: 0.2}
	cfg.Temporal = TemporalOff
	cfg.Horizons = []Horizon{Horizon(math.Inf(1))}
	sample := func(rng *rand.Rand) Event {
		x := []float64{rng.NormFloat64(), rng.NormFloat64()}
		return Event{Kind: Observe, X: x, Label: map[bool]string{true: "a", false: "b"}[x[0] > 0]}
	}
	odd := Event{Kind: Observe, X: []float64{1.5, 0.2}, Label: "b"} // deep in a
	wrongAt := func(l *Learner) float64 {
		probs, _, err := l.Posterior().PredictTo(nil, odd.X, model.NewWorkspace())
		if err != nil {
			t.Fatal(err)
		}
		return probs[l.classes.index["b"]]
	}
	run := func(after int, bad bool) *Learner {
		l, rng := newTestLearner(t, cfg), rand.New(rand.NewPCG(5, 5))
		for range 200 {
			ev := sample(rng)
			l.Add(&ev)
		}
		if bad {
			l.Add(&odd)
		}
		l.Add(&Event{Kind: Boundary})
		for range after {
			ev := sample(rng)
			l.Add(&ev)
		}
		l.Add(&Event{Kind: Boundary})
		return l
	}
	right := Event{Kind: Correct, X: odd.X, Label: "a", Name: "b", Probs: []float64{0.9, 0.1}}
	for _, c := range []struct {
		name       string
		after      int
		regression Switch // keeps its step along the wrong label
		exact      bool
		within     float64
	}{{"in the window", 20, Off, true, 0.002}, {"in the window, with a regression", 20, On, true, 0.01}, {"absorbed", 200, On, false, 0}} {
		t.Run(c.name, func(t *testing.T) {
			cfg.Experts.Regression = c.regression
			clean, dirty := run(c.after, false), run(c.after, true)
			learnt := wrongAt(dirty)
			want := Event{Kind: Observe, X: odd.X, Label: "a"}
			clean.Add(&want)
			clean.Add(&Event{Kind: Boundary})
			scores := dirty.Scores()
			out := dirty.Add(&right)
			if out.Refused != nil || out.Change != "label_corrected" {
				t.Fatalf("%+v", out)
			}
			ideal, got := wrongAt(clean), wrongAt(dirty)
			switch {
			case c.exact && math.Abs(got-ideal) > c.within:
				t.Errorf("p(wrong) was %.4f, is %.4f, and %.4f if it had not been learnt", learnt, got, ideal)
			case !c.exact && !(got < learnt):
				t.Errorf("p(wrong) was %.4f, is %.4f", learnt, got)
			}
			if n := dirty.Counters(); (n.CorrectionsExact == 1) != c.exact || n.CorrectionsExact+n.CorrectionsAdded != 1 {
				t.Errorf("counters %+v", n)
			}
			if got, want := dirty.Posterior().Counts, clean.Posterior().Counts; !slices.Equal(got, want) {
				t.Errorf("counts %v, want %v", got, want)
			}
			s := dirty.Scores()
			if s.N != scores.N || s.Matrix[0][0] != scores.Matrix[0][0]+1 || s.Error >= scores.Error {
				t.Errorf("the prediction was judged by the wrong label: %+v, and then %+v", scores, s)
			}
			checkSound(t, dirty)
		})
	}
	t.Run("in the warm-up", func(t *testing.T) {
		clean, dirty := newTestLearner(t, cfg), newTestLearner(t, cfg)
		rng := rand.New(rand.NewPCG(6, 6))
		for i := range 30 {
			ev := sample(rng)
			clean.Add(&ev)
			dirty.Add(&ev)
			if i == 20 {
				dirty.Add(&odd)
				dirty.Add(&right)
				want := Event{Kind: Observe, X: odd.X, Label: "a"}
				clean.Add(&Event{Kind: Boundary})
				clean.Add(&want)
				clean.Add(&Event{Kind: Boundary})
			}
		}
		if diff := cmp.Diff(clean.warmup.x, dirty.warmup.x); diff != "" || !slices.Equal(clean.warmup.y, dirty.warmup.y) {
			t.Errorf("the buffer of the warm-up differs: %s, %v and %v", diff, clean.warmup.y, dirty.warmup.y)
		}
	})
}

// TestEarlierPredictions: a label that comes after its prediction's classes have
// changed is judged over the present classes.
func TestEarlierPredictions(t *testing.T) {
	var r registry
	r.change([]int{0, -1, 1}) // b of a, b, c is removed
	r.change([]int{-1, 0})    // a of a, c is removed
	for _, c := range []struct {
		epoch uint64
		probs []float64
		want  []float64
	}{
		{0, []float64{0.5, 0.25, 0.25}, []float64{1}},
		{1, []float64{0.75, 0.25}, []float64{1}},
		{1, []float64{1}, nil},
		{2, []float64{0.5, 0.5}, []float64{0.5, 0.5}},
		{7, []float64{1}, nil},
	} {
		if got := r.translate(c.probs, c.epoch); !slices.Equal(got, c.want) {
			t.Errorf("%v of epoch %d: %v, want %v", c.probs, c.epoch, got, c.want)
		}
	}
	for range 100 {
		r.change([]int{0})
	}
	if len(r.past) != maxEpochs {
		t.Errorf("%d epochs are remembered, want %d", len(r.past), maxEpochs)
	}
	if r.now(0, 0) != -1 || r.now(0, 101) != 0 {
		t.Errorf("class 0 of epoch 0 is %d, of epoch 101 %d", r.now(0, 0), r.now(0, 101))
	}
}

// TestReplaceAndReset: a rolled-back model is the earlier one, but can read the
// predictions made meanwhile.
func TestReplaceAndReset(t *testing.T) {
	cfg := testConfig(3)
	l := newTestLearner(t, cfg)
	rng := rand.New(rand.NewPCG(8, 8))
	feed(l, rng, 300)
	l.Add(&Event{Kind: Boundary})
	state, _ := l.AppendBinary(nil)
	probs, _, _ := l.Posterior().PredictTo(nil, []float64{9, 12, 15}, model.NewWorkspace())
	feed(l, rng, 100)
	l.Add(&Event{Kind: Observe, X: []float64{1, 1, 1}, Label: "new"})
	if out := l.Add(&Event{Kind: Replace, State: state}); out.Refused != nil || out.Change != "model_rolled_back" {
		t.Fatalf("%+v", out)
	}
	again, _, _ := l.Posterior().PredictTo(nil, []float64{9, 12, 15}, model.NewWorkspace())
	if !slices.Equal(probs, again) || l.Scores().N != 300 {
		t.Errorf("rolled back to %v after %d samples, want %v after 300", again, l.Scores().N, probs)
	}
	l.Add(&Event{Kind: Observe, X: []float64{1, 1, 1}, Label: l.classes.names[0], Probs: []float64{0.7, 0.1, 0.1, 0.1}, Epoch: 0})
	if s := l.Scores(); s.N != 301 || len(s.Classes) != 3 {
		t.Errorf("an earlier prediction: %+v", s)
	}
	checkSound(t, l)
	if out := l.Add(&Event{Kind: Replace, State: state[:100]}); !errors.Is(out.Refused, ErrState) {
		t.Errorf("half a state: %+v", out)
	}
	l.Add(&Event{Kind: Reset})
	if p := l.Posterior(); p.Version() != 0 || len(p.Classes()) != 0 || p.Epoch != 2 || l.Scores().N != 0 {
		t.Errorf("after a reset: %d samples, classes %v, epoch %d", p.Version(), p.Classes(), p.Epoch)
	}
}

// TestEveryKindCarriesOnExactly plays random events of every kind: encoding and
// decoding the learner in between has no effect on the rest.
func TestEveryKindCarriesOnExactly(t *testing.T) {
	seeds := uint64(4)
	if testing.Short() {
		seeds = 2 // an emulated processor takes a minute for one
	}
	for _, kernel := range []Kernel{Shared, PerClass} {
		for seed := range seeds {
			cfg := testConfig(3, "a", "b")
			cfg.Kernel, cfg.Classes.Confirm, cfg.Classes.Max, cfg.Seed = kernel, 1+int(seed%3), 6, seed+1
			straight, broken := newTestLearner(t, cfg), newTestLearner(t, cfg)
			rng := rand.New(rand.NewPCG(seed, 77))
			var states [][]byte
			var learnt []Event
			labels := []string{"a", "b", "c", "d", "e", "f", "g"}
			label := func() string { return labels[rng.IntN(len(labels))] }
			for i := range 500 {
				ev := blob(rng, 3)
				if rng.IntN(5) == 0 {
					ev.X[rng.IntN(3)] = math.NaN()
				}
				switch n := rng.IntN(100); {
				case n < 70:
				case n < 76:
					ev.Label = label()
				case n < 80: // a label that comes late
					ev.Probs = []float64{0.5, 0.5}
					ev.Epoch = uint64(rng.IntN(int(straight.classes.epoch) + 1))
					if rng.IntN(2) == 0 { // without them the sample weighs nothing
						var ws model.Workspace
						post := straight.Posterior()
						post.PredictNextTo(nil, ev.X, rng.IntN(3), &ws)
						ev.Parts, ev.Epoch = ws.AppendParts(nil), post.Epoch
					}
				case n < 82:
					ev = Event{Kind: Boundary}
				case n < 85:
					ev = Event{Kind: ClassAdd, Label: label()}
				case n < 88:
					ev = Event{Kind: ClassRemove, Label: label()}
				case n < 91:
					ev = Event{Kind: ClassRename, Label: label(), Name: label()}
				case n < 97 && len(learnt) > 0:
					ev = learnt[max(0, len(learnt)-1-rng.IntN(30))]
					ev.Kind, ev.Name, ev.Label, ev.Probs = Correct, ev.Label, label(), []float64{1}
				case n == 98 && i > 300 && len(states) > 0:
					ev = Event{Kind: Replace, State: states[rng.IntN(len(states))]}
				case n == 99 && i > 400:
					ev = Event{Kind: Reset}
				}
				if ev.Kind == Observe {
					learnt = append(learnt, ev)
				}
				straight.Add(&ev)
				broken.Add(&ev)
				if rng.IntN(8) == 0 {
					state, _ := broken.AppendBinary(nil)
					states = append(states, state)
					var err error
					if broken, err = Restore(cfg, state); err != nil {
						t.Fatalf("seed %d after %d events: %v", seed, i+1, err)
					}
				}
				if i%4 != 3 {
					continue // a difference stays
				}
				if a, b := straight.Digest(), broken.Digest(); a != b {
					t.Fatalf("%s, seed %d: digests differ after %d events, the last %+v", kernel, seed, i+1, ev)
				}
			}
			if straight.classes.epoch == 0 || straight.counters.CorrectionsExact == 0 && straight.counters.Steps > 50 {
				t.Errorf("seed %d met too little: epoch %d, %+v", seed, straight.classes.epoch, straight.counters)
			}
			checkSound(t, straight)
		}
	}
}

// A correction may confirm a label with more samples than a minibatch has room for.
func TestCorrectionConfirms(t *testing.T) {
	cfg := testConfig(3)
	cfg.Batch.MaxSize, cfg.Classes.Confirm = 2, 5
	l, rng := newTestLearner(t, cfg), rand.New(rand.NewPCG(1, 2))
	feed(l, rng, 100)
	for range 5 {
		ev := blob(rng, 3)
		l.Add(&ev)
		if out := l.Add(&Event{Kind: Correct, X: ev.X, Name: ev.Label, Label: "new"}); out.Refused != nil {
			t.Error(out.Refused)
		}
	}
	if k, known := l.classes.index["new"]; !known || l.view.Counts[k] != 5 {
		t.Errorf("classes %q, counts %v", l.classes.names, l.view.Counts)
	}
}

// A correction of a sample that was judged before a reset does not change the scores.
func TestCorrectionAfterAReset(t *testing.T) {
	l, rng := newTestLearner(t, testConfig(3, "a", "b", "c")), rand.New(rand.NewPCG(1, 2))
	feed(l, rng, 60)
	ev := blob(rng, 3)
	ev.Label = "a"
	p, err := l.Predict(ev.X)
	if err != nil {
		t.Fatal(err)
	}
	l.Add(&ev)
	l.Add(&Event{Kind: Reset})
	l.Add(&Event{Kind: Correct, X: ev.X, Name: "a", Label: "b", Probs: p.Probs})
	for range 10 {
		ev := blob(rng, 3)
		ev.Label = "c"
		l.Add(&ev)
	}
	for _, c := range l.Scores().PerClass {
		if c.N > 10 {
			t.Errorf("%s was judged %d times, of 10", c.Class, c.N)
		}
	}
}

// The counts of classes that a merge has brought, for their weights, follow names and
// corrections.
func TestClassesOfAMerge(t *testing.T) {
	cfg := fleetConfig()
	cfg.Fleet.Unseen, cfg.ClassWeights.Mode, cfg.Classes.Confirm = MixUnseen, Balanced, 3
	set := fleet.NewSet(0)
	for i := range 2 {
		set.Put(contribution(t, taught(t, fleetConfig(), uint64(10+i), 300, "c0", "c1"), fmt.Sprint("m", i), 1))
	}
	x := []float64{1, 0}
	for name, events := range map[string][]Event{
		"renamed twice, by the first name": {{Kind: ClassRename, Label: "c0", Name: "x"}, {Kind: ClassRename, Label: "c0", Name: "y"}},
		"its first label is a correction": {
			{Kind: Observe, X: x, Label: "typo"}, {Kind: Correct, X: x, Name: "typo", Label: "c0"},
		},
	} {
		l := taught(t, cfg, 1, 0)
		merged(t, l, set)
		for i := range events {
			if out := l.Add(&events[i]); out.Refused != nil {
				t.Fatalf("%s: %v", name, out.Refused)
			}
		}
		teach(l, 3, 40, "c0", "c1")
		if _, err := Restore(cfg, stateOf(l)); err != nil || len(l.classes.imported) > 0 {
			t.Errorf("%s: %v, brought %v", name, err, l.classes.imported)
		}
	}
}
