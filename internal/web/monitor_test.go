package web

import (
	"fmt"
	"testing"

	"edge/internal/config"
	"edge/internal/report"
	"edge/online/score"
	"edge/stream"
)

// A course of any length keeps its ends and a bounded number of points.
func TestCourseIsBounded(t *testing.T) {
	cfg := config.Default()
	cfg.Models["m"] = config.DefaultModel()
	m := NewMonitor()
	m.Follow(&Deployment{Config: &cfg})
	for n := range 10000 {
		m.trace("m", &score.Scores{Figures: score.Figures{N: uint64(n), Error: 0.5}})
		m.trace("m", &score.Scores{Figures: score.Figures{N: uint64(n), Error: 0.5}}) // unchanged
	}
	_, course := m.history("m")
	if len(course) >= report.CoursePoints || len(course) < report.CoursePoints/4 {
		t.Errorf("%d points", len(course))
	}
	if first, last := course[0].N, course[len(course)-1].N; first > 200 || last < 9800 {
		t.Errorf("from %d to %d, want 1 to 9999 or nearly", first, last)
	}
	for i := 1; i < len(course); i++ {
		if course[i].N <= course[i-1].N {
			t.Fatalf("point %d is %+v after %+v", i, course[i], course[i-1])
		}
	}
}

// Predictions of any number of classes are counted under a bounded number of names.
func TestPredictedClassesAreBounded(t *testing.T) {
	cfg := config.Default()
	cfg.Models["m"] = config.DefaultModel()
	m := NewMonitor()
	m.Follow(&Deployment{Config: &cfg})
	const classes = 3 * maxPredicted
	for i := range classes {
		m.OnPrediction(&stream.Prediction{Model: "m", Classes: []string{fmt.Sprint(i)}, Class: 0, Probs: []float64{1}})
	}
	var sum uint64
	counts := m.recent["m"].predicted
	for _, n := range counts {
		sum += n
	}
	if len(counts) != maxPredicted+1 || sum != classes || counts["0"] != 1 || counts[otherClasses] != classes-maxPredicted {
		t.Errorf("%d names, %d predictions, %d of other classes", len(counts), sum, counts[otherClasses])
	}
}

// After a rollback and after a reset the course has the points of the model as it is.
func TestCourseGoesBack(t *testing.T) {
	cfg := config.Default()
	cfg.Models["m"] = config.DefaultModel()
	m := NewMonitor()
	m.Follow(&Deployment{Config: &cfg})
	trace := func(from, to uint64) {
		for n := from; n <= to; n++ {
			m.trace("m", &score.Scores{Figures: score.Figures{N: n, Error: 0.5}})
		}
	}
	check := func(what string, first, last uint64, least int) {
		t.Helper()
		_, course := m.history("m")
		if len(course) < least || course[0].N != first || course[len(course)-1].N != last {
			t.Errorf("%s: %+v, want points from %d to %d", what, course, first, last)
		}
	}
	trace(1, 100)
	trace(40, 50)
	check("rolled back to 40", 1, 50, 50)
	trace(0, 30)
	check("reset", 1, 30, 30)
	trace(31, 10000) // with fewer points
	trace(0, 10)
	check("reset later", 1, 10, 10)
}
