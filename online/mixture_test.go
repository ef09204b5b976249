package online

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model"
	"edge/test/golden"
)

// walk draws labels that usually follow a rule of their own, and features that
// hardly depend on them.
func walk(rng *rand.Rand, last *int, step func(int) int) Event {
	if rng.Float64() < 0.95 {
		*last = step(*last)
	} else {
		*last = rng.IntN(3)
	}
	x := []float64{rng.NormFloat64(), rng.NormFloat64()}
	x[0] += float64(*last) / 2
	return Event{Kind: Observe, X: x, Label: string(rune('a' + *last))}
}

func stay(k int) int  { return k }
func cycle(k int) int { return (k + 1) % 3 }

// scored returns the log loss on 2000 labels that follow step.
func scored(t *testing.T, temporal Temporal, step func(int) int, late bool) float64 {
	cfg := testConfig(2, "a", "b", "c")
	cfg.Temporal = temporal
	l := newTestLearner(t, cfg)
	rng := rand.New(rand.NewPCG(4, 4))
	var last int
	var ws model.Workspace
	for range 2000 {
		ev := walk(rng, &last, step)
		if late {
			ev.Probs, _, _ = l.Posterior().PredictTo(nil, ev.X, &ws)
			ev.Parts = ws.AppendParts(nil)
		}
		l.Add(&ev)
	}
	checkSound(t, l)
	return l.Scores().NLL
}

// Labels that follow each other in an order are predicted by it; where the order
// is no information, or is not known in time, it costs nothing.
func TestTemporal(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	random := func(int) int { return rng.IntN(3) }
	for name, c := range map[string]struct {
		step     func(int) int
		late     bool
		min, max float64 // of the gain, nats a label
	}{
		"labels stay":             {stay, false, 0.3, 1.1},
		"labels cycle":            {cycle, false, 0.3, 1.1},
		"labels have no order":    {random, false, -0.01, 0.01},
		"labels come later":       {stay, true, -0.01, 0.01},
		"labels cycle, and later": {cycle, true, -0.01, 0.01},
	} {
		t.Run(name, func(t *testing.T) {
			rng = rand.New(rand.NewPCG(5, 5))
			off := scored(t, TemporalOff, c.step, c.late)
			rng = rand.New(rand.NewPCG(5, 5))
			auto := scored(t, TemporalAuto, c.step, c.late)
			if gain := off - auto; gain < c.min || gain > c.max {
				t.Errorf("nll %.4f without the order of labels, %.4f with it: gain %.4f, want %g to %g", off, auto, gain, c.min, c.max)
			}
			if c.min > 0 {
				if on := scored(t, TemporalOn, c.step, c.late); on > off-c.min {
					t.Errorf("nll %.4f with the order of labels always on, %.4f without", on, off)
				}
			}
		})
	}
}

// waves draws labels of which one is frequent for 200 samples, and features
// that hardly depend on them.
func waves(l *Learner, n int) {
	rng := rand.New(rand.NewPCG(6, 6))
	for i := range n {
		k := rng.IntN(3)
		if rng.Float64() < 0.7 {
			k = i / 200 % 3
		}
		l.Add(&Event{Kind: Observe, X: []float64{rng.NormFloat64() + float64(k)/2, rng.NormFloat64()}, Label: string(rune('a' + k))})
	}
}

// Classes that come in waves, which the order of two labels hardly predicts, give
// the recent labels a part in the answer; a restored learner carries on in the same
// bytes; a class that is removed takes its recent labels along.
func TestStackLearnsWaves(t *testing.T) {
	cfg := testConfig(2, "a", "b", "c")
	l := newTestLearner(t, cfg)
	waves(l, 3000)
	s := &l.view.Pool.Stack
	if latest := s.Ordered.Exponents[len(cfg.Horizons)+2]; latest < 0.25 || s.Ordered.Weight < 0.9 {
		t.Errorf("exponent of the latest labels %.3f, weight %.3f", latest, s.Ordered.Weight)
	}
	data, _ := l.AppendBinary(nil)
	again, err := Restore(cfg, data)
	if err != nil {
		t.Fatal(err)
	}
	waves(l, 203)
	waves(again, 203)
	if l.Digest() != again.Digest() {
		t.Error("the restored learner carries on in another way")
	}
	l.Add(&Event{Kind: Boundary})
	recent := l.view.Pool.Order.Recent
	kept := []float64{recent[0], recent[2]}
	if out := l.Add(&Event{Kind: ClassRemove, Label: "b"}); out.Refused != nil {
		t.Fatal(out.Refused)
	}
	if got := l.view.Pool.Order.Recent; len(got) != 2*len(model.RecentMemories) || !slices.Equal(got[:2], kept) {
		t.Errorf("latest labels %v, want %v first", got, kept)
	}
	checkSound(t, l)
	off := testConfig(2, "a", "b", "c")
	off.Temporal = TemporalOff
	if l, err = Restore(off, data); err != nil {
		t.Fatal(err)
	}
	if l.view.Pool.Order.Recent != nil {
		t.Error("the latest labels count although their order does not")
	}
}

