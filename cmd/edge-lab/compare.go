package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/internal/terminal"
	"edge/lab"
	"edge/lab/compare"
)

// comparison holds the options of the command.
type comparison struct {
	compare.Config
	methods []string
	repeats int
	journal string
	plot    string
	asJSON  bool
}

func newCompareCommand() *cobra.Command {
	c := comparison{Config: compare.Default()}
	var about strings.Builder
	for _, m := range compare.Methods() {
		fmt.Fprintf(&about, "  %-17s %s\n", m.Name, m.About)
	}
	cmd := &cobra.Command{
		Use:   "compare FILE...",
		Short: "The methods of the literature on the same splits",
		Long: `compare fits the other approximations of edge's model to data files: the same random
splits, first inducing points, kernel and number of updates for each of them. It prints
error and negative log likelihood (nats) of the rows that were held back, with standard
errors over the splits, and the processor time of one training.

Methods:

` + about.String() + `
Rows that lack features are left out. --resume keeps every finished run in a file; the
same command then continues an interrupted comparison.`,
		Example: `  edge-lab compare wine.csv.gz glass.csv.gz --methods ep,gfitc,vi
  edge-lab compare spam.csv --methods laplace,ep-binary --repeats 5 --resume runs.jsonl --plot spam.svg`,
		Args: cobra.MinimumNArgs(1),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error { return c.run(cmd, args) }),
	}
	f := cmd.Flags()
	f.StringSliceVar(&c.methods, "methods", compare.Defaults(), "`NAMES` of the methods")
	f.Float64Var(&c.Inducing, "inducing", c.Inducing, "inducing points as a `FRACTION` of the rows learnt")
	f.IntVar(&c.repeats, "repeats", 20, "random splits of each file")
	f.Float64Var(&c.Train, "train-fraction", c.Train, "`FRACTION` of the rows that is learnt")
	f.Uint64Var(&c.Seed, "seed", c.Seed, "`SEED` of the first split; others follow it")
	f.IntVar(&c.Updates, "updates", c.Updates, "updates of the parameters: iterations, or evaluations of L-BFGS")
	f.BoolVar(&c.Shared, "shared-kernel", false, "one kernel for all classes; else one for each")
	f.StringVar(&c.journal, "resume", "", "keep finished runs in this `FILE`, and continue from it")
	f.StringVar(&c.plot, "plot", "", "draw error and negative log likelihood into this SVG `FILE`")
	f.BoolVar(&c.asJSON, "json", false, "print a JSON object a line for each file and method")
	return cmd
}

func (c *comparison) run(cmd *cobra.Command, files []string) error {
	methods, err := compare.Named(c.methods)
	if err == nil {
		err = c.Validate()
	}
	if err == nil && c.repeats < 1 {
		err = errors.New("--repeats: want 1 or more")
	}
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	journal, err := compare.OpenJournal(c.journal)
	if err != nil {
		return err
	}
	defer journal.Close()
	var cells []compare.Cell
	for _, path := range files {
		name, set, err := loadSet(cmd, path)
		if err != nil {
			return err
		}
		for i := range methods {
			cell, err := c.cell(cmd, name, set, &methods[i], journal)
			if err != nil {
				return err
			}
			if cell == nil {
				continue
			}
			cells = append(cells, *cell)
			if c.asJSON {
				if err := terminal.PrintJSON(cmd.OutOrStdout(), cell); err != nil {
					return err
				}
			}
		}
	}
	return c.show(cmd.OutOrStdout(), cells)
}

// loadSet loads the rows of a data file that have all features, and the name of the set.
func loadSet(cmd *cobra.Command, path string) (name string, set *lab.Data, err error) {
	table, err := dataset.LoadTable(path, dataset.Format{})
	if err != nil {
		return "", nil, err
	}
	set, leftOut := compare.Set(table)
	if leftOut > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: %d rows lack features and are left out\n", path, leftOut)
	}
	return table.Name, set, nil
}

// cell compares one method on one set. If it cannot, it prints the reason and returns nil.
func (c *comparison) cell(cmd *cobra.Command, name string, set *lab.Data, m *compare.Method, j *compare.Journal) (*compare.Cell, error) {
	if why := m.Unfit(int(c.Train*float64(set.N())), set.C); why != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s, %s: left out: %s\n", name, m.Name, why)
		return nil, nil
	}
	bar := terminal.NewProgress(cmd.ErrOrStderr(), c.repeats, name+", "+m.Name)
	defer bar.Close()
	splits := compare.Splits{Dataset: name, Data: set, Config: c.Config, Number: c.repeats, Journal: j, Done: func(r *compare.Run) {
		bar.Add(1)
		if r.Failure != "" {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s, split %d: left out of the means: %s\n", name, r.Split, r.Failure)
		}
	}}
	runs, err := splits.Runs(cmd.Context(), m)
	if err != nil {
		return nil, err
	}
	return compare.Mean(runs), nil
}

func (c *comparison) show(out io.Writer, cells []compare.Cell) error {
	if len(cells) == 0 {
		return errors.New("compare: none of the methods can learn these files")
	}
	if c.plot != "" {
		if err := plotComparison(c.plot, cells); err != nil {
			return err
		}
	}
	if c.asJSON {
		return nil
	}
	return compare.Print(out, cells)
}
