package published

import (
	"context"
	"fmt"

	"edge/lab"
	"edge/lab/compare"
	"edge/lab/ep"
)

// Schedules are those of Section 2.2 that figure 1 compares.
var Schedules = []struct {
	Name string
	fit  lab.Method
}{
	{"outer", ep.Outer},
	{"inner, approximate gradient", ep.Inner},
	{"inner, exact gradient", ep.InnerExact},
}

// Evidence returns, for each schedule of EP, its log evidence over the processor time of that
// many updates, on the first split of a comparison. done is called after each schedule.
//
// Source: Villacampa-Calvo & Hernández-Lobato (2017), figure 1.
func Evidence(ctx context.Context, d *lab.Data, cfg compare.Config, done func()) ([]Curve, error) {
	split, err := compare.NewSplit(d, cfg, 0)
	if err != nil {
		return nil, err
	}
	var curves []Curve
	for _, s := range Schedules {
		p := cfg.Problem(split.Learn, 0)
		r := Recorder{Score: func(now lab.Classifier) ([]float64, error) {
			return []float64{now.(*ep.EP).LogZ()}, nil
		}}
		points, err := r.Run(ctx, s.fit, *p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		curves = append(curves, Curve{Method: s.Name, Inducing: p.Start.M, Splits: 1, Scores: []string{"log_evidence"}, Points: points})
		done()
	}
	return curves, nil
}
