package signal

import (
	"math"
	"testing"
	"time"
)

// part is a message of one of two inputs, at a time of its own.
func part(input int, at, arrived int64, v float64) *Message {
	x, absent := []float64{math.NaN(), math.NaN()}, []bool{true, true}
	x[input], absent[input] = v, false
	return &Message{Device: "p", Input: input, Own: true, Arrived: arrived, Rows: []Row{{Time: at, X: x, Absent: absent}}}
}

// One message with a time far in the future, of one of two inputs, silences the device for as
// many messages as one of a single input does.
func TestFutureRowOfOneInput(t *testing.T) {
	const year = 365 * 24 * 3600 * second
	for name, c := range map[string]struct {
		hold   Hold
		window Span
	}{
		"rows at fixed times":      {hold: Hold{Every: time.Second}},
		"rows with values":         {hold: Hold{On: []string{"any"}}},
		"windows of held rows":     {Hold{Every: time.Second}, Span{Time: 10 * time.Second}},
		"rows of each input":       {},
		"windows of both inputs":   {window: Span{Time: 10 * time.Second}},
		"windows of as many rows":  {window: Span{Rows: 10}},
		"rows, of which one stops": {hold: Hold{Every: time.Second}},
	} {
		cfg := config([]string{"a", "b"}, func(w *Window) { w.Length, w.MinRows = c.window, 2 })
		cfg.Hold = c.hold
		s := newStage(t, Options{Config: cfg, Inputs: []Input{{Signals: []int{0}, On: true}, {Signals: []int{1}, On: true}}})
		var before, after int
		for i := range int64(300) {
			at := 1_700_000_000*second + i*second
			n := 0
			if i == 100 {
				n += len(s.Take(part(0, at+year, at, 1)))
			} else if i < 100 || name != "rows, of which one stops" {
				n += len(s.Take(part(0, at, at, 1)))
			}
			for _, sample := range s.Take(part(1, at+second/2, at+second/2, 2)) {
				if n++; i > 150 && sample.Time > at+second {
					t.Errorf("%s: a sample has the time %v at %v", name, ToTime(sample.Time), ToTime(at))
				}
			}
			n += len(s.Clock(at + second/2))
			if i < 100 {
				before += n
			} else if i >= 150 {
				after += n
			}
		}
		if before == 0 || after < before || s.Counts().SetBack.Load() != 1 {
			t.Errorf("%s: %d samples of 100 seconds, %d of 150 after the row in the future, %d times set back", name, before, after, s.Counts().SetBack.Load())
		}
	}
}

// The clocks of two inputs differ: a window has the rows of both, and what is stored is read.
func TestWindowsOfInputsWhoseClocksDiffer(t *testing.T) {
	for _, lag := range []int64{0, second / 5, 3 * second, -second / 5} {
		for _, length := range []Span{{Time: 10 * time.Second}, {Rows: 20}} {
			cfg := config([]string{"a", "b"}, func(w *Window) {
				w.Length, w.Hop, w.MaxGap, w.Features = length, length, 5*time.Second, Choice{All: []string{"mean"}}
			})
			s := newStage(t, Options{Config: cfg, Inputs: []Input{{Signals: []int{0}}, {Signals: []int{1}}}})
			samples := 0
			for i := range int64(100) {
				at := (1_700_000_000 + i) * second
				for input, own := range []int64{at, at - lag} {
					for _, sample := range s.Take(part(input, own, at, float64(i))) {
						samples++
						if a, b := sample.X[0], sample.X[1]; math.Abs(a-b) > 1 {
							t.Errorf("lag %v, %v: the means are %g and %g", time.Duration(lag), length, a, b)
						}
					}
				}
				if again := newStage(t, s.opts); i%7 == 0 {
					if err := again.Restore(s.Save()); err != nil {
						t.Fatalf("lag %v, %v: %v", time.Duration(lag), length, err)
					}
					s = again
				}
			}
			if samples < 8 || s.Counts().Late.Load() > 0 {
				t.Errorf("lag %v, %v: %d windows of 100 seconds, %d rows late", time.Duration(lag), length, samples, s.Counts().Late.Load())
			}
		}
	}
}

// Rows at fixed times go on for max_age after the latest value, where that is longer than a
// thousand of them.
func TestRowsInALongSilence(t *testing.T) {
	for maxAge, want := range map[time.Duration]time.Duration{0: 5000 * time.Second, time.Minute: time.Minute, 2 * time.Hour: 2 * time.Hour} {
		cfg := config([]string{"x"}, nil)
		cfg.Hold = Hold{Every: 5 * time.Second, MaxAge: maxAge}
		s := newStage(t, Options{Config: cfg})
		s.Take(&Message{Device: "p", Arrived: 1000 * second, Rows: []Row{{Time: 1000 * second, X: []float64{1}}}})
		var last int64
		for at := 1000 * second; s.Due() != 0 && at < 20_000*second; at += second {
			for _, sample := range s.Clock(at) {
				last = sample.Time
			}
		}
		if got := time.Duration(last - 1000*second); got != want {
			t.Errorf("max_age %v: the last row comes %v after the value, want %v", maxAge, got, want)
		}
	}
}

// Messages of one input with different signals share a time, as the measurements of Telegraf:
// the values of each are held, and a repetition is late all the same.
func TestSignalsThatShareATime(t *testing.T) {
	for _, hold := range []Hold{{Every: 10 * time.Second}, {On: []string{"any"}}} {
		cfg := config([]string{"a", "b"}, func(w *Window) { w.Length = Span{} })
		cfg.Hold = hold
		s := newStage(t, Options{Config: cfg})
		var last []float64
		for i := range int64(5) {
			at := 1_700_000_000*second + i*10*second
			for _, input := range []int{0, 1, 0, 1} { // the last two are repetitions
				m := part(input, at, at, float64(i))
				m.Input = 0
				for _, sample := range s.Take(m) {
					last = append(last[:0], sample.X...)
				}
			}
		}
		if len(last) != 2 || last[0] != 4 || math.IsNaN(last[1]) {
			t.Errorf("%+v: the last sample is %v, want values of both signals", hold, last)
		}
		if n := s.Counts().Late.Load(); n != 10 {
			t.Errorf("%+v: %d late rows, want the 10 that were repeated", hold, n)
		}
	}
}
