package signal

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

// The beginning of a sample is that of its window, and survives a restart.
func TestStart(t *testing.T) {
	for _, c := range []struct {
		name string
		opts Options
		want []int64 // begin and end of each sample, in seconds
	}{
		{"rows", Options{Config: config([]string{"x"}, nil)}, []int64{100, 100, 101, 101, 102, 102, 103, 103, 104, 104, 105, 105, 106, 106, 107, 107, 108, 108, 109, 109}},
		{"by count", Options{Config: config([]string{"x"}, func(w *Window) { w.Length, w.Hop = Span{Rows: 5}, Span{Rows: 2} })}, []int64{100, 104, 102, 106, 104, 108}},
		{"by count, apart", Options{Config: config([]string{"x"}, func(w *Window) { w.Length, w.Hop = Span{Rows: 3}, Span{Rows: 3} })}, []int64{100, 102, 103, 105, 106, 108}},
		{"by time", Options{Config: config([]string{"x"}, func(w *Window) {
			w.Length, w.Hop, w.MinRows = Span{Time: 4 * time.Second}, Span{Time: 2 * time.Second}, 1
		})}, []int64{100, 104, 102, 106, 104, 108}},
		{"by message", Options{Config: config([]string{"x"}, func(w *Window) { w.Length = Span{Message: true} })}, []int64{100, 100, 101, 101, 102, 102, 103, 103, 104, 104, 105, 105, 106, 106, 107, 107, 108, 108, 109, 109}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, c.opts)
			var got []int64
			for i := range int64(10) {
				for _, sample := range s.Take(one("p", (100+i)*second, "", float64(i))) {
					got = append(got, sample.Start/second, sample.Time/second)
				}
				after := newStage(t, c.opts)
				if err := after.Restore(s.Save()); err != nil {
					t.Fatal(err)
				}
				s = after
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("begins and ends %v, want %v", got, c.want)
			}
		})
	}
}

// The rows of one message begin its window, and are not kept.
func TestStartOfMessage(t *testing.T) {
	opts := Options{Config: config([]string{"x"}, func(w *Window) { w.Length, w.MaxRows = Span{Message: true}, 8 })}
	s := newStage(t, opts)
	m := &Message{Device: "p", Own: true}
	for i := range int64(20) { // more than max_rows, which bounds windows by time
		m.Rows = append(m.Rows, Row{Time: (100 + i) * second, X: []float64{1}})
	}
	if got := s.Take(m); len(got) != 1 || got[0].Start != 100*second || got[0].Time != 119*second {
		t.Errorf("samples %+v", got)
	}
	if err := newStage(t, opts).Restore(s.Save()); err != nil {
		t.Error(err)
	}
}

// A redelivered message of many rows is one late message: it does not set the clock back.
func TestLateRowsOfOneMessage(t *testing.T) {
	s := newStage(t, Options{LateMessages: 2, Config: config([]string{"x"}, func(w *Window) { w.Length, w.MaxGap = Span{Rows: 4}, time.Second })})
	s.Take(one("p", 10000*second, "", 1))
	m := &Message{Device: "p", Own: true}
	for i := range int64(50) {
		m.Rows = append(m.Rows, Row{Time: (100 + i) * second, X: []float64{1}})
	}
	for range 2 {
		s.Take(m)
	}
	if n := s.Counts(); n.SetBack.Load() != 0 || n.Late.Load() != 100 {
		t.Errorf("set back %d, late %d", n.SetBack.Load(), n.Late.Load())
	}
	m.Again = true // the broker may send any number of messages again
	for range 50 {
		s.Take(m)
	}
	if n := s.Counts().SetBack.Load(); n != 0 {
		t.Errorf("set back %d times by repetitions", n)
	}
	m.Again = false
	if s.Take(m); s.Counts().SetBack.Load() != 1 {
		t.Error("the third message in succession does not set the clock back")
	}
}

