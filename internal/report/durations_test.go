package report

import (
	"math"
	"testing"
	"time"
)

func TestDurations(t *testing.T) {
	var d DurationSum
	if d.Summary() != (Durations{}) {
		t.Error("nothing has a summary")
	}
	for i := range 1000 {
		d.Add(time.Duration(i+1) * time.Millisecond)
	}
	s := d.Summary()
	for _, c := range []struct{ got, want float64 }{{s.Mean, 0.5005}, {s.P50, 0.5}, {s.P90, 0.9}, {s.P99, 0.99}, {s.Max, 1}} {
		if math.Abs(c.got-c.want) > 0.011*c.want {
			t.Errorf("%+v, want %g", s, c.want)
		}
	}
}
