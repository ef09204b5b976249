package published

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"edge/internal/terminal"
)

// mark is put at a figure that is more than two standard errors from the published one.
const mark = "*"

// Print writes a line for each cell, and the mean of each column over the sets and numbers of
// inducing points that all columns have.
func Print(w io.Writer, cells []Cell) error {
	t := tabwriter.NewWriter(terminal.Writer{To: w}, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "data set\tlearnt\tM\tmethod\tsplits\terror\tpublished\tnll\tpublished\tnll − %s\tCPU s\t\n", cells[0].Method)
	differs := false
	for i := range cells {
		c := &cells[i]
		wrong, nll := "–", "–"
		if f := c.Own(); f != nil {
			wrong, nll = short(f.Error), short(f.NLL)
		}
		if c.Differs() {
			nll, differs = nll+mark, true
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%d\t%.3f ± %.3f\t%s\t%.3f ± %.3f\t%s\t%+.3f ± %.3f\t%.2f\t\n", c.Dataset, c.Learnt, c.Inducing,
			c.Method, c.Splits, c.Error, c.ErrorSE, wrong, c.NLL, c.NLLSE, nll, c.Paired, c.PairedSE, c.Seconds)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if differs {
		fmt.Fprintf(w, "%s more than two standard errors from the mean nll measured here\n", mark)
	}
	return printMeans(w, cells)
}

// short is a figure as it is published.
func short(v float64) string { return strings.TrimPrefix(fmt.Sprintf("%.2f", v), "0") }

// Mean is a column of the tables over the cells that all columns have.
type Mean struct {
	Column     string
	Error, NLL float64
	published  bool
}

// meansOf returns the Mean of each method and of each published column, and the number of sets and
// numbers of inducing points that all of them have. A published figure that is not known
// leaves out its cell.
func meansOf(cells []Cell) (means []Mean, places int) {
	type place struct {
		set      string
		fraction float64
	}
	var order []place
	var ours, theirs []string
	at := map[place][]*Cell{}
	for i := range cells {
		c := &cells[i]
		p := place{c.Dataset, c.Fraction}
		if at[p] == nil {
			order = append(order, p)
		}
		at[p] = append(at[p], c)
		ours = append(ours, c.Method)
		for _, f := range c.Published {
			theirs = append(theirs, f.Method)
		}
	}
	for _, name := range distinct(ours) {
		means = append(means, Mean{Column: name})
	}
	for _, name := range distinct(theirs) {
		means = append(means, Mean{Column: name, published: true})
	}
	for _, p := range order {
		some, whole := slices.Clone(means), true
		for i := range some {
			wrong, nll, ok := some[i].at(at[p])
			some[i].Error, some[i].NLL, whole = some[i].Error+wrong, some[i].NLL+nll, whole && ok
		}
		if whole {
			means, places = some, places+1
		}
	}
	for i := range means {
		means[i].Error /= float64(max(places, 1))
		means[i].NLL /= float64(max(places, 1))
	}
	return means, places
}

// distinct leaves out repetitions.
func distinct(names []string) []string {
	var out []string
	for _, name := range names {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// at returns the column's figures in the cells of one place.
func (m *Mean) at(cells []*Cell) (wrong, nll float64, ok bool) {
	if m.published {
		f := find(cells[0].Published, m.Column)
		if f == nil {
			return 0, 0, false
		}
		return f.Error, f.NLL, true
	}
	for _, c := range cells {
		if c.Method == m.Column && c.Splits > 0 {
			return c.Error, c.NLL, true
		}
	}
	return 0, 0, false
}

func printMeans(w io.Writer, cells []Cell) error {
	means, places := meansOf(cells)
	if places < 2 {
		return nil
	}
	fmt.Fprintf(w, "\nmean of the %d sets and numbers of inducing points that all columns have:\n", places)
	t := tabwriter.NewWriter(terminal.Writer{To: w}, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "column\terror\tnll\t")
	for _, m := range means {
		name := m.Column
		if m.published {
			name += ", published"
		}
		fmt.Fprintf(t, "%s\t%.3f\t%.3f\t\n", name, m.Error, m.NLL)
	}
	return t.Flush()
}