// A value that the broker kept is held and makes no row of its own.
func TestKeptValueMakesNoRow(t *testing.T) {
	c := config([]string{"a", "b"}, nil)
	c.Hold.On = []string{"any"}
	s := newStage(t, Options{Config: c, Inputs: []Input{{Signals: []int{0}, On: true}, {Signals: []int{1}, On: true}}})
	nan := []bool{true, false}
	kept := &Message{Input: 1, Kept: true, Rows: []Row{{Time: second, X: []float64{0, 7}, Absent: nan}}}
	if got := s.Take(kept); len(got) != 0 {
		t.Errorf("samples %v", copies(got))
	}
	got := copies(s.Take(&Message{Rows: []Row{{Time: 2 * second, X: []float64{5, 0}, Absent: []bool{false, true}}}}))
	if len(got) != 1 || got[0].X != "[5 7]" {
		t.Errorf("samples %v", got)
	}
}

// Values that the broker kept, with the times at which they were measured, make no rows of
// those times: the rows at fixed times begin with their arrival.
func TestKeptValueOfLongAgoMakesNoRows(t *testing.T) {
	c := config([]string{"a", "b", "c"}, nil)
	c.Hold.Every = 30 * time.Second
	s := newStage(t, Options{Config: c, Inputs: []Input{{Signals: []int{0}}, {Signals: []int{1}}, {Signals: []int{2}}}})
	now, day, got := 864000*second, 86400*second, []made(nil)
	for _, m := range []Message{
		{Input: 0, Kept: true, Arrived: now, Rows: []Row{{Time: now - 3*day, X: []float64{1, 0, 0}}}},
		{Input: 1, Kept: true, Arrived: now, Rows: []Row{{Time: now - day, X: []float64{0, 2, 0}}}},
		{Input: 2, Arrived: now + 70*second, Rows: []Row{{Time: now + 70*second, X: []float64{0, 0, 3}}}},
		{Input: 2, Arrived: now + 95*second, Rows: []Row{{Time: now + 95*second, X: []float64{0, 0, 4}}}},
	} {
		m.Own = true
		got = append(got, copies(s.Take(&m))...)
	}
	if want := []made{{ID: "@864090000", X: "[1 2 3]"}}; !slices.Equal(got, want) {
		t.Errorf("%d rows %.300v, want %v", len(got), got, want)
	}
}

// The count of a device's rows ends nowhere: the same windows follow one that is about as
// large as an int can be, also where a state of before has it.
func TestCountOfRowsIsBounded(t *testing.T) {
	for _, span := range [][2]Span{{{Rows: 4}, {Rows: 2}}, {{Rows: 7}, {Rows: 3}}, {{Rows: 5}, {Rows: 5}}, {{Rows: 3}, {Rows: 1}}, {{Time: 4 * time.Second}, {Time: 2 * time.Second}}} {
		run := func(many bool) (all []made) {
			opts := Options{Config: config([]string{"x"}, func(w *Window) { w.Length, w.Hop, w.MinRows, w.MaxGap = span[0], span[1], 2, 5*time.Second })}
			s := newStage(t, opts)
			for i := range int64(60) {
				if d, hop := s.device("p"), max(span[1].Rows, 1); many && (i == 20 || i == 40) {
					d.rows = math.MaxInt - hop - (math.MaxInt-hop-d.rows)%hop
					saved := s.Save()
					if s = newStage(t, opts); s.Restore(saved) != nil {
						t.Fatalf("%v: the count of rows is not restored", span)
					}
				}
				all = append(all, copies(s.Take(one("p", (100+i)*second, "", float64(i*i))))...)
			}
			return all
		}
		if got, want := run(true), run(false); !slices.Equal(got, want) {
			t.Errorf("windows of %v: got %v, want %v", span, got, want)
		}
	}
}

