package online

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// movedConfig is that of a process alone: neither forest nor regression nor the order of the
// labels recover in its place.
func movedConfig() Config {
	cfg := testConfig(3, "a", "b", "c")
	cfg.Inducing, cfg.Window, cfg.Batch.MaxSize = 12, 20, 16
	cfg.Temporal, cfg.Experts = TemporalOff, Experts{Regression: Off, Forest: NoForest}
	return cfg
}

// all moves every feature of a sample, as another sensor gives it.
func all(x []float64) {
	for j := range x {
		x[j] = 3*x[j] + 200
	}
}

// judged feeds n samples that change moves, and returns the log loss of their predictions, and
// what was calibrated.
func judged(l *Learner, rng *rand.Rand, n int, change func(x []float64)) (loss float64, calibrated []string) {
	for range n {
		ev := blob(rng, 3)
		change(ev.X)
		p, _ := l.Predict(ev.X)
		loss -= math.Log(max(p.Probs[slices.Index(p.Classes, ev.Label)], 1e-6)) / float64(n)
		if out := l.Add(&ev); out.Calibrated != "" {
			calibrated = append(calibrated, out.Calibrated)
		}
	}
	return loss, calibrated
}

// A process recovers from sensors that give features in another range, within some labels.
func TestCalibratesFeaturesThatMoved(t *testing.T) {
	for name, c := range map[string]struct {
		change func(x []float64)
		names  []string
	}{
		"all":      {all, []string{"f0", "f1", "f2"}},
		"one":      {func(x []float64) { x[1] = 3*x[1] + 200 }, []string{"f1"}},
		"offset":   {func(x []float64) { x[0] -= 1e6 }, []string{"f0"}},
		"unit":     {func(x []float64) { x[0], x[2] = 1000*x[0], 1000*x[2] }, []string{"f0", "f2"}},
		"constant": {func(x []float64) { x[1] = 1e9 }, []string{"f1"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, batch := range []int{1, 16, 100} {
				cfg := movedConfig()
				cfg.Batch.MaxSize = batch
				l, rng := newTestLearner(t, cfg), rand.New(rand.NewPCG(3, 3))
				feed(l, rng, 600)
				before, _ := judged(l, rng, 200, func([]float64) {})
				_, calibrated := judged(l, rng, 200, c.change)
				if len(calibrated) == 0 || l.Counters().Calibrations != uint64(len(calibrated)) {
					t.Fatalf("batches of %d: calibrated %q, counted %d", batch, calibrated, l.Counters().Calibrations)
				}
				for _, name := range c.names {
					if !strings.Contains(calibrated[0], name+": gain ") {
						t.Errorf("batches of %d: %q lacks %s", batch, calibrated[0], name)
					}
				}
				if strings.Count(calibrated[0], "gain") != len(c.names) {
					t.Errorf("batches of %d: %q, want %v alone", batch, calibrated[0], c.names)
				}
				limit := before + 0.15
				if name == "constant" { // the others have to do
					limit = before + 0.6
				}
				if after, _ := judged(l, rng, 300, c.change); after > limit {
					t.Errorf("batches of %d: log loss %.3f after the move, %.3f before", batch, after, before)
				}
				checkSound(t, l)
			}
		})
	}
}

// A feature that comes back to the range in which it was learnt is not calibrated any more.
func TestCalibrationEnds(t *testing.T) {
	l, rng := newTestLearner(t, movedConfig()), rand.New(rand.NewPCG(4, 4))
	feed(l, rng, 600)
	before, _ := judged(l, rng, 200, func([]float64) {})
	judged(l, rng, 300, all)
	if l.view.Calibration == nil {
		t.Fatal("not calibrated")
	}
	_, calibrated := judged(l, rng, 100, func([]float64) {})
	if l.view.Calibration != nil || len(calibrated) != 1 || !strings.Contains(calibrated[0], "as it was learnt") {
		t.Errorf("calibration %v, told %q", l.view.Calibration, calibrated)
	}
	if after, _ := judged(l, rng, 300, func([]float64) {}); after > before+0.15 {
		t.Errorf("log loss %.3f, %.3f before", after, before)
	}
}

// What has no information about the labels calibrates nothing, for however long it comes.
func TestGarbageIsNotCalibrated(t *testing.T) {
	for name, change := range map[string]func(rng *rand.Rand, i int, x []float64){
		"noise": func(rng *rand.Rand, _ int, x []float64) {
			x[0], x[1], x[2] = 1e9*rng.NormFloat64(), 1e9*rng.NormFloat64(), 1e9*rng.NormFloat64()
		},
		"all broken": func(_ *rand.Rand, _ int, x []float64) { x[0], x[1], x[2] = 1e9, -1e9, 1e300 },
		"every third": func(_ *rand.Rand, i int, x []float64) {
			if i%3 == 0 {
				all(x)
			}
		},
		"some rows": func(_ *rand.Rand, i int, x []float64) {
			if i < 10 {
				all(x)
			}
		},
		"other classes": func(rng *rand.Rand, _ int, x []float64) {
			all(x)
			rng.Shuffle(3, func(i, j int) { x[i], x[j] = x[j], x[i] })
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, rng := newTestLearner(t, movedConfig()), rand.New(rand.NewPCG(5, 5))
			feed(l, rng, 600)
			i := 0
			if _, calibrated := judged(l, rng, 1000, func(x []float64) { change(rng, i, x); i++ }); len(calibrated) > 0 {
				t.Errorf("calibrated %q", calibrated)
			}
			if n := l.calibrator.held.len(); n >= lastTrial {
				t.Errorf("%d samples are held", n)
			}
			checkSound(t, l)
		})
	}
}

