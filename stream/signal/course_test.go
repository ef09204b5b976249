package signal

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A window of few rows gives them as they are; the course belongs to its own sample.
func TestCourseOfFewRows(t *testing.T) {
	s := newStage(t, Options{Courses: true, Config: config([]string{"x", "y"}, func(w *Window) {
		w.Length, w.Hop, w.MinRows = Span{Rows: 3}, Span{Rows: 1}, 1
	})})
	if got := s.CourseSignals(); !slices.Equal(got, []string{"x", "y"}) {
		t.Errorf("the signals are %v", got)
	}
	m := &Message{Device: "p", Own: true}
	for i := range int64(5) {
		m.Rows = append(m.Rows, Row{Time: (100 + i) * second, X: []float64{float64(i), float64(-i)}})
	}
	var got []string
	for _, sample := range s.Take(m) {
		got = append(got, fmt.Sprint(sample.Course))
	}
	if want := []string{"[0 1 2 0 -1 -2]", "[1 2 3 -1 -2 -3]", "[2 3 4 -2 -3 -4]"}; !slices.Equal(got, want) {
		t.Errorf("the courses are %v, want %v", got, want)
	}
	without := newStage(t, Options{Config: s.cfg})
	for _, sample := range without.Take(m) {
		if sample.Course != nil {
			t.Errorf("a course that was not configured: %v", sample.Course)
		}
	}
}

// A course of many rows has the lowest and highest value of each piece, in the order in
// which they came.
func TestCourseOfManyRows(t *testing.T) {
	const n = 1000
	rng := rand.New(rand.NewPCG(1, 2))
	for name, window := range map[string]func(*Window){
		"count":   func(w *Window) { w.Length, w.Hop = Span{Rows: n}, Span{Rows: n} },
		"time":    func(w *Window) { w.Length, w.Hop = Span{Time: n * time.Second}, Span{Time: n * time.Second} },
		"message": func(w *Window) { w.Length = Span{Message: true} },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, Options{Courses: true, Config: config([]string{"x"}, window)})
			m := &Message{Device: "p", Own: true}
			var x []float64
			for i := range int64(n) {
				x = append(x, rng.NormFloat64())
				m.Rows = append(m.Rows, Row{Time: (n*7 + i) * second, X: x[i:]})
			}
			var course []float64
			for _, m := range []*Message{m, one("p", n*8*second, "", 0)} {
				for _, sample := range s.Take(m) {
					if course == nil {
						course = slices.Clone(sample.Course)
					}
				}
			}
			if len(course) != 2*coursePieces {
				t.Fatalf("the course has %d values", len(course))
			}
			for k := range coursePieces {
				var rows []float64
				for i, v := range x {
					if i*coursePieces/n == k {
						rows = append(rows, v)
					}
				}
				want := []float64{slices.Min(rows), slices.Max(rows)}
				if slices.Index(rows, want[0]) > slices.Index(rows, want[1]) {
					slices.Reverse(want)
				}
				if got := course[2*k : 2*k+2]; !slices.Equal(got, want) {
					t.Errorf("piece %d is %v, want %v", k, got, want)
				}
			}
		})
	}
}

// The rows of a window by time stand where they came; a piece without a row has no value.
func TestCourseOfRareRows(t *testing.T) {
	s := newStage(t, Options{Courses: true, Config: config([]string{"x"}, func(w *Window) {
		w.Length, w.Hop, w.MinRows, w.MaxGap = Span{Time: 80 * time.Second}, Span{Time: 80 * time.Second}, 1, time.Hour
	})})
	var course []float64
	for _, row := range [][2]float64{{160, 1}, {170, 2}, {171, 5}, {239, 3}, {240, 9}} {
		for _, sample := range s.Take(one("p", int64(row[0])*second, "", row[1])) {
			course = slices.Clone(sample.Course)
		}
	}
	at := map[int]float64{0: 1, 10: 2, 11: 5, 79: 3} // a piece is a second
	for k := range coursePieces {
		want, there := at[k]
		if got := course[2*k : 2*k+2]; there && (got[0] != want || got[1] != want) || !there && !(math.IsNaN(got[0]) && math.IsNaN(got[1])) {
			t.Errorf("second %d has %v, want %v, %v", k, got, want, there)
		}
	}
}

func TestProgressOfWindows(t *testing.T) {
	for name, tc := range map[string]struct {
		window func(*Window)
		want   []Progress // after rows at seconds 100, 101, …
	}{
		"count": {
			func(w *Window) { w.Length, w.Hop = Span{Rows: 4}, Span{Rows: 2} },
			[]Progress{{Rows: 1, Part: 0.25}, {Rows: 2, Part: 0.5}, {Rows: 3, Part: 0.75}, {Rows: 2, Part: 0.5}, {Rows: 3, Part: 0.75}, {Rows: 2, Part: 0.5}},
		},
		"time": { // a window ends at 104 and 108
			func(w *Window) { w.Length, w.Hop = Span{Time: 4 * time.Second}, Span{Time: 4 * time.Second} },
			[]Progress{{Rows: 1}, {Rows: 2, Part: 0.25}, {Rows: 3, Part: 0.5}, {Rows: 4, Part: 0.75}, {Rows: 1}, {Rows: 2, Part: 0.25}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var windows Windows
			s := newStage(t, Options{Windows: &windows, Config: config([]string{"x"}, func(w *Window) {
				tc.window(w)
				w.MinRows, w.Devices, w.MaxGap = 1, 2, time.Hour
			})})
			for i, want := range tc.want {
				at := int64(100+i) * second
				want.Device, want.Last = "p", at
				s.Take(one("p", at, "", 1))
				if got := windows.List(); len(got) != 1 || got[0] != want {
					t.Errorf("after row %d: %+v, want %+v", i, got, want)
				}
			}
			// In the order of their names; a third device takes the place of the first.
			s.Take(one("q", 200*second, "", 1))
			saved := s.Save()
			s.Take(one("r", 150*second, "", 1))
			if got := windows.List(); len(got) != 2 || got[0].Device != "q" || got[1].Device != "r" {
				t.Errorf("the devices are %+v, want q and r", got)
			}
			// They are known as soon as stored windows continue.
			var again Windows
			opts := s.opts
			opts.Windows = &again
			if err := newStage(t, opts).Restore(saved); err != nil {
				t.Fatal(err)
			}
			if got := again.List(); len(got) != 2 || got[1].Device != "q" || got[0].Rows != tc.want[len(tc.want)-1].Rows {
				t.Errorf("after a restart: %+v", got)
			}
			if err := newStage(t, opts).Restore(saved[:len(saved)-1]); err == nil || len(again.List()) != 0 {
				t.Errorf("damaged windows: %v, %+v", err, again.List())
			}
		})
	}
}

// Courses and the report of the windows cost little beside the features.
func BenchmarkCourses(b *testing.B) {
	for name, opts := range map[string]Options{"without": {}, "with": {Courses: true, Windows: new(Windows)}} {
		b.Run(name, func(b *testing.B) {
			opts.Config = config([]string{"x", "y", "z"}, func(w *Window) { w.Length, w.Hop = Span{Rows: 256}, Span{Rows: 128} })
			s := newStage(b, opts)
			m := one("p", 0, "", 0, 0, 0)
			rng := rand.New(rand.NewPCG(1, 1))
			at := int64(0)
			b.ReportAllocs()
			for b.Loop() {
				at += second / 100
				m.Rows[0].Time = at
				for j := range m.Rows[0].X {
					m.Rows[0].X[j] = rng.NormFloat64()
				}
				s.Take(m)
			}
		})
	}
}
