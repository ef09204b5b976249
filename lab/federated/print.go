package federated

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Print writes a table with a line for each result, and one of their means.
func Print(out io.Writer, results []*Result) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if results[0].Before > 0 {
		fmt.Fprintln(w, "set\tseed\tlabels\talone\tfleet\tratio")
		for _, r := range results {
			for i, labels := range r.Fleet.Newcomer.Labels {
				if labels == 0 {
					continue
				}
				a, f := r.Alone.Newcomer, r.Fleet.Newcomer
				fmt.Fprintf(w, "%s\t%d\t%d\t%.4f/%.4f\t%.4f/%.4f\t%.3f\n", r.Dataset, r.Seed, labels, a.Errors[i], a.NLL[i], f.Errors[i], f.NLL[i], f.NLL[i]/a.NLL[i])
			}
		}
		for _, r := range results {
			if f, o := r.Fleet.Follower, r.Fleet.Others; f != nil {
				fmt.Fprintf(w, "%s\t%d\tfollower\tothers %.4f/%.4f\t%.4f/%.4f\t%.3f\n", r.Dataset, r.Seed, o.Error, o.NLL, f.Error, f.NLL, f.NLL/o.NLL)
			}
		}
		return w.Flush()
	}
	fmt.Fprintln(w, "set\tseed\tone device\talone\tfleet\tto one\tto alone\tgap closed\tgood refused\tbad refused\ttime\tmerge ms\tcontribution ms\tbytes")
	line := func(name, seed string, r *Result) {
		one, alone, joined := r.One.NLL, r.Alone.NLL, r.Fleet.NLL
		fmt.Fprintf(w, "%s\t%s\t%.4f/%.4f\t%.4f/%.4f\t%.4f/%.4f\t%.3f\t%.3f\t%.2f\t%d of %d\t%d of %d\t%.2f\t%.1f\t%.1f\t%d\n", name, seed, r.One.Error, one,
			r.Alone.Error, alone, r.Fleet.Error, joined, joined/one, joined/alone, (alone-joined)/(alone-one), r.GoodRefused, r.GoodTests,
			r.BadRefused, r.BadTests, r.TimeRatio, r.MergeMillis, r.ContributionMillis, r.Bytes)
	}
	var mean Result
	for _, r := range results {
		line(r.Dataset, fmt.Sprint(r.Seed), r)
		n := float64(len(results))
		for _, s := range []struct{ to, from *Scores }{{&mean.One, &r.One}, {&mean.Alone, &r.Alone}, {&mean.Fleet, &r.Fleet}} {
			s.to.Error += s.from.Error / n
			s.to.NLL += s.from.NLL / n
		}
		mean.TimeRatio += r.TimeRatio / n
		mean.MergeMillis += r.MergeMillis / n
		mean.ContributionMillis += r.ContributionMillis / n
		mean.Bytes = max(mean.Bytes, r.Bytes)
		mean.GoodTests, mean.GoodRefused = mean.GoodTests+r.GoodTests, mean.GoodRefused+r.GoodRefused
		mean.BadTests, mean.BadRefused = mean.BadTests+r.BadTests, mean.BadRefused+r.BadRefused
	}
	if len(results) > 1 {
		line(results[0].Dataset, "mean", &mean)
	}
	return w.Flush()
}
