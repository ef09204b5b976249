package tprocess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"edge/internal/terminal"
	"edge/lab"
	"edge/lab/compare"
	"edge/lab/studentt"
)

// Conditions of the tables.
type Conditions struct {
	Repeats  int    // splits
	Inducing int    // M of the sets that are too large for full processes
	Updates  int    // evaluations of L-BFGS
	Seed     uint64 // of the first split
}

// Standard are the published splits, and one of the published M.
func Standard() Conditions { return Conditions{Repeats: 3, Inducing: 50, Updates: 300, Seed: 1} }

// Validate reports settings out of range.
func (c *Conditions) Validate() error {
	switch {
	case c.Repeats < 1:
		return errors.New("--repeats: want 1 or more")
	case c.Inducing < 2:
		return errors.New("--inducing: want 2 or more points")
	case c.Updates < 10:
		return errors.New("--updates: want 10 or more")
	}
	return nil
}

// Constants of the splits and methods.
const (
	learnt   = 0.6 // of the rows
	fullRows = 300 // that a full process learns at most, as in the published tables
	gridRows = 100 // that the grid learns at most: it takes ten times as long as the others
)

// config are the conditions of a set of n rows.
func (c *Conditions) config(n int) compare.Config {
	cfg := compare.Config{Inducing: 1, Train: learnt, Seed: c.Seed, Updates: c.Updates}
	if rows := rowsLearnt(n); rows > fullRows {
		cfg.Inducing = min(float64(c.Inducing)/float64(rows), 1)
	}
	return cfg
}

func rowsLearnt(n int) int { return int(learnt*float64(n) + 0.5) }

// Methods are those for a set of n rows: full processes, or sparse ones with a name that
// begins with s.
func Methods(n int) []compare.Method {
	learnt := rowsLearnt(n)
	full := learnt <= fullRows
	o := studentt.Options{Full: full, Isotropic: true}
	prefix, divergence, printed := "", studentt.VTP2, studentt.VTP2Printed
	if !full {
		prefix, divergence, printed = "s", studentt.SVTP2, studentt.SVTP2Printed
	}
	var out []compare.Method
	add := func(name string, fit lab.Method) {
		out = append(out, compare.NewMethod(prefix+name, "", unitAmplitude(fit)))
	}
	const nu = studentt.Nu
	add("VGP", studentt.Gaussian().Train(o))
	add("TP tied", studentt.Tied(nu, false).Train(o))
	add("TP tied free", studentt.Tied(nu, true).Train(o))
	add("TP", studentt.NonCentred(nu).Train(o))
	if learnt <= gridRows {
		add("TP grid", studentt.TrainGrid(nu, o))
	}
	add("VTP1", studentt.Published(nu, studentt.VTP1).Train(o))
	add("VTP2", studentt.Published(nu, divergence).Train(o))
	add("VTP2 printed", studentt.Published(nu, printed).Train(o))
	return out
}

// unitAmplitude starts a method of one logistic latent at amplitude 1 and one lengthscale:
// binary.Kernel divides the amplitude of the problem by its noise.
func unitAmplitude(fit lab.Method) lab.Method {
	return func(ctx context.Context, p *lab.Problem) (lab.Classifier, error) {
		one := *p
		one.Start = p.Start.Clone()
		for g := range one.Start.Groups() {
			group := one.Start.Group(g)
			*group.LogAmp(), *group.LogNoise() = 0, 0
		}
		return fit(ctx, &one)
	}
}

// Row is a line of the tables: a method on a set, with the published figures where there
// are some.
type Row struct {
	compare.Cell
	Published *Figure `json:"published,omitempty"`
}

// Table runs all methods on a set, on the splits that the conditions give s.
func Table(ctx context.Context, s compare.Splits, c Conditions, figures Figures) ([]Row, error) {
	n := s.Data.N()
	if s.Data.C != 2 {
		return nil, fmt.Errorf("tprocess: %s has %d classes: the published methods separate two", s.Dataset, s.Data.C)
	}
	s.Config, s.Number = c.config(n), c.Repeats
	var rows []Row
	for _, m := range Methods(n) {
		runs, err := s.Runs(ctx, &m)
		if err != nil {
			return nil, err
		}
		cell := compare.Mean(runs)
		rows = append(rows, Row{*cell, figures.find(s.Dataset, m.Name, cell.Inducing, rowsLearnt(n) <= fullRows)})
	}
	return rows, nil
}

// Print writes a line for each row.
func Print(w io.Writer, rows []Row) error {
	t := tabwriter.NewWriter(terminal.Writer{To: w}, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "data set\tmethod\tM\tsplits\terror\tlog loss\tCPU s\tpublished error\tlog loss\t")
	for _, r := range rows {
		e, l := "–", "–"
		if r.Published != nil {
			e, l = fmt.Sprintf("%.3f", r.Published.Error), fmt.Sprintf("%.3f", r.Published.NLL)
		}
		if r.Splits == 0 {
			fmt.Fprintf(t, "%s\t%s\t%d\t0\tfailed\tfailed\t–\t%s\t%s\t\n", r.Dataset, r.Method, r.Inducing, e, l)
			continue
		}
		loss := fmt.Sprintf("%.3f", r.NLL)
		if r.Splits > 1 {
			loss += fmt.Sprintf(" ± %.3f", r.NLLSE)
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%.3f\t%s\t%.1f\t%s\t%s\t\n", r.Dataset, r.Method, r.Inducing, r.Splits, r.Error, loss, r.Seconds, e, l)
	}
	return t.Flush()
}
