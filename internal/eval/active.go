package eval

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"edge/internal/dataset"
	"edge/internal/report"
	"edge/model"
	"edge/online"
	"edge/online/active"
	"edge/online/score"
)

// Questions are the flags of eval that teach labels on request alone.
type Questions struct {
	Strategies []string
	Budgets    []float64
	Full       bool // also teach every label, as without questions
}

// askings are the strategies and budgets to evaluate; one that asks nothing
// stands for every label being taught without questions.
func (q *Questions) askings() (all []active.Config, err error) {
	if len(q.Strategies) == 0 {
		return []active.Config{{}}, nil
	}
	if q.Full {
		all = append(all, active.Config{Strategy: report.EveryLabel, Budget: 1})
	}
	for _, s := range q.Strategies {
		for _, b := range q.Budgets {
			a := active.Config{Strategy: active.Strategy(s), Budget: b}
			if err := a.Validate(); err != nil {
				return nil, fmt.Errorf("--query and --budget: %w", err)
			}
			if !a.Enabled() {
				return nil, fmt.Errorf("--query %s: want some of %v", s, active.Strategies())
			}
			all = append(all, a)
		}
	}
	return all, nil
}

// askingEval teaches learner the labels that it asks for, and judges every row,
// of total ones, by the prediction that it would have published. A label is
// learnt before the next row comes, as far as minibatches of size allow.
func askingEval(ctx context.Context, learner *online.Learner, rows dataset.Rows, name string, how active.Config, size, total int, progress func(int)) (*report.Report, error) {
	every := how.Strategy == report.EveryLabel
	if every {
		how = active.Config{Strategy: active.Random, Budget: 1}
	}
	var (
		row      dataset.Row
		curve    report.Curve
		all, end score.Judge
		taken    time.Duration
		probs    []float64
		asked    int
		post     = learner.Posterior()
		ws       = model.NewWorkspace()
		asker    = active.NewSelector(how, learner.Config().Seed)
	)
	for n := 0; ; n++ {
		err := rows.Next(&row)
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, errors.New("eval: interrupted")
		}
		start := time.Now()
		if probs, _, err = post.PredictTo(probs, row.X, ws); err != nil {
			return nil, err
		}
		ask := asker.Select(asker.Score(probs, post, ws), post.Version(), 0)
		class := classOf(post, row.Label)
		if ask {
			asked++
			out := learner.Add(&online.Event{Kind: online.Observe, X: row.X, Label: row.Label, Probs: probs})
			if !out.Closed && learner.Pending() >= size {
				out = learner.Add(&online.Event{Kind: online.Boundary})
			}
			if out.Closed || out.ClassAdded != "" {
				post = learner.Posterior()
			}
		}
		taken += time.Since(start)
		progress(1)
		all.Add(probs, class)
		if n >= total/2 {
			end.Add(probs, class)
		}
		if judged := uint64(n + 1); curve.Due(judged) {
			curve.Add(all.Scores(post.Classes()))
		}
	}
	r, err := report.New(name, learner, curve, taken)
	if err != nil {
		return nil, err
	}
	r.Judged(all.Scores(post.Classes()), curve)
	half := end.Scores(post.Classes())
	if every {
		how.Strategy = report.EveryLabel
	}
	r.Asked = &report.Asked{
		Strategy: how.Strategy, Budget: how.Budget, Seed: learner.Config().Seed, Labels: float64(asked), Fraction: float64(asked) / float64(max(r.Samples, 1)),
		LastHalf: report.HalfScore{Error: half.Error, NLL: half.NLL},
	}
	return r, nil
}

// classOf is the place of a label among the classes, or behind them.
func classOf(p *model.Posterior, label string) int {
	for k, name := range p.Classes() {
		if name == label {
			return k
		}
	}
	return len(p.Classes())
}