// A row that is far ahead of its arrival makes no rows of held values between the two: they
// would have the label of a state of now. A device that was always ahead has them.
func TestFutureRowFillsNothing(t *testing.T) {
	for _, test := range []struct {
		name   string
		ahead  int64 // of the ordinary rows, s
		future int64 // of the last one, s
		rows   int   // that the last one makes
	}{
		{"in a silence", 0, 0, 20},
		{"in a minute", 0, 60, 80},
		{"in a year", 0, 365 * 86400, 21}, // those before its arrival, and its own
		{"of a clock that is a year ahead", 365 * 86400, 365 * 86400, 20},
	} {
		c := config([]string{"x"}, nil)
		c.Hold.Every = time.Second
		s := newStage(t, Options{Config: c})
		s.SetState("", "run", 50*second, false, false)
		take := func(arrived, ahead int64) []Sample {
			return s.Take(&Message{Device: "p", Own: true, Arrived: arrived * second, Rows: []Row{{Time: (arrived + ahead) * second, X: []float64{1}}}})
		}
		for at := range int64(5) {
			take(100+at, test.ahead)
		}
		got := copies(take(124, test.future))
		if len(got) != test.rows {
			t.Errorf("a row %s makes %d rows, want %d", test.name, len(got), test.rows)
		}
		if last, want := got[len(got)-1], fmt.Sprintf("p@%d000", 124+test.future); last.ID != want {
			t.Errorf("the last row %s is %v, want %s", test.name, last, want)
		}
		if got := copies(take(125, test.ahead)); (len(got) == 1) != (test.future == test.ahead) {
			t.Errorf("the row after one %s makes %v", test.name, got)
		}
	}
}

// The label of a window that a state gave it is that of a state also where the state ended
// before the last row.
func TestEndedStateIsAState(t *testing.T) {
	for _, length := range []Span{{Rows: 10}, {Time: 10 * time.Second}} {
		s := newStage(t, Options{Config: config([]string{"x"}, func(w *Window) { w.Length, w.Hop = length, length })})
		s.SetState("p", "run", 0, false, false)
		var got []made
		for at := int64(10); at <= 40; at++ {
			if at == 29 {
				s.SetState("p", "", at*second, false, false)
			}
			label := ""
			if at >= 30 {
				label = "own"
			}
			got = append(got, copies(s.Take(one("p", at*second, label, 0)))...)
		}
		want := []made{{Label: "run", Sticky: true}, {Label: "run", Sticky: true}, {Label: "own"}}
		for i := range got {
			got[i].ID, got[i].X = "", ""
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v: got %v, want %v", length, got, want)
		}
	}
}

// A state that is told again after the node's clock was set back is a label from then on.
func TestStateAfterTheClockWasSetBack(t *testing.T) {
	s := newStage(t, Options{Config: config([]string{"x"}, nil)})
	s.SetState("", "run", 7200*second, false, false)
	s.SetState("", "run", 3600*second, false, false)
	for at, want := range map[int64]string{3599: "", 3601: "run"} {
		if got := copies(s.Take(one(fmt.Sprint(at), at*second, "", 1))); len(got) != 1 || got[0].Label != want {
			t.Errorf("at %d s: %v, want the label %q", at, got, want)
		}
	}
}

// Rows without times whose messages come unevenly make the windows of rows that come evenly.
// A message that arrived before the one before it still sets the clock back.
func TestMessagesWithARateComeUnevenly(t *testing.T) {
	for _, test := range []struct {
		name     string
		arrivals []int64 // ms, of messages of ten rows at 100 Hz
		windows  int     // of 20 rows
		setBack  uint64
	}{
		{"evenly", []int64{1000, 1100, 1200, 1300}, 2, 0},
		{"late, then early", []int64{1000, 1150, 1200, 1310}, 2, 0},
		{"two at once", []int64{1000, 1000, 1100, 1100}, 2, 0},
		{"the clock is set back", []int64{1000, 1100, 500, 600}, 2, 1},
	} {
		s := newStage(t, Options{Rate: 100, Config: config([]string{"x"}, func(w *Window) { w.Length, w.Hop, w.MaxGap = Span{Rows: 20}, Span{Rows: 20}, time.Second })})
		var got []string
		for i, ms := range test.arrivals {
			m := &Message{Device: "p", Arrived: ms * 1e6}
			for k := range int64(10) {
				m.Rows = append(m.Rows, Row{Time: m.Arrived - (9-k)*10e6, X: []float64{float64(i)}})
			}
			got = append(got, ids(copies(s.Take(m)))...)
		}
		if n := s.Counts().SetBack.Load(); len(got) != test.windows || n != test.setBack {
			t.Errorf("%s: windows %v, want %d; set back %d times, want %d", test.name, got, test.windows, n, test.setBack)
		}
	}
}

