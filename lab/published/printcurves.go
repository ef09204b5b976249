package published

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"edge/internal/terminal"
)

// PrintCurves writes a line for each point of each curve, at most that many of a curve, the
// last one among them.
func PrintCurves(w io.Writer, curves []Curve, most int) error {
	t := tabwriter.NewWriter(terminal.Writer{To: w}, 0, 0, 2, ' ', tabwriter.AlignRight)
	if len(curves) > 0 {
		names := strings.ReplaceAll(strings.Join(curves[0].Scores, "\t"), "_", " ")
		fmt.Fprintf(t, "method\tM\tsplits\tCPU s\tupdates\t%s\t\n", names)
	}
	for i := range curves {
		c := &curves[i]
		if c.Failure != "" {
			fmt.Fprintf(t, "%s\t%d\t%d\tfailed: %s\t\n", c.Method, c.Inducing, c.Splits, c.Failure)
		}
		every := (len(c.Points) + most - 1) / most
		for j, p := range c.Points {
			if (len(c.Points)-1-j)%every != 0 {
				continue
			}
			fmt.Fprintf(t, "%s\t%d\t%d\t%.2f\t%d\t", c.Method, c.Inducing, c.Splits, p.Seconds, p.Updates)
			for _, v := range p.Scores {
				fmt.Fprintf(t, "%.4f\t", v)
			}
			fmt.Fprintln(t)
		}
	}
	return t.Flush()
}

// PrintPanels writes a line for each panel.
func PrintPanels(w io.Writer, p *Plane) error {
	t := tabwriter.NewWriter(terminal.Writer{To: w}, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "method\tM\terror\tnll\tCPU s\t")
	for _, panel := range p.Panels {
		if panel.Failure != "" {
			fmt.Fprintf(t, "%s\t%d\tfailed: %s\t\n", panel.Method, panel.Inducing, panel.Failure)
			continue
		}
		fmt.Fprintf(t, "%s\t%d\t%.4f\t%.4f\t%.2f\t\n", panel.Method, panel.Inducing, panel.Error, panel.NLL, panel.Seconds)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "the largest true latent without noise: error %.4f\n", p.BestError)
	return err
}
