package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"edge/internal/dataset"
	"edge/model"
	"edge/online"
)

// AskedReport is how few labels a model was taught, in a Report. All samples
// are judged, asked for or not.
type AskedReport struct {
	Strategy online.Strategy `json:"strategy"`
	Budget   float64         `json:"budget"`
	Seed     uint64          `json:"seed"`     // of the model and of the questions; the first of several
	Labels   float64         `json:"labels"`   // asked for and taught; the mean over the runs
	Fraction float64         `json:"fraction"` // of the samples
	LastHalf HalfScore       `json:"last_half"`
}

// HalfScore judges the second half of the rows.
type HalfScore struct {
	Error float64 `json:"error"`
	NLL   float64 `json:"nll"`
}

// questions are the flags of eval that teach labels on request alone.
type questions struct {
	strategies []string
	budgets    []float64
	full       bool // also teach every label, as without questions
}

// everyLabel is the Strategy of a report about a model that was taught them all.
const everyLabel online.Strategy = "every label"

// askings are the strategies and budgets to evaluate; one that asks nothing
// stands for every label being taught without questions.
func (q *questions) askings() (all []online.Asking, err error) {
	if len(q.strategies) == 0 {
		return []online.Asking{{}}, nil
	}
	if q.full {
		all = append(all, online.Asking{Strategy: everyLabel, Budget: 1})
	}
	for _, s := range q.strategies {
		for _, b := range q.budgets {
			a := online.Asking{Strategy: online.Strategy(s), Budget: b}
			if err := a.Validate(); err != nil {
				return nil, fmt.Errorf("--query and --budget: %w", err)
			}
			if !a.Enabled() {
				return nil, fmt.Errorf("--query %s: want some of %v", s, online.Strategies())
			}
			all = append(all, a)
		}
	}
	return all, nil
}

// askingEval teaches learner the labels that it asks for, and judges every row,
// of total ones, by the prediction that it would have published. A label is
// learnt before the next row comes, as far as minibatches of size allow.
func askingEval(ctx context.Context, learner *online.Learner, rows dataset.Rows, name string, how online.Asking, size, total int, progress func(int)) (*Report, error) {
	every := how.Strategy == everyLabel
	if every {
		how = online.Asking{Strategy: online.AskRandom, Budget: 1}
	}
	var (
		row      dataset.Row
		curve    Curve
		all, end online.Judge
		taken    time.Duration
		probs    []float64
		asked    int
		post     = learner.Posterior()
		ws       = model.NewWorkspace()
		asker    = online.NewAsker(how, learner.Config().Seed)
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
		ask := asker.Ask(asker.Score(probs, post, ws), post.Version(), 0)
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
	r, err := newReport(name, learner, curve, taken)
	if err != nil {
		return nil, err
	}
	r.judged(all.Scores(post.Classes()), curve)
	half := end.Scores(post.Classes())
	if every {
		how.Strategy = everyLabel
	}
	r.Asked = &AskedReport{
		Strategy: how.Strategy, Budget: how.Budget, Seed: learner.Config().Seed, Labels: float64(asked), Fraction: float64(asked) / float64(max(r.Samples, 1)),
		LastHalf: HalfScore{half.Error, half.NLL},
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

// meanAsked is the mean over repeats.
func meanAsked(reports []*Report) *AskedReport {
	if reports[0].Asked == nil {
		return nil
	}
	mean, n := *reports[0].Asked, float64(len(reports))
	mean.Labels, mean.Fraction, mean.LastHalf = 0, 0, HalfScore{}
	for _, r := range reports {
		mean.Labels += r.Asked.Labels / n
		mean.Fraction += r.Asked.Fraction / n
		mean.LastHalf.Error += r.Asked.LastHalf.Error / n
		mean.LastHalf.NLL += r.Asked.LastHalf.NLL / n
	}
	return &mean
}

// printAsked writes a table, a line for each report.
func printAsked(w io.Writer, reports []*Report) error {
	t := tabwriter.NewWriter(textWriter{w}, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "data set\tsamples\tstrategy\tbudget\tlabels\tof all\terror\tnll\tlast half\tnll\tece\t")
	for _, r := range reports {
		a := r.Asked
		fmt.Fprintf(t, "%s\t%d\t%s\t%g\t%.0f\t%.1f %%\t%.4f\t%.4f\t%.4f\t%.4f\t%.4f\t\n", r.Dataset, r.Samples, a.Strategy, a.Budget,
			a.Labels, 100*a.Fraction, r.Error, r.NLL, a.LastHalf.Error, a.LastHalf.NLL, r.ECE)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return printNeeded(w, reports)
}

// printNeeded writes how many labels each strategy needs for the error of
// teaching every label, as far as the budgets show it.
func printNeeded(w io.Writer, reports []*Report) error {
	type need struct {
		dataset     string
		strategy    online.Strategy
		whole, half *AskedReport // that were enough; nil: none was
	}
	var needs []*need
	var full *Report
	for _, r := range reports {
		if r.Asked.Strategy == everyLabel {
			full = r
			continue
		}
		if full == nil {
			continue
		}
		n := len(needs) - 1
		if n < 0 || needs[n].dataset != r.Dataset || needs[n].strategy != r.Asked.Strategy {
			needs, n = append(needs, &need{dataset: r.Dataset, strategy: r.Asked.Strategy}), n+1
		}
		fewer := func(a *AskedReport) bool { return a == nil || r.Asked.Labels < a.Labels }
		if r.Error <= full.Error && fewer(needs[n].whole) {
			needs[n].whole = r.Asked
		}
		if r.Asked.LastHalf.Error <= full.Asked.LastHalf.Error && fewer(needs[n].half) {
			needs[n].half = r.Asked
		}
	}
	if len(needs) == 0 {
		return nil
	}
	labels := func(a *AskedReport) string {
		if a == nil {
			return "more"
		}
		return fmt.Sprintf("%.0f (%g)", a.Labels, a.Budget)
	}
	fmt.Fprintln(w, "\nlabels (budget) for the error of every label:")
	t := tabwriter.NewWriter(textWriter{w}, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "data set\tstrategy\tall samples\tlast half\t")
	for _, n := range needs {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t\n", n.dataset, n.strategy, labels(n.whole), labels(n.half))
	}
	return t.Flush()
}

// plotAsked draws the error over the number of labels, a curve for each data
// set and strategy.
func plotAsked(path string, reports []*Report) error {
	var curves []scoreCurve
	for _, r := range reports {
		name := r.Dataset + ", " + string(r.Asked.Strategy)
		if len(curves) == 0 || curves[len(curves)-1].name != name {
			curves = append(curves, scoreCurve{name: name})
		}
		c := &curves[len(curves)-1]
		c.x, c.left, c.right = append(c.x, r.Asked.Labels), append(c.left, r.Error), append(c.right, r.Asked.LastHalf.Error)
	}
	return drawCurves(path, "Error, all samples", "Error, last half", "labels asked for", curves)
}