// A learner goes on exactly from its state at every label around a move.
func TestCalibrationExactly(t *testing.T) {
	cfg := testConfig(3, "a", "b", "c")
	cfg.Experts.Forest = SmallForest
	l, rng := newTestLearner(t, cfg), rand.New(rand.NewPCG(6, 6))
	feed(l, rng, 300)
	var events []Event
	for i := range 240 {
		ev := blob(rng, 3)
		if i < 120 {
			all(ev.X)
		}
		if ev.Weight = 0.5 + rng.Float64(); i%7 == 0 {
			ev.X[1] = math.NaN()
		}
		events = append(events, ev)
		if i%40 == 21 {
			ev.Kind, ev.Name, ev.Label = Correct, ev.Label, "a"
			events = append(events, ev)
		}
	}
	for i := range events {
		if i%3 == 0 {
			goesOn(t, cfg, newCopy(t, cfg, l), events[i:min(i+12, len(events))])
		}
		l.Add(&events[i])
	}
	if n := l.Counters().Calibrations; n != 2 {
		t.Errorf("%d calibrations, want 2", n)
	}
}

// newCopy returns a learner of the same state.
func newCopy(t *testing.T, cfg Config, l *Learner) *Learner {
	t.Helper()
	c, err := Restore(cfg, stateOf(l))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A class that is removed leaves the samples that are held.
func TestHeldSamplesOfARemovedClass(t *testing.T) {
	cfg := movedConfig()
	cfg.Batch.MaxSize = 4
	l, rng := newTestLearner(t, cfg), rand.New(rand.NewPCG(7, 7))
	feed(l, rng, 600)
	judged(l, rng, 8, all)
	if l.calibrator.held.len() != 8 {
		t.Fatalf("%d samples are held, want 8", l.calibrator.held.len())
	}
	if out := l.Add(&Event{Kind: ClassRemove, Label: "b"}); out.Refused != nil {
		t.Fatal(out.Refused)
	}
	if slices.Contains(l.calibrator.held.y, 2) || l.calibrator.held.len() == 8 {
		t.Errorf("held classes %v", l.calibrator.held.y)
	}
	checkSound(t, l)
}

// A calibration that fails leaves the learner as it was, also where the last minibatch is larger than
// the room for held samples that a state between two minibatches has.
func TestFailedCalibrationIsUndone(t *testing.T) {
	cfg := movedConfig()
	l, rng := newTestLearner(t, cfg), rand.New(rand.NewPCG(10, 10))
	feed(l, rng, 600)
	l.calibrator.restart(0)
	before := stateOf(l)
	held := &l.calibrator.held
	for range lastTrial + cfg.Batch.MaxSize {
		held.x, held.y, held.w = append(held.x, blob(rng, 3).X...), append(held.y, 0), append(held.w, 1)
	}
	held.d = 4 // learning them panics
	if err := l.setCalibration(l.view.Calibration.Clone(3), false); err == nil || l.calibrator.due != lastTrial {
		t.Errorf("error %v, the next trial is due at %d samples", err, l.calibrator.due)
	}
	if l.calibrator.restart(0); !bytes.Equal(stateOf(l), before) {
		t.Error("the learner has changed")
	}
}

// What a learner publishes to a fleet stays in the units that its members have in common.
func TestContributionIsInTheUnitsOfTheModel(t *testing.T) {
	cfg := movedConfig()
	l, rng := newTestLearner(t, cfg), rand.New(rand.NewPCG(8, 8))
	feed(l, rng, 600)
	scale := func() []float64 {
		c, err := l.Contribution("m")
		if err != nil {
			t.Fatal(err)
		}
		return append(slices.Clone(c.Scale.Mu), c.Scale.Sd...)
	}
	before := scale()
	judged(l, rng, 200, all)
	if l.view.Calibration == nil || !slices.Equal(before, scale()) {
		t.Errorf("calibration %v, scaling %v, before %v", l.view.Calibration, scale(), before)
	}
}

// A damaged section is refused.
func TestDamagedCalibration(t *testing.T) {
	l, rng := newTestLearner(t, movedConfig()), rand.New(rand.NewPCG(9, 9))
	feed(l, rng, 600)
	judged(l, rng, 100, all)
	l.view.Calibration.Gain[1] = 0
	if _, err := Restore(l.cfg, bytes.Clone(stateOf(l))); err == nil || !strings.Contains(err.Error(), "gain") {
		t.Errorf("error %v", err)
	}
}