// Messages of rows without times that come late by less than half of the time that their rows take do
// not begin the window anew; a message that is lost does.
func TestMessagesWithARateComeLate(t *testing.T) {
	for _, test := range []struct {
		name     string
		arrivals []int64 // ms, of messages of 100 rows at 1 kHz
		own      bool    // the rows have times
		length   Span
		maxGap   time.Duration
		gaps     uint64
		windows  int
	}{
		{"in time", []int64{1000, 1100, 1200, 1300}, false, Span{Rows: 200}, 0, 0, 2},
		{"late", []int64{1000, 1140, 1200, 1345}, false, Span{Rows: 200}, 0, 0, 2},
		{"late, windows by time", []int64{1000, 1140, 1200, 1345}, false, Span{Time: 100 * time.Millisecond}, 0, 0, 3},
		{"one is lost", []int64{1000, 1100, 1300, 1400}, false, Span{Rows: 200}, 0, 1, 2},
		{"late, with max_gap", []int64{1000, 1140, 1200, 1345}, false, Span{Rows: 200}, 10 * time.Millisecond, 2, 1},
		{"a silence of rows with times", []int64{1000, 1140, 1240, 1340}, true, Span{Rows: 200}, 0, 1, 1},
	} {
		s := newStage(t, Options{Rate: 1000, Config: config([]string{"x"}, func(w *Window) { w.Length, w.Hop, w.MaxGap = test.length, test.length, test.maxGap })})
		var got []string
		for _, ms := range test.arrivals {
			m := &Message{Device: "p", Own: test.own, Arrived: ms * 1e6}
			for k := range int64(100) {
				m.Rows = append(m.Rows, Row{Time: m.Arrived - (99-k)*1e6, X: []float64{float64(k)}})
			}
			got = append(got, ids(copies(s.Take(m)))...)
		}
		if n := s.Counts().Gaps.Load(); n != test.gaps || len(got) != test.windows {
			t.Errorf("%s: %d gaps, want %d; windows %v, want %d", test.name, n, test.gaps, got, test.windows)
		}
	}
}

// Times in whole ms, as most senders have them, begin no window anew, whatever the rate.
func TestGapsOfRoundedTimes(t *testing.T) {
	for _, rate := range []int64{1000, 22050, 44100, 48000} {
		s := newStage(t, Options{Rate: float64(rate), Config: config([]string{"x"}, func(w *Window) { w.Length = Span{Rows: 2048} })})
		for i := range int64(50) {
			const rows = 1000
			last := 1_700_000_000*second + i*rows*second/rate/1e6*1e6
			m := &Message{Device: "p", Own: true, Arrived: last}
			for k := range int64(rows) {
				m.Rows = append(m.Rows, Row{Time: last - (rows-1-k)*second/rate, X: []float64{1}})
			}
			s.Take(m)
		}
		if n := s.Counts().Gaps.Load(); n > 0 {
			t.Errorf("%d Hz: %d gaps, want none", rate, n)
		}
	}
}