// Where labels are requested the blend has a part of the weight for samples without a place in
// the order of the labels; where they are not requested any more, the blend that was
// learnt meanwhile counts whole.
func TestStackWhereLabelsAreAskedFor(t *testing.T) {
	cfg := testConfig(2, "a", "b")
	cfg.Passes = fewPasses
	l := newTestLearner(t, cfg)
	trend(l, 0, 500)
	part := l.view.Pool.Stack.Plain.Weight
	data, _ := l.AppendBinary(nil)
	cfg.Passes = 0
	again, err := Restore(cfg, data)
	if err != nil {
		t.Fatal(err)
	}
	if got := again.view.Pool.Stack.Plain.Weight; part == 0 || part > 0.9*got {
		t.Errorf("weight %v, without requests %v", part, got)
	}
}

// cornerBlobs learns n samples of three classes around corners.
func cornerBlobs(l *Learner, n int) {
	rng := rand.New(rand.NewPCG(3, 3))
	for i := range n {
		k := i * 7 % 3
		l.Add(&Event{Kind: Observe, X: []float64{2*float64(k%2) + rng.NormFloat64(), 2*float64(k/2) + rng.NormFloat64()}, Label: string(rune('a' + k))})
	}
}

// trend learns n samples whose class is the side of a plane on which they lie; they
// wander, so that a kernel has never covered the next ones.
func trend(l *Learner, from, n int) {
	rng := rand.New(rand.NewPCG(8, uint64(from)))
	for i := from; i < from+n; i++ {
		along := float64(i)/40 + rng.NormFloat64()
		side := rng.NormFloat64()
		label := "a"
		if side > 0 {
			label = "b"
		}
		l.Add(&Event{Kind: Observe, X: []float64{along + side, along - side}, Label: label})
	}
}

// The regression learns trends; restored, it carries on in the same bytes, also where
// the order of labels does not count any more.
func TestRegressionLearnsTrends(t *testing.T) {
	cfg := testConfig(2, "a", "b")
	cfg.Experts.Forest = NoForest // it learns trends as well
	l := newTestLearner(t, cfg)
	trend(l, 0, 1500)
	s := &l.view.Pool.Stack
	at := len(cfg.Horizons)
	if ordered, plain := s.Ordered.Exponents[at], s.Plain.Exponents[at]; ordered < 0.3 || plain < 0.3 {
		t.Errorf("exponents of the regression %.3f and %.3f", ordered, plain)
	}
	data, _ := l.AppendBinary(nil)
	w, plain := slices.Clone(s.Linear.W), s.Plain.Exponents[at]
	again, err := Restore(cfg, data)
	if err != nil {
		t.Fatal(err)
	}
	trend(l, 1500, 203)
	trend(again, 1500, 203)
	if l.Digest() != again.Digest() {
		t.Error("the restored learner carries on in another way")
	}
	checkSound(t, l)
	off := cfg
	off.Temporal = TemporalOff
	if l, err = Restore(off, data); err != nil {
		t.Fatal(err)
	}
	if s := l.view.Pool.Stack; !slices.Equal(s.Linear.W, w) || s.Plain.Exponents[at] != plain {
		t.Errorf("without the order of labels the weights are %v and the exponent %v, want %v and %v", s.Linear.W, s.Plain.Exponents[at], w, plain)
	}
	trend(l, 1500, 50)
	checkSound(t, l)
}

// A class that is added begins with weights of 0, one that is removed takes its
// weights along.
func TestRegressionClasses(t *testing.T) {
	cfg := testConfig(2, "a", "b", "c")
	l := newTestLearner(t, cfg)
	cornerBlobs(l, 2*cfg.warmup())
	l.Add(&Event{Kind: Boundary})
	before := slices.Clone(l.view.Pool.Stack.Linear.W)
	if out := l.Add(&Event{Kind: ClassAdd, Label: "d"}); out.Refused != nil {
		t.Fatal(out.Refused)
	}
	golden.Close(t, "weights with a fourth class", l.view.Pool.Stack.Linear.W, append(slices.Clone(before), 0, 0, 0), 0)
	if out := l.Add(&Event{Kind: ClassRemove, Label: "b"}); out.Refused != nil {
		t.Fatal(out.Refused)
	}
	golden.Close(t, "weights without the second", l.view.Pool.Stack.Linear.W, append(slices.Concat(before[:3], before[6:]), 0, 0, 0), 0)
	cornerBlobs(l, 50) // b is new again
	checkSound(t, l)
}

// Labels of which three in ten are random have a log loss near to that of the right
// probabilities, 0.658: clear samples are as sure as their labels let them be.
func TestWrongLabels(t *testing.T) {
	const rows, judged, random = 4000, 2000, 0.3
	l := newTestLearner(t, testConfig(2, "a", "b", "c"))
	rng := rand.New(rand.NewPCG(6, 6))
	var loss float64
	var ws model.Workspace
	for i := range rows {
		k := rng.IntN(3)
		x := []float64{4*float64(k) + rng.NormFloat64(), 2*float64(k%2) + rng.NormFloat64()}
		if rng.Float64() < random {
			k = rng.IntN(3)
		}
		if i >= rows-judged {
			p, _, err := l.Posterior().PredictTo(nil, x, &ws)
			if err != nil {
				t.Fatal(err)
			}
			loss -= math.Log(p[k]) / judged
		}
		l.Add(&Event{Kind: Observe, X: x, Label: string(rune('a' + k))})
	}
	checkSound(t, l)
	if want := 0.665; loss > want {
		t.Errorf("log loss %.4f, want %.3f at most", loss, want)
	}
}
