package online

import (
	"math"
	"math/rand/v2"
	"testing"

	"edge/online/conformal"
)

// Sets and abstentions of a stream of events are judged as they were published, late
// or not, over classes that appear; the state carries them.
func TestUncertainty(t *testing.T) {
	cfg := testConfig(3)
	cfg.Abstain.ConfidenceBelow = 0.6
	l := newTestLearner(t, cfg)
	rng := rand.New(rand.NewPCG(9, 9))
	for i := range 1500 {
		ev := blob(rng, 3)
		if i%7 == 6 { // a late label is judged by the rules that were published
			ev.Probs, _, _ = l.Posterior().PredictTo(nil, ev.X, &l.ws)
			ev.Meta = conformal.PredictionMeta{Ruled: true, Abstained: true, Sets: true, Threshold: 50} // all classes
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

	// Another coverage carries on with the window, and begins the sum again.
	state, _ := l.AppendBinary(nil)
	cfg.Conformal.Coverage = 0.8
	other, err := Restore(cfg, state)
	if err != nil {
		t.Fatal(err)
	}
	if was, now := l.Uncertainty(), other.Uncertainty(); now.Threshold != now.Quantile || now.Threshold >= was.Quantile {
		t.Errorf("uncertainty %+v, was %+v", now, was)
	}
	cfg.Conformal.Coverage = 0
	if off, err := Restore(cfg, state); err != nil || off.Uncertainty().Coverage != 0 {
		t.Errorf("without sets: %+v, %v", off.Uncertainty(), err)
	}
}
