package main

import (
	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
	"edge/internal/eval"
	"edge/internal/report"
	"edge/internal/terminal"
	"edge/online/active"
)

// evalFlags are the flags that eval, eval split and eval ask have in common.
type evalFlags struct {
	*eval.Evaluation
	shuffle uint64
	asJSON  bool
}

// add adds the flags.
func (e *evalFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&e.ConfigPath, "config", "c", "", "take a model's configuration from this `FILE`")
	f.StringVar(&e.Model, "model", "", "`NAME` of the model in the configuration, if it has several")
	cli.AddDataFlags(cmd, &e.Data, "`NAME` of the label's column (default the last one)")
	f.IntVar(&e.Batch, "batch", 0, "minibatches of `N` samples (default as configured: 16)")
	f.IntVar(&e.Inducing, "inducing", 0, "`M` inducing points and a window of 2·M (default as configured: 50)")
	f.StringVar(&e.Kernel, "kernel", "", "shared or per-class (default as configured: shared)")
	f.StringVar(&e.Arrival.OnMissing, "on-missing", "", "what becomes of rows that lack features: reject, impute or marginalise; rejected rows are not judged (default as the model's stream has it, else marginalise)")
	f.BoolVar(&e.asJSON, "json", false, "print a JSON object a line for each report")
}

// addOrder adds the flags that select rows of a stream and their order.
func (e *evalFlags) addOrder(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&e.Selection.First, "first", 0, "only the first `N` rows, after the shuffle (0: all)")
	f.Uint64Var(&e.shuffle, "shuffle", 0, "shuffle the whole file by this `SEED`")
	f.IntVar(&e.Seeds, "seeds", 1, "repeat with `K` shuffles, seeds SEED, SEED+1, …, or without --shuffle with K seeds of the model, and print the means")
}

