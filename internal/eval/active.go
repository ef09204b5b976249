package eval

import (
	"fmt"

	"edge/internal/dataset"
	"edge/internal/report"
	"edge/model"
	"edge/online"
	"edge/online/active"
	"edge/online/score"
)

// Queries are the strategies and budgets of active learning to compare.
type Queries struct {
	Strategies []string
	Budgets    []float64
	Full       bool // also learn every label, as without active learning
}

// each returns the combinations of strategies and budgets; a single one without a
// strategy if active learning is off.
func (q *Queries) each() (all []active.Config, err error) {
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

// activePolicy learns only the labels that a strategy requests, and judges every row by
// the prediction that would have been published. A requested label is learnt
// before the next row, as far as minibatches of size permit.
type activePolicy struct {
	how      active.Config
	every    bool // label
	learner  *online.Learner
	size     int
	total    int // rows
	rows     int // so far
	asked    int
	post     *model.Posterior
	ws       *model.Workspace
	selector *active.Selector
	probs    []float64
	parts    []float32
	classes  report.ClassBook // in the order in which labels and classes of the model came
	all, end score.Judge      // of all rows, of the second half
}

func newActive(how active.Config, learner *online.Learner, size, total int) *activePolicy {
	a := &activePolicy{how: how, every: how.Strategy == report.EveryLabel, learner: learner, size: size, total: total, post: learner.Posterior(), ws: model.NewWorkspace()}
	if a.every {
		a.how = active.Config{Strategy: active.Random, Budget: 1}
	}
	a.selector = active.NewSelector(a.how, learner.Config().Seed)
	return a
}

func (a *activePolicy) Row(row *dataset.Row) (err error) {
	if a.probs, _, err = a.post.PredictTo(a.probs, row.X, a.ws); err != nil {
		return err
	}
	ask := a.selector.Select(a.selector.Score(a.probs, a.post, a.ws), a.post.Version(), 0)
	probs, class := a.classes.InOrder(a.post.Classes(), a.probs), a.classes.ClassOf(row.Label)
	if ask {
		a.asked++
		a.parts = a.ws.AppendParts(a.parts[:0])
		out := a.learner.Add(&online.Event{Kind: online.Observe, X: row.X, Label: row.Label, Probs: a.probs, Parts: a.parts, Epoch: a.post.Epoch})
		if !out.Closed && a.learner.Pending() >= a.size {
			out = a.learner.Add(&online.Event{Kind: online.Boundary})
		}
		if out.Closed || out.ClassAdded != "" {
			a.post = a.learner.Posterior()
		}
	}
	a.all.Add(probs, class)
	if a.rows >= a.total/2 {
		a.end.Add(probs, class)
	}
	a.rows++
	return nil
}

func (a *activePolicy) finish() {}

func (a *activePolicy) Position() uint64 { return uint64(a.rows) }

func (a *activePolicy) Scores() score.Scores { return a.all.Scores(a.classes.Names) }

func (a *activePolicy) complete(r *report.Report, curve report.Curve) {
	r.Judged(a.Scores(), curve)
	half := a.end.Scores(a.classes.Names)
	strategy := a.how.Strategy
	if a.every {
		strategy = report.EveryLabel
	}
	r.Asked = &report.Asked{
		Strategy: strategy, Budget: a.how.Budget, Seed: a.learner.Config().Seed, Labels: float64(a.asked), Fraction: float64(a.asked) / float64(max(r.Samples, 1)),
		LastHalf: report.HalfScore{Error: half.Error, NLL: half.NLL},
	}
}
