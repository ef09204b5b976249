package signal

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const second = int64(time.Second)

// made is a copy of a sample.
type made struct {
	ID, Label string
	Sticky    bool
	X         string
}

func copies(samples []Sample) []made {
	var all []made
	for _, s := range samples {
		all = append(all, made{string(s.ID), s.Label, s.Sticky, fmt.Sprint(s.X)})
	}
	return all
}

func ids(all []made) (out []string) {
	for _, m := range all {
		out = append(out, m.ID)
	}
	return out
}

func newStage(t testing.TB, opts Options) *Stage {
	t.Helper()
	s, err := NewStage(opts, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// config returns the defaults for signals with a window.
func config(signals []string, window func(*Window)) Config {
	c := DefaultConfig()
	c.Signals = signals
	if window != nil {
		window(&c.Window)
	}
	return c
}

// one is a message of one row with a time of its own.
func one(device string, t int64, label string, x ...float64) *Message {
	return &Message{Device: device, Own: true, Arrived: t, Rows: []Row{{Time: t, X: x, Label: label}}}
}

func TestWindowsByCount(t *testing.T) {
	s := newStage(t, Options{Config: config([]string{"x"}, func(w *Window) {
		w.Length, w.Hop, w.MaxGap, w.Features = Span{Rows: 4}, Span{Rows: 2}, 5*time.Second, Choice{All: []string{"mean", "min", "max"}}
	})})
	var got []made
	at := int64(100)
	for i := range 9 {
		if i == 5 {
			at += 6 // a gap
		}
		at++
		got = append(got, copies(s.Take(one("p", at*second, "", float64(i))))...)
	}
	// Rows 0 to 3; then the gap after row 4; rows 5 to 8.
	want := []made{{"p#104000", "", false, "[1.5 0 3]"}, {"p#115000", "", false, "[6.5 5 8]"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if n := s.Counts().Gaps.Load(); n != 1 {
		t.Errorf("%d gaps", n)
	}
}

func TestRepetitionsAndClocks(t *testing.T) {
	s := newStage(t, Options{LateMessages: 3, Config: config([]string{"x"}, func(w *Window) {
		w.Length, w.MaxGap = Span{Rows: 4}, 5*time.Second
	})})
	for i := range int64(3) {
		s.Take(one("p", (1000+i)*second, "", 0))
		s.Take(one("p", (1000+i)*second, "", 9)) // again
	}
	if n := s.Counts().Late.Load(); n != 3 {
		t.Errorf("%d rows are late, want 3", n)
	}
	got := copies(s.Take(one("p", 1003*second, "", 1)))
	if len(got) != 1 || got[0].ID != "p#1003000" {
		t.Errorf("repetitions changed the window: %v", got)
	}
	// The clock of the device is set back by an hour: after three rows it is believed.
	got = nil
	for i := range int64(8) {
		got = append(got, copies(s.Take(one("p", (i-3000)*second, "", 1)))...)
	}
	if n := s.Counts().SetBack.Load(); n != 1 {
		t.Errorf("%d clocks were set back, want 1", n)
	}
	if want := []string{"p#-2994000"}; !slices.Equal(ids(got), want[:1]) {
		t.Errorf("windows %v, want %v", ids(got), want)
	}
}

// windowsByTime is a slow reference: windows [k·hop, k·hop+length) of rows sorted by time
// whose silences are at most gap.
func windowsByTime(times []int64, length, hop, gap int64, fewest int) (ends []int64) {
	for from := 0; from < len(times); {
		to := from + 1
		for to < len(times) && times[to]-times[to-1] <= gap {
			to++
		}
		last := times[to-1]
		for k := ceilTo(times[from], hop); ; k += hop {
			if k+length > last { // no row ends it
				break
			}
			n := 0
			for _, at := range times[from:to] {
				if at >= k && at < k+length {
					n++
				}
			}
			if n >= fewest {
				ends = append(ends, k+length)
			}
		}
		from = to
	}
	return ends
}

func TestWindowsByTimeMatchAReference(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		length := (1 + rng.Int64N(5)) * second
		hop := length / (1 + rng.Int64N(3))
		gap := second/2 + rng.Int64N(5*second)
		var times []int64
		at := rng.Int64N(100 * second)
		for range 300 {
			at += 1 + rng.Int64N(second)
			if rng.IntN(40) == 0 {
				at += rng.Int64N(20 * second)
			}
			times = append(times, at)
		}
		s := newStage(t, Options{Config: config([]string{"x"}, func(w *Window) {
			w.Length, w.Hop, w.MaxGap, w.MinRows = Span{Time: time.Duration(length)}, Span{Time: time.Duration(hop)}, time.Duration(gap), 2
		})})
		var got []string
		for _, at := range times {
			got = append(got, ids(copies(s.Take(one("", at, "", rng.Float64()))))...)
		}
		var want []string
		for _, end := range windowsByTime(times, length, hop, gap, 2) {
			want = append(want, fmt.Sprintf("@%d", end/int64(time.Millisecond)))
		}
		for i := range want { // equal milliseconds have a number
			if i > 0 && want[i] == want[i-1] {
				want[i] += ".1"
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %d windows %v, want %d %v", seed, len(got), got, len(want), want)
		}
	}
}

func TestResampledWindow(t *testing.T) {
	s := newStage(t, Options{Config: config([]string{"x"}, func(w *Window) {
		w.Length, w.Hop, w.MinRows, w.Resample = Span{Time: 4 * time.Second}, Span{Time: 4 * time.Second}, 1, time.Second
		w.MaxGap, w.Features = time.Minute, Choice{All: []string{"mean", "min", "max", "last"}}
	})})
	var got []made
	for _, r := range []struct {
		at float64
		x  float64
	}{{7.5, 10}, {9.5, 20}, {10.5, 30}, {12, 99}} {
		got = append(got, copies(s.Take(one("", int64(r.at*1e9), "", r.x)))...)
	}
	// At 8, 9, 10 and 11 s: 10 (from before the window), 10, 20, 30.
	if want := []made{{"@12000", "", false, "[17.5 10 30 30]"}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestWindowOfAMessage(t *testing.T) {
	s := newStage(t, Options{Config: config([]string{"x", "y"}, func(w *Window) {
		w.Length, w.Features = Span{Message: true}, Choice{All: []string{"mean"}}
	})})
	if want := []string{"x.mean", "y.mean", "corr.x.y"}; !slices.Equal(s.Features(), want) {
		t.Fatalf("features %v, want %v", s.Features(), want)
	}
	for i := range int64(2) {
		m := &Message{Device: "d", Arrived: i * second, Rows: []Row{{Time: i*second + 5e6, X: []float64{1, 2}}, {Time: i*second + 5e6, X: []float64{3, 6}, Label: "on"}, {Time: i*second + 5e6, X: []float64{5, 10}, Label: "on"}}}
		got := copies(s.Take(m))
		if want := (made{fmt.Sprintf("d#%d", i*1000+5), "", false, "[3 6 1.0000000000000002]"}); len(got) != 1 || got[0] != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

func TestLabelOfAWindow(t *testing.T) {
	for _, test := range []struct {
		rule, rows, want string
	}{
		{LabelPure, "aaaaaaaaaa", "a"}, {LabelPure, "aaaaaaaaa.", "a"}, {LabelPure, "aaaaaaaa..", ""},
		{LabelPure, "aaaaaaaaab", ""}, {LabelPure, "..........", ""},
		{LabelMajority, "aaaaaabbbb", "a"}, {LabelMajority, "aaaaabbbbb", ""}, {LabelMajority, "aaabbcc...", ""},
		{LabelLast, "aaaaaaaaab", "b"}, {LabelLast, "aaaaaaaaa.", ""},
		{LabelPure, "bbbbbaaaaaaaaaa", "a"}, // only the last ten rows count
	} {
		s := newStage(t, Options{Config: config([]string{"x"}, func(w *Window) {
			w.Length, w.Hop, w.Label = Span{Rows: 10}, Span{Rows: 5}, test.rule
		})})
		var last []made
		for i, r := range test.rows {
			label := string(r)
			if r == '.' {
				label = ""
			}
			last = copies(s.Take(one("", int64(i)*second, label, 0)))
		}
		if len(last) != 1 || last[0].Label != test.want {
			t.Errorf("%s of %s: %v, want %q", test.rule, test.rows, last, test.want)
		}
	}
}

func TestStateIsALabel(t *testing.T) {
	s := newStage(t, Options{State: State{MaxAge: 100 * time.Second, Settle: 3 * time.Second}, Config: config([]string{"x"}, nil)})
	s.SetState("", "idle", 10*second, false, false)
	var got []string
	for at := int64(5); at < 130; at++ {
		if at == 20 {
			s.SetState("", "run", at*second, false, false)
		}
		for _, m := range copies(s.Take(one("p", at*second, "", 0))) {
			if m.Sticky != (m.Label != "") {
				t.Fatalf("%+v", m)
			}
			got = append(got, m.Label)
		}
	}
	var want []string
	for at := 5; at < 130; at++ {
		switch {
		case at >= 13 && at < 20:
			want = append(want, "idle")
		case at >= 23 && at <= 120:
			want = append(want, "run")
		default:
			want = append(want, "")
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// held is a stream of two inputs.
func held(t testing.TB, hold Hold) *Stage {
	c := config([]string{"a", "b"}, nil)
	c.Hold = hold
	return newStage(t, Options{Config: c, Inputs: []Input{{Signals: []int{0}, MaxAge: 10 * time.Second}, {Signals: []int{1}, On: true}}})
}

func TestHeldValues(t *testing.T) {
	s := held(t, Hold{Every: 2 * time.Second})
	nan := math.NaN()
	var got []made
	take := func(at float64, input int, x ...float64) {
		got = append(got, copies(s.Take(&Message{Input: input, Own: true, Arrived: int64(at * 1e9), Rows: []Row{{Time: int64(at * 1e9), X: x}}}))...)
	}
	take(1, 0, 5, nan)  // a = 5
	take(2, 1, nan, 7)  // at a fixed time: it counts
	take(5, 1, nan, 8)  // the row at 4 has b = 7
	take(15, 1, nan, 9) // rows at 6 to 14; a is too old after 11
	want := []made{
		{"@2000", "", false, "[5 7]"}, {"@4000", "", false, "[5 7]"}, {"@6000", "", false, "[5 8]"}, {"@8000", "", false, "[5 8]"},
		{"@10000", "", false, "[5 8]"}, {"@12000", "", false, "[NaN 8]"}, {"@14000", "", false, "[NaN 8]"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestRowsOnChange(t *testing.T) {
	s := held(t, Hold{On: []string{"b"}})
	nan := math.NaN()
	if got := s.Take(&Message{Own: true, Rows: []Row{{Time: second, X: []float64{5, nan}}}}); len(got) != 0 {
		t.Errorf("a makes a row: %v", got)
	}
	got := copies(s.Take(&Message{Input: 1, Own: true, Rows: []Row{{Time: 2 * second, X: []float64{nan, 7}}}}))
	if want := []made{{"#2000", "", false, "[5 7]"}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestClockMakesTheSameRows compares held rows, with windows by time, with and without
// the clock, as long as no value comes later than the clock waits.
func TestClockMakesTheSameRows(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 2))
		type value struct {
			at    int64
			input int
			x     []float64
		}
		var values []value
		at := 1000 * second
		for range 200 {
			at += rng.Int64N(3 * second)
			if rng.IntN(30) == 0 {
				at += rng.Int64N(60 * second)
			}
			v := value{at, rng.IntN(2), []float64{math.NaN(), math.NaN()}}
			v.x[v.input] = float64(rng.IntN(5))
			values = append(values, v)
		}
		for _, windowed := range []bool{false, true} {
			run := func(clock bool) (all []made) {
				c := config([]string{"a", "b"}, nil)
				if windowed {
					c.Window.Length, c.Window.MinRows = Span{Time: 4 * time.Second}, 1
				}
				c.Hold = Hold{Every: time.Second / 2}
				s := newStage(t, Options{Config: c, Inputs: []Input{{Signals: []int{0}, MaxAge: 10 * time.Second}, {Signals: []int{1}}}})
				for _, v := range values {
					for clock && s.Due() != 0 && s.Due() <= v.at {
						all = append(all, copies(s.Clock(s.Due()))...)
					}
					all = append(all, copies(s.Take(&Message{Input: v.input, Own: true, Arrived: v.at, Rows: []Row{{Time: v.at, X: v.x}}}))...)
				}
				return all
			}
			with, without := run(true), run(false)
			if len(without) == 0 || !slices.Equal(with, without) {
				t.Fatalf("seed %d, windowed %v: %d rows with the clock, %d without", seed, windowed, len(with), len(without))
			}
		}
	}
}

// Held rows make whole windows without max_gap, however rarely they come.
func TestWindowsOfRareHeldRows(t *testing.T) {
	for _, window := range []Window{{Length: Span{Rows: 12}}, {Length: Span{Time: time.Hour}}, {Length: Span{Time: 10 * time.Minute}}} {
		c := config([]string{"x"}, func(w *Window) { w.Length, w.MinRows = window.Length, 2 })
		c.Hold.Every = 5 * time.Minute
		s := newStage(t, Options{Config: c, Rate: 100})
		n := 0
		for i := range int64(180) { // three hours
			n += len(s.Take(one("p", i*60*second, "", float64(i))))
		}
		if gaps := s.Counts().Gaps.Load(); n < 3 || gaps != 0 {
			t.Errorf("%v: %d windows, %d gaps", window.Length, n, gaps)
		}
	}
}

func TestSilenceIsJumpedOver(t *testing.T) {
	s := held(t, Hold{Every: time.Second})
	x := []float64{math.NaN(), 1}
	s.Take(&Message{Input: 1, Own: true, Arrived: second, Rows: []Row{{Time: second, X: x}}})
	if n := len(s.Clock(100_000 * second)); n != manyRows {
		t.Errorf("%d rows in a day of silence, want %d", n, manyRows)
	}
	if s.Due() != 0 {
		t.Errorf("the clock still has work at %d", s.Due())
	}
	got := s.Take(&Message{Input: 1, Own: true, Arrived: 200_000 * second, Rows: []Row{{Time: 200_000 * second, X: x}}})
	if len(got) != 1 {
		t.Errorf("%d rows after the silence, want one", len(got))
	}
}

// TestSavedWindowsContinue stops a stage at random moments; the samples are those of a
// stage that runs on.
func TestSavedWindowsContinue(t *testing.T) {
	for _, c := range []Config{
		config([]string{"a", "b"}, func(w *Window) { w.Length, w.Hop = Span{Rows: 8}, Span{Rows: 3} }),
		config([]string{"a", "b"}, func(w *Window) { w.Length, w.MinRows, w.MaxGap = Span{Time: 5 * time.Second}, 2, time.Minute }),
		func() Config {
			c := config([]string{"a", "b"}, func(w *Window) { w.Length, w.MinRows, w.MaxGap = Span{Time: 5 * time.Second}, 2, time.Minute })
			c.Hold = Hold{Every: time.Second}
			return c
		}(),
	} {
		rng := rand.New(rand.NewPCG(7, 7))
		through, stopped := newStage(t, Options{Config: c}), newStage(t, Options{Config: c})
		var want, got []made
		at := int64(0)
		for range 2000 {
			at += rng.Int64N(second)
			m := one([]string{"p", "q"}[rng.IntN(2)], at, []string{"", "on", "off"}[rng.IntN(3)], rng.Float64(), rng.Float64())
			want = append(want, copies(through.Take(m))...)
			got = append(got, copies(stopped.Take(m))...)
			if rng.IntN(10) == 0 {
				saved := stopped.Save()
				stopped = newStage(t, Options{Config: c})
				if err := stopped.Restore(saved); err != nil {
					t.Fatal(err)
				}
			}
		}
		if len(want) < 50 || !slices.Equal(got, want) {
			t.Errorf("%d samples with stops, %d without", len(got), len(want))
		}
		other := c
		other.Window.Floor = 1
		if err := newStage(t, Options{Config: other}).Restore(through.Save()); err == nil {
			t.Error("windows of another configuration are accepted")
		}
	}
}

func FuzzRestore(f *testing.F) {
	byTime := config([]string{"a", "b"}, func(w *Window) { w.Length, w.MinRows = Span{Time: 5 * time.Second}, 1 })
	byCount := config([]string{"a", "b"}, func(w *Window) { w.Length, w.Hop = Span{Rows: 8}, Span{Rows: 3} })
	all := []Config{byTime, byCount}
	for _, c := range all {
		s := newStage(f, Options{Config: c})
		for i := range int64(20) {
			s.Take(one("p", i*second, "on", 1, 2))
		}
		s.SetState("", "on", 5, false, false)
		f.Add(s.Save())
	}
	f.Fuzz(func(t *testing.T, saved []byte) {
		for _, c := range all {
			s := newStage(t, Options{Config: c})
			if s.Restore(saved) != nil && s.Devices() != 0 {
				t.Fatal("a refused state left devices")
			}
			for i := range int64(20) {
				s.Take(one("p", (20+i)*second, "on", 1, 2))
				s.Clock((20 + i) * second)
			}
		}
	})
}

func TestDevicesAreBounded(t *testing.T) {
	s := newStage(t, Options{Config: config([]string{"x"}, func(w *Window) { w.Length, w.Devices = Span{Rows: 4}, 3 })})
	for i := range 10 {
		s.Take(one(fmt.Sprint(i), int64(i), "", 0))
	}
	if s.Devices() != 3 || s.Counts().Evicted.Load() != 7 {
		t.Errorf("%d devices, %d made room", s.Devices(), s.Counts().Evicted.Load())
	}
}

func TestNoAllocations(t *testing.T) {
	s := newStage(t, Options{Courses: true, Windows: new(Windows), Config: config([]string{"x", "y", "z"}, func(w *Window) { w.Length, w.Hop = Span{Rows: 64}, Span{Rows: 32} })})
	m := one("p", 0, "walk", 1, 2, 3)
	at := int64(0)
	take := func() {
		at += 10e6
		m.Rows[0].Time = at
		m.Rows[0].X[0] = float64(at % 17)
		s.Take(m)
	}
	for range 1000 {
		take()
	}
	if n := testing.AllocsPerRun(1000, take); n != 0 {
		t.Errorf("%v allocations a row", n)
	}
}

func BenchmarkThreeAxes(b *testing.B) {
	s := newStage(b, Options{Config: config([]string{"x", "y", "z"}, func(w *Window) { w.Length, w.Hop = Span{Time: 2 * time.Second}, Span{Time: time.Second} })})
	m := one("p", 0, "", 0, 0, 0)
	rng := rand.New(rand.NewPCG(1, 1))
	at := int64(0)
	b.ReportAllocs()
	for b.Loop() { // a second at 100 Hz
		for range 100 {
			at += 10e6
			m.Rows[0].Time = at
			for i := range m.Rows[0].X {
				m.Rows[0].X[i] = rng.NormFloat64()
			}
			s.Take(m)
		}
	}
}
