package main

import (
	"context"
	"fmt"

	"edge/internal/dataset"
	"edge/internal/eval"
	"edge/internal/report"
	"edge/lab/linear"
	"edge/online/score"
)

// linearRates are the learning rates that eval --linear compares.
var linearRates = []float64{0.001, 0.003, 0.01, 0.03}

// linearPolicy evaluates soft-max regression at each learning rate on the same
// rows; their labels arrive after every batch of predictions.
type linearPolicy struct {
	learners []*linear.Softmax
	judges   []score.Judge // of each learner
	classes  []string
	index    map[string]int // of the classes
	batch    int
	rows     [][]float64 // that wait for the end of the batch
	labels   []int
}

func newLinearPolicy(d int, classes []string, batch int) *linearPolicy {
	p := &linearPolicy{judges: make([]score.Judge, len(linearRates)), classes: classes, index: map[string]int{}, batch: batch}
	for k, class := range classes {
		p.index[class] = k
	}
	for _, rate := range linearRates {
		s := linear.New(d, rate)
		s.Grow(len(classes) - 1)
		p.learners = append(p.learners, s)
	}
	return p
}

// Row implements eval.Policy.
func (p *linearPolicy) Row(row *dataset.Row) error {
	k := p.index[row.Label]
	for i, s := range p.learners {
		p.judges[i].Add(s.Probs(row.X), k)
	}
	p.rows, p.labels = append(p.rows, append([]float64(nil), row.X...)), append(p.labels, k)
	if len(p.rows) < p.batch {
		return nil
	}
	for i, x := range p.rows {
		for _, s := range p.learners {
			s.Learn(x, p.labels[i])
		}
	}
	p.rows, p.labels = p.rows[:0], p.labels[:0]
	return nil
}

// Position implements eval.Policy; without a position there is no curve.
func (p *linearPolicy) Position() uint64 { return 0 }

// Scores implements eval.Policy: those of the rate with the least log loss.
func (p *linearPolicy) Scores() score.Scores {
	_, s := p.best()
	return s
}

// best returns the rate with the least log loss, and its scores.
func (p *linearPolicy) best() (rate float64, best score.Scores) {
	for i := range p.judges {
		if s := p.judges[i].Scores(p.classes); i == 0 || s.NLL < best.NLL {
			rate, best = linearRates[i], s
		}
	}
	return rate, best
}

// softmaxReport reports on soft-max regression at the best learning rate.
func softmaxReport(ctx context.Context, rows dataset.Rows, d int, classes []string, batch int, name string) (*report.Report, error) {
	p := newLinearPolicy(d, classes, batch)
	c, err := eval.Run(ctx, rows, p, nil)
	if err != nil {
		return nil, fmt.Errorf("eval --linear: %w", err)
	}
	rate, s := p.best()
	r := &report.Report{
		Dataset: fmt.Sprintf("%s, soft-max regression at rate %g", name, rate), Mode: "prequential", Samples: s.N, Classes: classes,
		Figures: report.Figures{Error: s.Error, NLL: s.NLL, Brier: s.Brier, ECE: s.ECE, MacroF1: s.MacroF1, Balanced: s.Balanced, Kappa: s.Kappa},
		Curve:   []report.CurvePoint{}, Runs: []report.Run{}, Seconds: c.Taken.Seconds(),
	}
	r.SamplesPerSecond = float64(s.N) * float64(len(linearRates)) / r.Seconds
	return r, nil
}
