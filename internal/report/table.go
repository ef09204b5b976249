package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"

	"edge/internal/terminal"
	"edge/online/score"
)

// Figure formats a score of n samples, as – for n = 0.
func Figure(n uint64, format string, v float64) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprintf(format, v)
}

// Print writes a table with a line for each report.
func Print(w io.Writer, reports []*Report) error {
	t := new(strings.Builder)
	fmt.Fprintln(t, "data set\tlabels\tsamples\tclasses\terror\tnll\tbrier\tece\tmacro-f1\tbalanced\tkappa\tprior\tlast\tcoverage\tset\tkept\tsamples/s\tstate\tdigest\t")
	for _, r := range reports {
		digest, state := r.Digest[:min(12, len(r.Digest))], terminal.Bytes(uint64(r.StateBytes))
		if len(r.Runs) > 0 {
			digest = fmt.Sprintf("mean of %d", len(r.Runs))
		}
		if r.Published != nil {
			digest, state = "published", "–"
		}
		covered, size, kept := "–", "–", "–"
		if s := r.Sets; s != nil {
			covered, size = fmt.Sprintf("%.4f", s.Covered), fmt.Sprintf("%.3f", s.Size)
		}
		if a := r.Abstained; a != nil {
			if kept = fmt.Sprintf("%.3f", a.Kept); a.Kept > 0 {
				kept += fmt.Sprintf(" (error %.4f)", a.Error)
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t", r.Dataset, cmp.Or(r.Labels, "–"), r.Samples, len(r.Classes))
		for _, f := range [][2]float64{{r.Error, r.ErrorSE}, {r.NLL, r.NLLSE}, {r.Brier, r.BrierSE}, {r.ECE, r.ECESE}, {r.MacroF1, r.MacroF1SE},
			{float64(r.Balanced), float64(r.BalancedSE)}, {float64(r.Kappa), float64(r.KappaSE)}} {
			switch {
			case math.IsNaN(f[0]): // as kappa where all rows have one class
				fmt.Fprint(t, "–\t")
			case len(r.Runs) > 1:
				fmt.Fprintf(t, "%.4f ± %.4f\t", f[0], f[1])
			default:
				fmt.Fprintf(t, "%s\t", Figure(r.Samples, "%.4f", f[0]))
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%.0f\t%s\t%s\t\n", baseline(&r.Prior), baseline(&r.Last), covered, size, kept, r.SamplesPerSecond, state, digest)
	}
	return terminal.Table(w, t.String())
}

// PrintHeld writes the table of Print and, for reports on devices or recordings that were
// held out, one with a line for each.
func PrintHeld(w io.Writer, reports []*Report) error {
	if err := Print(w, reports); err != nil {
		return err
	}
	for _, r := range reports {
		if len(r.Runs) == 0 || r.Runs[0].Held == "" {
			continue
		}
		fmt.Fprintln(w)
		t := new(strings.Builder)
		fmt.Fprintln(t, "held out\tsamples\terror\tnll\tmacro-f1\t")
		for _, run := range r.Runs {
			fmt.Fprintf(t, "%s\t%d\t%.4f\t%.4f\t%.4f\t\n", run.Held, run.Judged, run.Error, run.NLL, run.MacroF1)
		}
		if err := terminal.Table(w, t.String()); err != nil {
			return err
		}
	}
	return nil
}

// PrintPublished writes the table of Print, and a second one with requests,
// abstentions and latency of the published predictions.
func PrintPublished(w io.Writer, reports []*Report) error {
	if err := Print(w, reports); err != nil {
		return err
	}
	fmt.Fprintln(w)
	t := new(strings.Builder)
	fmt.Fprintln(t, "node\tmodel\trows\tunanswered\tqueries\tabstained\tlatency mean\tp50\tp99\tround trip mean\tp50\tp99\t")
	for _, r := range reports {
		p := r.Published
		var abstained float64
		if a := r.Abstained; a != nil {
			abstained = math.Round((1 - float64(a.Kept)) * float64(a.N))
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%.0f", p.Node, p.Model, p.Rows, p.Unanswered, p.Queries, abstained)
		for _, d := range []*Durations{&p.Latency, &p.RoundTrip} {
			for _, s := range []float64{d.Mean, d.P50, d.P99} {
				fmt.Fprintf(t, "\t%.2f ms", 1000*s)
			}
		}
		fmt.Fprintln(t, "\t")
	}
	return terminal.Table(w, t.String())
}

// baseline formats error and log loss of a baseline.
func baseline(b *score.Baseline) string {
	if b.N == 0 {
		return "–"
	}
	return fmt.Sprintf("%.3f/%.3f", b.Error, b.NLL)
}
