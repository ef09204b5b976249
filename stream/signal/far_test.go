package signal

import (
	"testing"
	"time"
)

// The sums of times and lengths fit in 64 bits up to the last time that a payload may have:
// beyond, a window would begin 292 years ago and close each one since.
func TestTheLastTimesEndWindows(t *testing.T) {
	for _, length := range []time.Duration{10 * time.Second, 168 * time.Hour} {
		for _, every := range []time.Duration{0, time.Minute} {
			c := config([]string{"x"}, func(w *Window) { w.Length, w.MaxGap, w.MinRows = Span{Time: length}, 2*length, 1 })
			c.Hold.Every = every
			s := newStage(t, Options{Config: c})
			for _, at := range []int64{1e18, endOfTime - 3*int64(length), endOfTime - int64(length), endOfTime - 2, endOfTime - 1, 1e18} {
				s.Take(one("p", at, "", 1))
				s.Clock(at)
			}
			if n := s.Counts().Samples.Load(); n == 0 && every == 0 {
				t.Errorf("length %v: no window was closed", length)
			}
		}
	}
}
