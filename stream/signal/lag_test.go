package signal

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// Rows whose times are seconds behind their arrival, of a clock that is slow or of a short outage,
// make the same windows as rows in time: the clock ends a window when its device is silent, not
// when the node's own time has passed its end.
func TestWindowsOfLateClocks(t *testing.T) {
	windows := func(lag int64) (ids []string) {
		s := newStage(t, Options{Config: config([]string{"x"}, func(w *Window) { w.Length, w.MinRows = Span{Time: 2 * time.Second}, 2 })})
		take := func(samples []Sample) {
			for _, sample := range samples {
				ids = append(ids, string(sample.ID))
			}
		}
		const quarter = second / 4
		last := int64(0)
		for at := 100 * second; at < 130*second; at += quarter {
			take(s.Clock(at + lag))
			take(s.Take(&Message{Device: "p", Own: true, Arrived: at + lag, Rows: []Row{{Time: at, X: []float64{float64(at % 7)}}}}))
			last = at
		}
		take(s.Clock(last + lag + 5*second)) // the last one ends by the clock
		return ids
	}
	want := windows(0)
	if len(want) != 29 {
		t.Fatalf("%d windows in time, want 29", len(want))
	}
	for _, lag := range []int64{second, 2 * second, 5 * second, 9 * second} {
		if got := windows(lag); !slices.Equal(got, want) {
			t.Errorf("%d s behind: %d windows, want %d: %v", lag/second, len(got), len(want), got)
		}
	}
}

// Rows of held values, which the clock makes too, have the values of their moments.
func TestHeldRowsOfLateClocks(t *testing.T) {
	rows := func(lag int64) (x []float64) {
		c := config([]string{"x"}, nil)
		c.Hold.Every = time.Second
		s := newStage(t, Options{Config: c})
		take := func(samples []Sample) {
			for _, sample := range samples {
				x = append(x, sample.X[0])
			}
		}
		for at := 100 * second; at < 130*second; at += second / 2 {
			take(s.Clock(at + lag))
			take(s.Take(&Message{Device: "p", Own: true, Arrived: at + lag, Rows: []Row{{Time: at, X: []float64{float64(at / second)}}}}))
		}
		return x
	}
	want := rows(0)
	for _, lag := range []int64{2 * second, 5 * second, 9 * second} {
		if got := rows(lag); !slices.Equal(got, want) {
			t.Errorf("%d s behind: values %v, want %v", lag/second, got, want)
		}
	}
}

// A state that comes before rows of its device makes none of the values that these replace: of a
// broker that kept the state and the rows, or of a device that is behind.
func TestStateBeforeRows(t *testing.T) {
	for _, test := range []struct {
		name string
		lag  int64
		kept bool
	}{{"kept", 0, true}, {"of a device that is behind", 5, false}} {
		c := config([]string{"x"}, nil)
		c.Hold.Every = time.Second
		s := newStage(t, Options{Config: c})
		var got, want []string
		take := func(from, to int64, arrived int64) {
			for at := from; at < to; at++ {
				for _, m := range copies(s.Take(&Message{Device: "p", Own: true, Arrived: (at + arrived) * second, Rows: []Row{{Time: at * second, X: []float64{float64(at)}}}})) {
					got = append(got, m.X)
				}
				want = append(want, fmt.Sprint([]float64{float64(at)}))
			}
		}
		take(100, 110, test.lag)
		now := 109 + test.lag
		if test.kept {
			now = 154 // after a stop
		}
		for _, m := range copies(s.SetState("p", "run", now*second, test.kept, false)) {
			got = append(got, m.X)
		}
		take(110, 154, test.lag)
		if !slices.Equal(got, want) {
			t.Errorf("%s: values %v, want %v", test.name, got, want)
		}
	}
}