// run evaluates the files and prints the reports, as a table by table unless --json is given.
func (e *evalFlags) run(cmd *cobra.Command, files []string, table func([]*report.Report) error) error {
	if cmd.Flags().Changed("shuffle") {
		e.Selection.Shuffle = &e.shuffle
	}
	if err := e.Prepare(files); err != nil {
		return err
	}
	var reports []*report.Report
	for _, file := range files {
		err := e.Each(cmd.Context(), file, cmd.ErrOrStderr(), func(r *report.Report) error {
			reports = append(reports, r)
			if e.asJSON {
				return terminal.PrintJSON(cmd.OutOrStdout(), r)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if e.asJSON {
		return nil
	}
	return table(reports)
}

func newEvalCommand() *cobra.Command {
	e := evalFlags{Evaluation: eval.New()}
	cmd := &cobra.Command{
		Use:   "eval FILE...",
		Short: "Score data files without a broker",
		Long: `eval gives the rows of CSV files (gzip'd or not, with a header line) to a new
model, one after the other, and judges each row before its label is learnt. A
daemon that has been sent the same rows under the same configuration (minibatches
closed by count: batch.max_wait 0) has the same scores and the same digest.

Without -c the default configuration is used, the features are the file's
columns and the classes its labels. With -c it is that of a model in the file,
exactly as the daemon would run it.

eval split learns a part of the rows and judges the others; eval ask learns only
the labels that a strategy asks for.`,
		Example: `  edge eval gas.csv.gz
  edge eval gas.csv.gz --first 6000 --json
  edge eval iris.csv --shuffle 1 --seeds 5
  edge eval bearing.csv -c /etc/edge/edge.yaml --model bearing --delay 100 --label-fraction 0.1`,
		Args: cobra.MinimumNArgs(1),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			return e.run(cmd, args, func(r []*report.Report) error { return report.Print(cmd.OutOrStdout(), r) })
		}),
	}
	e.add(cmd)
	e.addOrder(cmd)
	f := cmd.Flags()
	f.Float64Var(&e.Coverage, "coverage", -1, "`FRACTION` of the prediction sets that should hold the label; 0: no sets (default as configured: 0.9)")
	f.BoolVar(&e.Undeclared, "undeclared", false, "no class is known from the start: each is new when its first label comes")
	f.IntVar(&e.Arrival.Delay, "delay", 0, "labels come `N` rows after their row; every answer is judged, also those whose label never comes")
	f.Float64Var(&e.Arrival.Fraction, "label-fraction", 1, "`FRACTION` of the rows that get a label at all, drawn by --seed")
	f.Uint64Var(&e.Splits.Seed, "seed", 1, "`SEED` by which --label-fraction draws")
	cmd.AddCommand(newEvalSplitCommand(), newEvalAskCommand())
	return cmd
}

func newEvalSplitCommand() *cobra.Command {
	e := evalFlags{Evaluation: eval.New()}
	var folds int
	cmd := &cobra.Command{
		Use:   "split FILE...",
		Short: "Learn a part of the rows and judge the others",
		Long: `split learns a random part of the rows and judges the others, again and again, or
with --folds every fold once. It prints the mean over the splits, and with --json
every split and the standard errors. The rows are learnt in one pass as the
daemon learns them; with --passes N offline, as edge train does (then --batch is
that of train: 0 takes all rows in each step).`,
		Example: `  edge eval split iris.csv
  edge eval split iris.csv --folds 10 --json
  edge eval split glass.csv --train-fraction 0.9 --repeats 20 --passes 250`,
		Args: cobra.MinimumNArgs(1),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			e.Mode = "holdout"
			if folds > 0 {
				e.Mode, e.Splits.Repeats = "cv", folds
			}
			e.Splits.Offline = cmd.Flags().Changed("passes")
			e.Splits.How.Batch = min(e.Batch, 1e6)
			if e.Batch == 0 {
				e.Splits.How.Damping = 0.5
			}
			return e.run(cmd, args, func(r []*report.Report) error { return report.Print(cmd.OutOrStdout(), r) })
		}),
	}
	e.add(cmd)
	f := cmd.Flags()
	f.Float64Var(&e.Splits.Fraction, "train-fraction", 0.9, "`FRACTION` of the rows that are learnt")
	f.IntVar(&e.Splits.Repeats, "repeats", 20, "`N` random splits")
	f.IntVar(&folds, "folds", 0, "cut the rows into `K` folds and judge each once, instead of random splits")
	f.Uint64Var(&e.Splits.Seed, "seed", 1, "`SEED` of the first split; others follow it")
	f.IntVar(&e.Splits.How.Passes, "passes", e.Splits.How.Passes, "learn offline by at most `N` passes over the rows")
	return cmd
}

func newEvalAskCommand() *cobra.Command {
	e := evalFlags{Evaluation: eval.New()}
	cmd := &cobra.Command{
		Use:   "ask FILE...",
		Short: "Learn only the labels that a strategy asks for",
		Long: `ask learns only the labels that a strategy asks for, within --budget, and judges
every row. Each label is learnt before the next row (or in minibatches of
--batch). Several strategies and budgets give a curve, and --against-full how many
labels each strategy needs for the error of all labels.`,
		Example: `  edge eval ask gas.csv.gz --query margin --budget 0.05
  edge eval ask gas.csv.gz --query margin,random --budget 0.01,0.02,0.05,0.1,0.2,1 --seeds 3 --against-full`,
		Args: cobra.MinimumNArgs(1),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			return e.run(cmd, args, func(r []*report.Report) error { return report.PrintAsked(cmd.OutOrStdout(), r) })
		}),
	}
	e.add(cmd)
	e.addOrder(cmd)
	f := cmd.Flags()
	f.StringSliceVar(&e.Queries.Strategies, "query", []string{string(active.Margin)}, "`STRATEGY` margin, entropy, bald or random, or several")
	f.Float64SliceVar(&e.Queries.Budgets, "budget", []float64{active.Default().Budget}, "`FRACTION` of the samples whose label may be asked for, or several")
	f.BoolVar(&e.Queries.Full, "against-full", false, "also learn every label, in minibatches as without questions, and print how many labels are as good")
	return cmd
}
