package signal

import (
	"slices"
	"testing"
	"time"
)

// A clock that is put forward makes no rows of held values of the time between. Those that follow
// have the values as old as they are.
func TestClockIsPutForward(t *testing.T) {
	const minute, hours = 60 * second, 8 * 3600 * second
	for _, test := range []struct {
		name string
		own  bool
		with bool // the device's clock was put forward as well
		by   int64
		want []string // of the two minutes after it
	}{
		{"by hours", false, false, hours, []string{"p@29100000", "p@29160000"}},
		{"by years", false, false, 1e6 * minute, []string{"p@60000300000", "p@60000360000"}},
		{"of a device with times of its own", true, false, hours, nil},
		{"of a device on the same machine", true, true, hours, nil},
		{"of a device on the same machine by years", true, true, 1e6 * minute, nil},
	} {
		c := config([]string{"x"}, nil)
		c.Hold.Every, c.Hold.MaxAge = time.Minute, 5*time.Minute
		s := newStage(t, Options{Config: c})
		s.SetState("", "run", minute, false, false)
		now := int64(0)
		for i := range int64(3) {
			now = (2 + i) * minute
			s.Take(&Message{Device: "p", Own: test.own, Arrived: now, Rows: []Row{{Time: now, X: []float64{7}}}})
		}
		now += 10*second + test.by
		s.PutForward(now, test.by)
		var got []string
		for range 14 {
			got = append(got, ids(copies(s.Clock(now)))...)
			now += 10 * second
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("put forward %s: rows %v, want %v", test.name, got, test.want)
		}
		arrived := now
		if test.own && !test.with {
			now -= test.by
		}
		after := copies(s.Take(&Message{Device: "p", Own: test.own, Arrived: arrived, Rows: []Row{{Time: now, X: []float64{8}}}}))
		if n := len(after); test.own && n != 2 || !test.own && n > 1 || n > 0 && after[0].Label != "run" {
			t.Errorf("put forward %s: the next message makes %v", test.name, after)
		}
	}
}

// A window that a clock was put forward in begins anew, as after one that was set back, whatever the gap is.
func TestWindowWhenTheClockIsPutForward(t *testing.T) {
	s := newStage(t, Options{Config: config([]string{"x"}, func(w *Window) { w.Length, w.Hop, w.MaxGap = Span{Rows: 4}, Span{Rows: 4}, time.Hour })})
	var got []string
	for i := range int64(8) {
		at := (100 + i) * second
		if i >= 2 {
			at += 600 * second
		}
		if i == 2 {
			s.PutForward(at, 600*second)
		}
		got = append(got, ids(copies(s.Take(&Message{Device: "p", Arrived: at, Rows: []Row{{Time: at, X: []float64{1}}}})))...)
	}
	if want := []string{"p#705000"}; !slices.Equal(got, want) {
		t.Errorf("windows %v, want %v", got, want)
	}
}
