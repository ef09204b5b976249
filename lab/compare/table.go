package compare

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"edge/internal/terminal"
)

// Cell is the mean of a method over the splits of a data set: the object of compare --json.
type Cell struct {
	Dataset  string  `json:"dataset"`
	Method   string  `json:"method"`
	Inducing int     `json:"inducing"`
	Splits   int     `json:"splits"`
	Error    float64 `json:"error"`
	ErrorSE  float64 `json:"error_se"`
	NLL      float64 `json:"nll"`
	NLLSE    float64 `json:"nll_se"`
	Seconds  float64 `json:"seconds"` // of processor time, one training
	Failed   int     `json:"failed,omitempty"`
}

// Mean is that of the runs of one method on one set, without those that failed.
func Mean(runs []Run) *Cell {
	c := &Cell{Dataset: runs[0].Dataset, Method: runs[0].Method, Inducing: runs[0].M}
	var errors, losses []float64
	for _, r := range runs {
		if r.Failure != "" {
			c.Failed++
			continue
		}
		errors, losses = append(errors, r.Error), append(losses, r.NLL)
		c.Seconds += r.Seconds
	}
	if c.Splits = len(errors); c.Splits > 0 {
		c.Seconds /= float64(c.Splits)
		c.Error, c.ErrorSE = MeanAndSE(errors)
		c.NLL, c.NLLSE = MeanAndSE(losses)
	}
	return c
}

// MeanAndSE returns the mean and its standard error, 0 for one value.
func MeanAndSE(v []float64) (mean, se float64) {
	n := float64(len(v))
	for _, x := range v {
		mean += x / n
	}
	for _, x := range v {
		se += (x - mean) * (x - mean)
	}
	if len(v) < 2 {
		return mean, 0
	}
	return mean, math.Sqrt(se / (n - 1) / n)
}

// Print writes a line for each cell.
func Print(w io.Writer, cells []Cell) error {
	t := tabwriter.NewWriter(terminal.Writer{To: w}, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "data set\tmethod\tM\tsplits\terror\tnll\tCPU s\tfailed\t")
	for _, c := range cells {
		failed := "–"
		if c.Failed > 0 {
			failed = fmt.Sprint(c.Failed)
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%.3f ± %.3f\t%.3f ± %.3f\t%.2f\t%s\t\n",
			c.Dataset, c.Method, c.Inducing, c.Splits, c.Error, c.ErrorSE, c.NLL, c.NLLSE, c.Seconds, failed)
	}
	return t.Flush()
}
