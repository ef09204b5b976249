package online

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// What adwin keeps are sums over an end of the stream, and the means that it
// reports are those of the parts.
func TestADWINAgainstAList(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	a := &adwin{delta: 0.002}
	var all []float64
	var found []int
	for i := range 4000 {
		x := 0.2 + 0.1*rng.Float64()
		if i >= 1500 {
			x += 0.1
		}
		if i >= 3000 {
			x -= 0.15
		}
		all = append(all, x)
		if a.add(x).level == Drifted {
			found = append(found, i)
		}
		if i%97 != 0 {
			continue
		}
		n, sum, square := a.total()
		window := all[len(all)-int(n):]
		var mean, want float64
		for _, v := range window {
			mean += v / float64(n)
		}
		for _, v := range window {
			want += (v - mean) * (v - mean)
		}
		if math.Abs(sum-mean*float64(n)) > 1e-9 || math.Abs(square-want) > 1e-9 {
			t.Fatalf("after %d: sum %v, squares %v of %d, want %v, %v", i+1, sum, square, n, mean*float64(n), want)
		}
	}
	if len(found) == 0 || found[0] < 1500 || found[0] > 1600 || found[len(found)-1] >= 3000 {
		t.Errorf("found at %v, want soon after 1500, and nothing after 3000: a fall is no alarm", found)
	}
	if n, _, _ := a.total(); n > 1100 {
		t.Errorf("the window holds %d numbers, 1000 came since the fall", n)
	}
}

// Where nothing changes adwin hardly ever says that something did, and it needs
// little more than its bound to see a jump.
func TestADWINFalseAlarms(t *testing.T) {
	alarms := 0
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 2))
		a := &adwin{delta: 0.002}
		for range 3000 {
			x := 0.0
			if rng.Float64() < 0.2 {
				x = 1
			}
			if a.add(x).level == Drifted {
				alarms++
			}
		}
	}
	if alarms > 5 {
		t.Errorf("%d false alarms in 300 000 numbers", alarms)
	}
}

// Page-Hinkley by its definition, from a list.
func TestPageHinkleyAgainstAList(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	p := &pageHinkley{lambda: 50}
	var all []float64
	var sum, lowest float64
	for i := range 2000 {
		x := rng.NormFloat64()
		if i >= 1000 {
			x += 1
		}
		all = append(all, x)
		got := p.add(x)
		var mean, square float64
		for _, v := range all {
			mean += v / float64(len(all))
		}
		for _, v := range all {
			square += (v - mean) * (v - mean) / float64(len(all))
		}
		if len(all) >= pageFirst {
			sum += (x-mean)/math.Sqrt(square) - pageTolerance
			lowest = min(lowest, sum)
		}
		want := Steady
		switch {
		case sum-lowest > 50:
			want = Drifted
		case sum-lowest > 25:
			want = Warning
		}
		if got.level != want {
			t.Fatalf("after %d: %v, want %v (rise %v)", i+1, got.level, want, sum-lowest)
		}
		if want == Drifted {
			if i < 1000 || i > 1150 || got.after < got.before+0.5 || got.since > 200 {
				t.Errorf("drift at %d: %+v", i, got)
			}
			return
		}
	}
	t.Error("the jump was not found")
}

// driftingEvents are two blobs that change places every so often.
func driftingEvent(rng *rand.Rand, i, every int) Event {
	k := rng.IntN(2)
	ev := Event{Kind: Observe, X: []float64{rng.NormFloat64(), rng.NormFloat64() + 5*float64(k)}, Label: string(rune('a' + (k+i/every)%2))}
	return ev
}

// A drift is found, told once and cools down; whatever is done about it, a
// learner that is encoded and decoded on its way does the same.
func TestDriftCarriesOnExactly(t *testing.T) {
	for _, d := range []Drift{
		{Detector: ADWIN, On: OnLogLoss, Action: ActionNone},
		{Detector: ADWIN, On: OnError, Action: ActionForget},
		{Detector: PageHinkley, On: OnLogLoss, Action: ActionReseed},
		{Detector: PageHinkley, On: OnNovelty, Action: ActionRollback},
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
			if out.Change != again.Change || out.Detail != again.Detail || straight.Doubt() != broken.Doubt() {
				t.Fatalf("%+v after %d: %+v, restored %+v", d, i+1, out, again)
			}
			if out.Refused != nil {
				t.Fatal(out.Refused)
			}
			if out.Change == NoticeDrift {
				drifts = append(drifts, i)
				if straight.Doubt().Drift != Drifted || out.Detail == "" {
					t.Errorf("%+v: level %v, detail %q", d, straight.Doubt().Drift, out.Detail)
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
		if d.On != OnNovelty && (len(drifts) != 1 || drifts[0] < 800 || drifts[0] > 900) { // features that stay are no novelty
			t.Errorf("%+v: drifts at %v, want one soon after 800", d, drifts)
		}
		if level := straight.Doubt().Drift; level != Steady {
			t.Errorf("%+v: level %v long after the drift", d, level)
		}
		checkSound(t, straight)

		// Another detector begins anew; none keeps nothing.
		state, _ := straight.AppendBinary(nil)
		other := cfg
		other.Drift.Delta, other.Drift.Lambda = 0.1, 77 // of either
		l, err := Restore(other, state)
		if err != nil {
			t.Fatal(err)
		}
		if a, ok := l.watch.detector.(*adwin); ok {
			if n, _, _ := a.total(); n != 0 || a.delta != 0.1 {
				t.Errorf("detector of before: %d numbers, delta %v", n, a.delta)
			}
		}
		other.Drift.Detector = DetectorOff
		if l, err = Restore(other, state); err != nil || l.watch.detector != nil {
			t.Errorf("without a detector: %v", err)
		}
	}
}

// A rollback for a drift takes the model back and leaves what is of the stream.
func TestReplaceOnlyTheModel(t *testing.T) {
	l := newTestLearner(t, testConfig(3))
	rng := rand.New(rand.NewPCG(5, 5))
	feed(l, rng, 300)
	state, _ := l.AppendBinary(nil)
	before := l.Posterior()
	feed(l, rng, 200)
	scores, doubt := l.Scores(), l.Doubt()
	if out := l.Add(&Event{Kind: Replace, Name: OnlyModel, State: state}); out.Refused != nil || out.Change != NoticeRolledBack {
		t.Fatalf("%+v", out)
	}
	if l.Scores().N != scores.N || l.Scores().NLL != scores.NLL || l.Doubt() != doubt {
		t.Errorf("scores of %d, want %d; %+v, want %+v", l.Scores().N, scores.N, l.Doubt(), doubt)
	}
	if p := l.Posterior(); p.Version() != before.Version() || !slices.Equal(p.Bank[0].Mean, before.Bank[0].Mean) {
		t.Error("the model is not that of before")
	}
	checkSound(t, l)
}
