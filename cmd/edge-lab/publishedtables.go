package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
	"edge/internal/exit"
	"edge/internal/terminal"
	"edge/lab/compare"
	"edge/lab/published"
)

// tables holds the options of the command.
type tables struct {
	published.TablesConfig
	figures string
	journal string
	asJSON  bool
}

func newTablesCommand() *cobra.Command {
	c := tables{TablesConfig: published.DefaultTables()}
	cmd := &cobra.Command{
		Use:   "tables FOLDER",
		Short: "Error and nll on the eight small sets of the paper behind the model",
		Long: `tables repeats tables 2 and 3 of "Scalable Multi-Class Gaussian Process Classification
using Expectation Propagation" (Villacampa-Calvo and Hernández-Lobato, ICML 2017): 20
random splits, 90 % of the rows learnt (satellite 20 %; waveform 300 rows, judged by
700), 250 updates over all samples, M of 5, 10 and 20 % of the samples learnt, a kernel
for each class. FOLDER holds NAME.csv or NAME.csv.gz; missing sets are left out with a
message.

--methods names methods of edge-lab compare; edge is edge's own training, to which the
options of training apply. Each method is compared with the first of them, split by
split. --figures prints the published figures beside, from a CSV file:

  set,inducing,method,error,nll

An nll of 0 there is not known. A figure is marked where it is more than two standard
errors of the mean measured here away. --resume keeps finished runs in a file; the same
command then continues.`,
		Example: `  edge-lab published tables data --figures figures.csv --resume runs.jsonl
  edge-lab published tables data --methods edge --only wine,glass --repeats 5 --shared-kernel --prior 1`,
		Args: cobra.ExactArgs(1),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			return c.run(cmd, args[0])
		}),
	}
	f := cmd.Flags()
	f.StringSliceVar(&c.Methods, "methods", c.Methods, "`NAMES` of the methods")
	f.StringSliceVar(&c.Only, "only", nil, "`NAMES` of the sets (default all)")
	f.Float64SliceVar(&c.Inducing, "inducing", c.Inducing, "inducing points as `FRACTIONS` of the samples learnt")
	f.IntVar(&c.Splits, "repeats", c.Splits, "random splits of each set")
	f.Uint64Var(&c.Seed, "seed", c.Seed, "`SEED` of the first split; others follow it")
	f.IntVar(&c.Updates, "updates", c.Updates, "updates of the parameters, of all methods but edge")
	f.BoolVar(&c.Shared, "shared-kernel", false, "one kernel for all classes; else one for each")
	f.StringVar(&c.figures, "figures", "", "`FILE` of the published figures")
	f.StringVar(&c.journal, "resume", "", "keep finished runs in this `FILE`, and continue from it")
	f.BoolVar(&c.asJSON, "json", false, "print a JSON object a line for each set, number of inducing points and method")
	cli.TrainingFlags(cmd, &c.Training)
	return cmd
}

func (c *tables) run(cmd *cobra.Command, folder string) error {
	if err := c.Validate(); err != nil {
		return exit.With(exit.Usage, err)
	}
	figures, err := published.LoadFigures(c.figures)
	if err != nil {
		return err
	}
	journal, err := compare.OpenJournal(c.journal)
	if err != nil {
		return err
	}
	defer journal.Close()
	var cells []published.Cell
	p := &progress{w: cmd.ErrOrStderr()}
	defer p.close()
	repeat := published.Tables{TablesConfig: c.TablesConfig, Figures: figures, Journal: journal, Progress: p, Cell: func(cell *published.Cell) error {
		cells = append(cells, *cell)
		if c.asJSON {
			return terminal.PrintJSON(cmd.OutOrStdout(), cell)
		}
		return nil
	}}
	err = repeat.Run(cmd.Context(), folder)
	p.close()
	if err != nil || c.asJSON || len(cells) == 0 {
		return err
	}
	return published.Print(cmd.OutOrStdout(), cells)
}

// progress shows the progress of an experiment on a terminal.
type progress struct {
	w   io.Writer
	bar terminal.Progress
}

// Message implements published.Progress.
func (p *progress) Message(text string) { fmt.Fprintln(p.w, text) }

// Begin implements published.Progress.
func (p *progress) Begin(what string, runs int) (done func()) {
	p.bar.Close()
	p.bar = terminal.NewProgress(p.w, runs, what)
	return func() { p.bar.Add(1) }
}

func (p *progress) close() { p.bar.Close() }
