package report

import (
	"fmt"
	"io"
	"strings"

	"edge/internal/terminal"
	"edge/online/active"
)

// Asked counts the labels that an active-learning strategy requested, in a Report.
// All samples are judged, those without a request included.
type Asked struct {
	Strategy active.Strategy `json:"strategy"`
	Budget   float64         `json:"budget"`
	Seed     uint64          `json:"seed"`     // of the model and of the selection; the first of several
	Labels   float64         `json:"labels"`   // requested and learnt; the mean over the runs
	Fraction float64         `json:"fraction"` // of the samples
	LastHalf HalfScore       `json:"last_half"`
}

// HalfScore holds the scores of the second half of the rows.
type HalfScore struct {
	Error float64 `json:"error"`
	NLL   float64 `json:"nll"`
}

// EveryLabel is the Strategy of a report about a model that learnt every label.
const EveryLabel active.Strategy = "every label"

// meanAsked returns the mean over repeats.
func meanAsked(reports []*Report) *Asked {
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

// PrintAsked writes a table with a line for each report, and the number of labels
// that each strategy needs where a report on every label precedes.
func PrintAsked(w io.Writer, reports []*Report) error {
	t := new(strings.Builder)
	fmt.Fprintln(t, "data set\tsamples\tstrategy\tbudget\tlabels\tof all\terror\tnll\tlast half\tnll\tece\t")
	for _, r := range reports {
		a := r.Asked
		fmt.Fprintf(t, "%s\t%d\t%s\t%g\t%.0f\t%.1f %%\t%.4f\t%.4f\t%.4f\t%.4f\t%.4f\t\n", r.Dataset, r.Samples, a.Strategy, a.Budget,
			a.Labels, 100*a.Fraction, r.Error, r.NLL, a.LastHalf.Error, a.LastHalf.NLL, r.ECE)
	}
	if err := terminal.Table(w, t.String()); err != nil {
		return err
	}
	return printNeeded(w, reports)
}

// printNeeded writes how many labels each strategy needs to reach the error of
// learning every label, as far as the budgets show it.
func printNeeded(w io.Writer, reports []*Report) error {
	type need struct {
		dataset     string
		strategy    active.Strategy
		whole, half *Asked // the smallest sufficient requests; nil: every budget was too small
	}
	var needs []*need
	var full *Report
	for _, r := range reports {
		if r.Asked.Strategy == EveryLabel {
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
		fewer := func(a *Asked) bool { return a == nil || r.Asked.Labels < a.Labels }
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
	labels := func(a *Asked) string {
		if a == nil {
			return "more"
		}
		return fmt.Sprintf("%.0f (%g)", a.Labels, a.Budget)
	}
	fmt.Fprintln(w, "\nlabels (budget) for the error of every label:")
	t := new(strings.Builder)
	fmt.Fprintln(t, "data set\tstrategy\tall samples\tlast half\t")
	for _, n := range needs {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t\n", n.dataset, n.strategy, labels(n.whole), labels(n.half))
	}
	return terminal.Table(w, t.String())
}
