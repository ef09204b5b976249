package signal

import (
	"math"
	"testing"
	"time"
)

// A signal with fewer values than min_rows, or than the rows of the window, has no features.
func TestFewValuesOfASignal(t *testing.T) {
	nan := math.NaN()
	for _, length := range []Span{{Rows: 10}, {Time: 10 * time.Second}} {
		for _, test := range []struct {
			values, rows int
			want         string
		}{{7, 8, "[5 NaN]"}, {8, 8, "[5 1]"}, {9, 20, "[5 NaN]"}, {10, 20, "[5 1]"}} {
			if length.Time > 0 && test.rows > 10 { // such a window is left out
				continue
			}
			s := newStage(t, Options{Config: config([]string{"x", "y"}, func(w *Window) {
				w.Length, w.Hop, w.MinRows, w.Correlations, w.Features = length, length, test.rows, false, Choice{All: []string{"mean"}}
			})})
			var got []made
			for i := range 11 {
				y := 1.0
				if i >= test.values {
					y = nan
				}
				got = append(got, copies(s.Take(one("p", int64(i+10)*second, "", 5, y)))...)
			}
			if len(got) != 1 || got[0].X != test.want {
				t.Errorf("%v, %d values, min_rows %d: %v, want %s", length, test.values, test.rows, got, test.want)
			}
		}
	}
}
