package report_test

import (
	"fmt"
	"time"

	"edge/internal/report"
	"edge/online"
	"edge/online/score"
)

// Describe a learner after a stream.
func ExampleNew() {
	cfg := online.DefaultConfig()
	cfg.Features, cfg.Classes.Names = []string{"x"}, []string{"idle", "busy"}
	learner, err := online.NewLearner(cfg)
	if err != nil {
		panic(err)
	}
	for i, label := range []string{"idle", "busy", "idle", "busy"} {
		learner.Add(&online.Event{Kind: online.Observe, X: []float64{float64(i % 2)}, Label: label})
	}
	r, err := report.New("room", learner, report.Curve{}, time.Second)
	if err != nil {
		panic(err)
	}
	fmt.Println(r.Dataset, r.Mode, r.Samples, r.Classes)
	// Output:
	// room prequential 4 [idle busy]
}

// The mean of two runs has a standard error.
func ExampleMean() {
	r := report.Mean([]*report.Report{
		{Dataset: "room", Figures: report.Figures{Error: 0.1}},
		{Dataset: "room", Figures: report.Figures{Error: 0.2}},
	})
	fmt.Printf("%.2f ± %.2f of %d runs\n", r.Error, r.ErrorSE, len(r.Runs))
	// Output:
	// 0.15 ± 0.05 of 2 runs
}

// A curve holds at most 200 points, however long the stream.
func ExampleCurve() {
	var c report.Curve
	for n := uint64(1); n <= 100_000; n++ {
		if c.Due(n) {
			c.Add(score.Scores{Figures: score.Figures{N: n}})
		}
	}
	points := c.Ending(score.Scores{Figures: score.Figures{N: 100_000}})
	fmt.Println(len(points) <= 200, points[len(points)-1].N)
	// Output:
	// true 100000
}

// Quantiles of durations take bounded memory.
func ExampleDurationSum() {
	var d report.DurationSum
	for i := range 100 {
		d.Add(time.Duration(i+1) * time.Millisecond)
	}
	s := d.Summary()
	fmt.Printf("mean %.4f s, max %.1f s\n", s.Mean, s.Max)
	// Output:
	// mean 0.0505 s, max 0.1 s
}
