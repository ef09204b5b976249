package online

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/online/drift"
)

// driftingEvent draws from two blobs that change places after every events.
func driftingEvent(rng *rand.Rand, i, every int) Event {
	k := rng.IntN(2)
	ev := Event{Kind: Observe, X: []float64{rng.NormFloat64(), rng.NormFloat64() + 5*float64(k)}, Label: string(rune('a' + (k+i/every)%2))}
	return ev
}

// A drift is found, reported once and cools down; with every action, a learner that
// is encoded and decoded in between does the same.
func TestDriftCarriesOnExactly(t *testing.T) {
	for _, d := range []drift.Config{
		{Detector: drift.ADWIN, On: drift.OnLogLoss, Action: drift.ActionNone},
		{Detector: drift.ADWIN, On: drift.OnError, Action: drift.ActionForget},
		{Detector: drift.PageHinkley, On: drift.OnLogLoss, Action: drift.ActionReseed},
		{Detector: drift.PageHinkley, On: drift.OnNovelty, Action: drift.ActionRollback},
	} {
		cfg := testConfig(2)
		d.Delta, d.Lambda, d.Cooldown = 0.05, 30, 100
		cfg.Drift = d
		straight, broken := newTestLearner(t, cfg), newTestLearner(t, cfg)
		rng := rand.New(rand.NewPCG(4, 4))
		var drifts []int
		for i := range 1600 {
			ev := driftingEvent(rng, i, 800)
			out := straight.Add(&ev)
			again := broken.Add(&ev)
			if out.Change != again.Change || out.Detail != again.Detail || straight.Uncertainty() != broken.Uncertainty() {
				t.Fatalf("%+v after %d: %+v, restored %+v", d, i+1, out, again)
			}
			if out.Refused != nil {
				t.Fatal(out.Refused)
			}
			if out.Change == NoticeDrift {
				drifts = append(drifts, i)
				if straight.Uncertainty().Drift != drift.Drifted || out.Detail == "" {
					t.Errorf("%+v: level %v, detail %q", d, straight.Uncertainty().Drift, out.Detail)
				}
			}
			if i%23 == 0 || out.Change != "" {
				state, _ := broken.AppendBinary(nil)
				var err error
				if broken, err = Restore(cfg, state); err != nil {
					t.Fatal(err)
				}
			}
		}
		if straight.Digest() != broken.Digest() {
			t.Errorf("%+v: digests differ", d)
		}
		if d.On != drift.OnNovelty && (len(drifts) != 1 || drifts[0] < 800 || drifts[0] > 900) { // features that stay are not novel
			t.Errorf("%+v: drifts at %v, want one soon after 800", d, drifts)
		}
		if level := straight.Uncertainty().Drift; level != drift.Steady {
			t.Errorf("%+v: level %v long after the drift", d, level)
		}
		checkSound(t, straight)

		// Another configuration of the detector is accepted, and none.
		state, _ := straight.AppendBinary(nil)
		other := cfg
		other.Drift.Delta, other.Drift.Lambda = 0.1, 77 // of either
		if _, err := Restore(other, state); err != nil {
			t.Fatal(err)
		}
		other.Drift.Detector = drift.Off
		if l, err := Restore(other, state); err != nil || l.drift.Level() != drift.Steady {
			t.Errorf("without a detector: %v", err)
		}
	}
}

// A rollback for a drift replaces the model and keeps what belongs to the stream.
func TestReplaceOnlyTheModel(t *testing.T) {
	l := newTestLearner(t, testConfig(3))
	rng := rand.New(rand.NewPCG(5, 5))
	feed(l, rng, 301)
	state, _ := l.AppendBinary(nil)
	before := l.Posterior()
	detail := fmt.Sprintf("to %d samples", before.Version()+uint64(l.Pending()))
	if l.Pending() == 0 {
		t.Fatal("no minibatch is open")
	}
	feed(l, rng, 199)
	scores, rules := l.Scores(), l.Uncertainty()
	if out := l.Add(&Event{Kind: Replace, Name: OnlyModel, State: state}); out.Refused != nil || out.Change != NoticeRolledBack || out.Detail != detail {
		t.Fatalf("%+v, want detail %q", out, detail)
	}
	if l.Scores().N != scores.N || l.Scores().NLL != scores.NLL || l.Uncertainty() != rules {
		t.Errorf("scores of %d, want %d; %+v, want %+v", l.Scores().N, scores.N, l.Uncertainty(), rules)
	}
	if p := l.Posterior(); p.Version() != before.Version() || !slices.Equal(p.Bank[0].Mean, before.Bank[0].Mean) {
		t.Error("the model is not the earlier one")
	}
	checkSound(t, l)
}
