package drift

import (
	"math"
	"math/rand/v2"
	"testing"

	"edge/online/wire"
)

// The buckets of adwin sum up the latest part of the stream, and the means that it
// reports are those of its parts.
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

// adwin dates a change and tells the means on both sides of it.
func TestADWINDatesTheChange(t *testing.T) {
	const seeds, jump, low, high = 200, 1000, 0.1, 0.4
	var late, before, after float64
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 5))
		a := &adwin{delta: 0.002}
		found := alarm{}
		for i := 0; found.level < Drifted; i++ {
			if i > 3*jump {
				t.Fatalf("seed %d: the change is not found", seed)
			}
			x := 0.0
			if p := rng.Float64(); p < low || i >= jump && p < high {
				x = 1
			}
			if found = a.add(x); found.level == Drifted {
				late += math.Abs(float64(found.since)-float64(i+1-jump)) / seeds
				before, after = before+found.before/seeds, after+found.after/seeds
			}
		}
	}
	if late > 20 || math.Abs(before-low) > 0.02 || math.Abs(after-high) > 0.04 {
		t.Errorf("the date is wrong by %.1f numbers; the means are %.3f and %.3f, want %v and %v", late, before, after, low, high)
	}
}

// On a stream without a change adwin rarely gives an alarm.
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

// One wrong label of a good model is no change, however many were right before it; many are,
// and the date is that of the first.
func TestOneWrongLabelIsNoChange(t *testing.T) {
	for _, on := range []Signal{OnError, OnLogLoss} {
		for _, right := range []int{300, 2600, 10000} {
			c := Default()
			c.Detector, c.On = PageHinkley, on
			m := New(c)
			add := func(wrong bool) (Change, bool) {
				if wrong {
					return m.Add(Sample{LogLoss: 5, Wrong: true}, true)
				}
				return m.Add(Sample{LogLoss: 0.002}, true)
			}
			for range right {
				add(false)
			}
			for i := range 40 {
				if change, changed := add(i == 0); changed {
					t.Errorf("%s: one wrong label after %d right ones is a change: %s", on, right, change.Detail)
				}
			}
			found := false
			for i := range 40 {
				change, changed := add(i%2 == 0)
				if found = found || changed && change.Level == Drifted; changed && (change.Since > uint64(i+41)) {
					t.Errorf("%s: after %d wrong labels the change was %d labels ago", on, i/2+1, change.Since)
				}
			}
			if !found {
				t.Errorf("%s: half of 40 labels are wrong after %d right ones, and nothing is reported", on, right)
			}
		}
	}
}

// A monitor reports a drift, keeps the level for the cooldown, and survives
// encoding at any moment.
func TestMonitor(t *testing.T) {
	for _, cfg := range []Config{
		{Detector: ADWIN, On: OnError, Delta: 0.05, Lambda: 30, Cooldown: 100, Action: ActionForget},
		{Detector: PageHinkley, On: OnLogLoss, Delta: 0.05, Lambda: 30, Cooldown: 100, Action: ActionReseed},
	} {
		rng := rand.New(rand.NewPCG(4, 4))
		m, broken := New(cfg), New(cfg)
		drifts := 0
		for i := range 1600 {
			p := 0.1
			if i >= 800 {
				p = 0.9
			}
			s := Sample{Wrong: rng.Float64() < p, LogLoss: 4 * p * rng.Float64()}
			c, changed := m.Add(s, true)
			if again, also := broken.Add(s, true); again != c || also != changed {
				t.Fatalf("%+v after %d: %+v, restored %+v", cfg, i, c, again)
			}
			if changed && c.Level == Drifted {
				drifts++
				if i < 800 || m.Level() != Drifted || c.Detail == "" || math.IsInf(m.Horizon(), 1) == (cfg.Action == ActionForget) {
					t.Errorf("%+v: drift at %d, %+v, horizon %v", cfg, i, c, m.Horizon())
				}
				if due := m.TakeReseed(); due != (cfg.Action == ActionReseed) || m.TakeReseed() {
					t.Errorf("%+v: reseed %v", cfg, due)
				}
				broken.TakeReseed()
			}
			var e wire.Encoder
			broken.Encode(&e)
			broken = New(cfg)
			d := wire.NewDecoder(e.Buf, "", wire.ErrState)
			if broken.Decode(d); d.End() != nil {
				t.Fatal(d.Err())
			}
		}
		if drifts == 0 || m.Drifts() != uint64(drifts) || m.Level() != Steady || !math.IsInf(m.Horizon(), 1) {
			t.Errorf("%+v: %d drifts, at the end level %v, horizon %v", cfg, drifts, m.Level(), m.Horizon())
		}
	}
}

// Another configuration begins with an empty detector; none keeps no state.
func TestMonitorOfAnotherConfig(t *testing.T) {
	cfg := Default()
	m := New(cfg)
	for range 100 {
		m.Add(Sample{LogLoss: 1}, true)
	}
	var e wire.Encoder
	m.Encode(&e)
	cfg.Delta = 0.1
	other := New(cfg)
	d := wire.NewDecoder(e.Buf, "", wire.ErrState)
	other.Decode(d)
	if n, _, _ := other.detector.(*adwin).total(); d.End() != nil || n != 0 || other.detector.(*adwin).delta != 0.1 {
		t.Errorf("%v: %d numbers of the detector before", d.Err(), n)
	}
	cfg.Detector = Off
	off := New(cfg)
	if off.Decode(wire.NewDecoder(e.Buf, "", wire.ErrState)); off.detector != nil {
		t.Error("a detector although it is off")
	}
	e = wire.Encoder{}
	if off.Encode(&e); len(e.Buf) > 0 {
		t.Errorf("%d bytes without a detector", len(e.Buf))
	}
}