// Held values are as old after the clock was set back as their times say, and not as old as
// 1970: those of times that have not come yet count as new.
func TestHeldValuesAfterTheClockWasSetBack(t *testing.T) {
	c := config([]string{"a", "b"}, nil)
	c.Hold.On = []string{"any"}
	c.Derive = Formulas{{Name: "changed", Text: "since(b)"}, {Name: "old", Text: "age(b)"}}
	for _, maxAge := range []time.Duration{0, time.Minute} {
		s := newStage(t, Options{Config: c, Inputs: []Input{{Signals: []int{0}, On: true}, {Signals: []int{1}, On: true, MaxAge: maxAge}}})
		var got []string
		for _, r := range []struct {
			at    int64
			input int
		}{{1000, 1}, {1010, 0}, {1005, 0}, {990, 0}, {995, 0}} {
			m := &Message{Input: r.input, Arrived: r.at * second, Rows: []Row{{Time: r.at * second, X: []float64{1, 2}, Absent: []bool{r.input != 0, r.input != 1}}}}
			for _, sample := range copies(s.Take(m)) {
				got = append(got, sample.X)
			}
		}
		if want := []string{"[NaN 2 0 0]", "[1 2 10 10]", "[1 2 5 5]", "[1 2 0 0]", "[1 2 5 5]"}; !slices.Equal(got, want) {
			t.Errorf("max_age %v: got %v, want %v", maxAge, got, want)
		}
	}
}

// A silence below max_gap is passed at once, however many windows have no row in it: 72
// thousand million of the last ones. They count as thin.
func TestSilenceOfManyWindows(t *testing.T) {
	for _, test := range []struct {
		length, hop, silence time.Duration
		thin                 uint64
		want                 []string
	}{
		{10 * time.Second, 4 * time.Second, 353 * time.Second, 86, []string{"@1006000", "@1010000", "@1014000"}},
		{10 * time.Millisecond, 10 * time.Microsecond, 200 * time.Hour, 72_001_199_001, nil},
	} {
		s := newStage(t, Options{Config: config([]string{"x"}, func(w *Window) {
			w.Length, w.Hop, w.MaxGap, w.MinRows = Span{Time: test.length}, Span{Time: test.hop}, 240*time.Hour, 2
		})})
		var got []string
		for _, at := range []time.Duration{996e9, 998e9, 1004e9, 1006e9, 1006e9 + test.silence, 1008e9 + test.silence} {
			got = append(got, ids(copies(s.Take(one("", int64(at), "", 1))))...)
		}
		if thin := s.Counts().Thin.Load(); thin != test.thin || !slices.Equal(got, test.want) {
			t.Errorf("%v: %d windows are thin, want %d; the others %v, want %v", test.length, thin, test.thin, got, test.want)
		}
	}
}

// A silence that began before 1970, where a rate counted back from a clock that was never set,
// is jumped over as well.
func TestSilenceBeforeTheEpoch(t *testing.T) {
	s := held(t, Hold{Every: time.Second})
	x := []float64{math.NaN(), 1}
	got := s.Take(&Message{Input: 1, Own: true, Arrived: 1e6 * second, Rows: []Row{{Time: -100_000 * second, X: x}, {Time: second, X: x}}})
	if n := len(got); n != manyRows+2 {
		t.Errorf("%d rows in a day of silence, want %d with those of both ends", n, manyRows+2)
	}
}

// The values of a resampled window are bounded as its rows are.
func TestResampledValuesAreBounded(t *testing.T) {
	for _, test := range []struct {
		signals int
		ok      bool
	}{{16, true}, {17, false}} {
		c := config(nil, func(w *Window) {
			w.Length, w.Resample = Span{Time: 1_000_000 * 100 * time.Millisecond}, 100*time.Millisecond
		})
		for i := range test.signals {
			c.Signals = append(c.Signals, fmt.Sprint("s", i))
		}
		if err := c.Validate(); (err == nil) != test.ok {
			t.Errorf("%d signals with 1000000 values each: %v", test.signals, err)
		}
	}
}
