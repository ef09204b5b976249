package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/internal/terminal"
	"edge/lab/compare"
	"edge/lab/published/tprocess"
)

// studentTables holds the options of the command.
type studentTables struct {
	tprocess.Conditions
	figures, journal string
	only             []string
	maxRows          int
	asJSON           bool
}

func newStudentTablesCommand() *cobra.Command {
	s := studentTables{Conditions: tprocess.Standard()}
	cmd := &cobra.Command{
		Use:   "student-t FOLDER",
		Short: "The tables of Student-t process classification",
		Long: `student-t learns 60 % of the rows of each two-class file of a folder and prints error
and log loss (nats) of the others, for the Gaussian process, the sound Student-t
bounds and the published objectives. Up to 300 rows to learn, processes are full; else
they have inducing points, and their names begin with s. --thesis prints the published
figures of the same sets beside these: of other splits and another encoding.`,
		Example: `  edge-lab published student-t data/student-t --thesis thesis.csv --resume runs.jsonl --max-rows 700`,
		Args:    cobra.ExactArgs(1),
		RunE:    cli.Action(func(cmd *cobra.Command, args []string) error { return s.run(cmd, args[0]) }),
	}
	f := cmd.Flags()
	f.StringVar(&s.figures, "thesis", "", "published figures: a CSV `FILE` with dataset, inducing, method, measure, value")
	f.StringVar(&s.journal, "resume", "", "keep finished runs in this `FILE`, and continue from it")
	f.StringSliceVar(&s.only, "only", nil, "`NAMES` of the sets; else all of the folder")
	f.IntVar(&s.maxRows, "max-rows", 0, "leave out sets of more `ROWS`; 0: none")
	f.IntVar(&s.Repeats, "repeats", s.Repeats, "random splits of each set")
	f.IntVar(&s.Inducing, "inducing", s.Inducing, "inducing points of the sets with more than 300 rows to learn")
	f.IntVar(&s.Updates, "updates", s.Updates, "evaluations of L-BFGS")
	f.Uint64Var(&s.Seed, "seed", s.Seed, "`SEED` of the first split; others follow it")
	f.BoolVar(&s.asJSON, "json", false, "print a JSON object a line for each set and method")
	return cmd
}

func (s *studentTables) run(cmd *cobra.Command, folder string) (err error) {
	if err := s.Validate(); err != nil {
		return exit.With(exit.Usage, err)
	}
	figures, err := tprocess.LoadFigures(s.figures)
	if err != nil {
		return err
	}
	journal, err := compare.OpenJournal(s.journal)
	if err != nil {
		return err
	}
	defer journal.Close()
	files, err := filepath.Glob(filepath.Join(folder, "*.csv*"))
	if err != nil {
		return err
	}
	var rows []tprocess.Row
	for _, path := range files {
		table, err := s.table(cmd, path, figures, journal)
		if err != nil {
			return err
		}
		rows = append(rows, table...)
	}
	if len(rows) == 0 {
		return fmt.Errorf("student-t: %s has none of the sets", folder)
	}
	if s.asJSON {
		return nil
	}
	return tprocess.Print(cmd.OutOrStdout(), rows)
}

// table runs one set, or returns nothing if it is left out.
func (s *studentTables) table(cmd *cobra.Command, path string, figures tprocess.Figures, j *compare.Journal) ([]tprocess.Row, error) {
	if name, _, _ := strings.Cut(filepath.Base(path), "."); len(s.only) > 0 && !slices.Contains(s.only, name) {
		return nil, nil
	}
	table, err := dataset.LoadTable(path, dataset.Format{})
	if err != nil {
		return nil, err
	}
	set, leftOut := compare.Set(table)
	if s.maxRows > 0 && set.N() > s.maxRows {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: left out: %d rows\n", table.Name, set.N())
		return nil, nil
	}
	if leftOut > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: %d rows lack features and are left out\n", table.Name, leftOut)
	}
	bar := terminal.NewProgress(cmd.ErrOrStderr(), s.Repeats*len(tprocess.Methods(set.N())), table.Name)
	defer bar.Close()
	splits := compare.Splits{Dataset: table.Name, Data: set, Journal: j, Done: func(r *compare.Run) {
		bar.Add(1)
		if r.Failure != "" {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s, %s, split %d: left out of the means: %s\n", r.Dataset, r.Method, r.Split, r.Failure)
		}
	}}
	rows, err := tprocess.Table(cmd.Context(), splits, s.Conditions, figures)
	if err != nil || !s.asJSON {
		return rows, err
	}
	return rows, terminal.PrintJSONLines(cmd.OutOrStdout(), rows)
}

func newFlippedLabelsCommand() *cobra.Command {
	s, asJSON := tprocess.StandardSimulation(), false
	cmd := &cobra.Command{
		Use:   "flipped-labels",
		Short: "The simulation of Student-t process classification",
		Long: `flipped-labels learns labels of 70 points from a Gaussian process of variance 5 and
lengthscale 0.25, and the same with 4 to 7 labels flipped. It prints the median of the
learnt lengthscale and variance, of the divergence of the predictions from the true
probabilities (nats), and the number of fits that predict 1/2 everywhere or have a kernel
far from all data.`,
		Args: cli.NoArgs,
		RunE: cli.Action(func(cmd *cobra.Command, _ []string) error {
			if err := s.Validate(); err != nil {
				return exit.With(exit.Usage, err)
			}
			bar := terminal.NewProgress(cmd.ErrOrStderr(), s.Sets*s.Methods(), "sets")
			all, err := s.Run(cmd.Context(), func() { bar.Add(1) })
			bar.Close()
			if err != nil {
				return err
			}
			if !asJSON {
				return tprocess.PrintSummaries(cmd.OutOrStdout(), all)
			}
			return terminal.PrintJSONLines(cmd.OutOrStdout(), all)
		}),
	}
	f := cmd.Flags()
	f.IntVar(&s.Sets, "sets", s.Sets, "simulated sets")
	f.IntVar(&s.Updates, "updates", s.Updates, "evaluations of L-BFGS")
	f.Uint64Var(&s.Seed, "seed", s.Seed, "`SEED` of the first set; others follow it")
	f.BoolVar(&asJSON, "json", false, "print a JSON object a line for each method and kind of labels")
	return cmd
}
