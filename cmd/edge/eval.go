package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"edge/cmd/internal/cli"
	"edge/internal/eval"
	"edge/internal/exit"
	"edge/internal/process"
	"edge/internal/report"
	"edge/internal/report/htmlreport"
	"edge/internal/terminal"
	"edge/online/active"
)

// evalFlags holds the options of eval, eval split and eval ask.
type evalFlags struct {
	*eval.Evaluation
	asJSON bool
	page   string // path of --report
}

// add adds the flags that the three commands have in common; --help lists flags in
// the order in which they are added.
func (e *evalFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&e.page, "report", "", "also write an HTML page with charts into this `FILE`")
	f.BoolVar(&e.asJSON, "json", false, "print a JSON object a line for each report")
	cli.ModelFlags(cmd, e.Evaluation)
}

// addData adds the flags of the file's format, which --help lists last.
func (e *evalFlags) addData(cmd *cobra.Command) {
	cli.AddDataFlags(cmd, &e.Data, "`NAME` of the label's column (default one called label, else the last one)")
	cli.AddRawFlags(cmd, &e.Data)
}

// run evaluates the files and prints the reports, as a table by table unless
// --json is given; --report also writes them as a page.
func (e *evalFlags) run(cmd *cobra.Command, files []string, table func([]*report.Report) error) error {
	if err := e.Prepare(files); err != nil {
		return err
	}
	var page *cli.Output
	if e.page != "" { // before the work: an error of the path appears at once
		var err error
		if page, err = cli.CreateOutput("--report", e.page, append(files, e.ConfigPath)...); err != nil {
			return err
		}
	}
	reports, failed := e.evaluate(cmd, files)
	if len(reports) == 0 {
		if page != nil {
			failed = page.Finish(failed)
		}
		return failed
	}
	var written, shown error // also of the files before one with an error
	if page != nil {
		written = page.Finish(evalPage(cmd, files, reports).Write(page))
	}
	if !e.asJSON {
		shown = table(reports)
	}
	return errors.Join(failed, written, shown)
}

// evaluate evaluates files one after the other, and prints each report if --json is
// given. With an error it returns the reports before it.
func (e *evalFlags) evaluate(cmd *cobra.Command, files []string) (reports []*report.Report, err error) {
	for _, file := range files {
		err := e.Each(cmd.Context(), file, cmd.ErrOrStderr(), func(r *report.Report) error {
			reports = append(reports, r)
			if e.asJSON {
				return terminal.PrintJSON(cmd.OutOrStdout(), r)
			}
			return nil
		})
		if err != nil {
			return reports, err
		}
	}
	return reports, nil
}

// evalPage returns the page of --report.
func evalPage(cmd *cobra.Command, files []string, reports []*report.Report) *htmlreport.Page {
	var names []string
	for _, r := range reports {
		if !slices.Contains(names, r.Dataset) {
			names = append(names, r.Dataset)
		}
	}
	return &htmlreport.Page{Title: "Evaluation of " + strings.Join(names, ", "), Command: commandLine(cmd, files), Version: process.Build().String(), Date: time.Now(), Reports: reports}
}

// commandLine returns the command with its files and the flags that were given.
func commandLine(cmd *cobra.Command, files []string) string {
	words := append([]string{cmd.CommandPath()}, files...)
	cmd.Flags().Visit(func(f *pflag.Flag) {
		value := f.Value.String()
		if budgets, err := cmd.Flags().GetFloat64Slice(f.Name); err == nil {
			value = strings.Trim(strings.ReplaceAll(fmt.Sprint(budgets), " ", ","), "[]")
		} else if many, ok := f.Value.(pflag.SliceValue); ok {
			value = strings.Join(many.GetSlice(), ",")
		}
		if f.Value.Type() != "bool" {
			words = append(words, "--"+f.Name, value)
		} else if value == "true" {
			words = append(words, "--"+f.Name)
		}
	})
	for i, w := range words[1:] {
		if w == "" || strings.ContainsAny(w, " \t\"'$`\\&|;<>()*?") {
			words[i+1] = strconv.Quote(w)
		}
	}
	return strings.Join(words, " ")
}

func newEvalCommand() *cobra.Command {
	e := evalFlags{Evaluation: eval.New()}
	cmd := &cobra.Command{
		Use:   "eval FILE...",
		Short: "Score data files without a broker",
		Long: `eval gives the rows of a CSV file (gzip'd or not, with a header line) to a new
model, one after the other, and judges each row before its label is learnt. Of
several files each has a model of its own: edge train FILE --test FILE judges one
file by what another has taught.

Each label is learnt before the next row, as by a daemon whose labels come more
slowly than batch.max_wait; with batch.max_wait 0 they are learnt in minibatches
of batch.max_size. A daemon that received the same rows in the same way has the
same scores and the same digest. With --batch N the labels of N rows come
together, after the last of them, as for learners that learn after every N rows;
with --labels at-once each comes before the next row, and N are learnt together.

Without -c the model has the default configuration, the features are the file's
columns and the classes its labels. With -c the configuration is that of a model
in the configuration file, as the daemon runs it.

--report writes scores and charts of all files into one HTML page that needs no
other file: error and log loss over the stream, reliability, confusion, precision
and recall of each class, coverage of the prediction sets.

eval split learns a part of the rows and judges the others; eval ask learns only
the labels that a strategy requests. Experiments with other keys of the
configuration need a configuration file, or edge-lab eval.`,
		Example: `  edge eval gas.csv.gz
  edge eval gas.csv.gz --first 6000 --json
  edge eval iris.csv --shuffle 1 --seeds 5
  edge eval gas.csv.gz --report gas.html
  edge eval bearing.csv -c /etc/edge/edge.yaml --model bearing --delay 100 --label-fraction 0.1`,
		Args: cobra.MinimumNArgs(1),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			if e.Splits.By != "" {
				e.Mode = "holdout"
			}
			return e.run(cmd, args, func(r []*report.Report) error { return report.PrintHeld(cmd.OutOrStdout(), r) })
		}),
	}
	e.add(cmd)
	cli.OrderFlags(cmd, e.Evaluation)
	f := cmd.Flags()
	f.StringVar(&e.Splits.By, "split", "", "judge what is held out as a whole: each `KIND` device, or block (recordings); see eval split")
	cli.LabelFlags(cmd, e.Evaluation)
	f.Uint64Var(&e.Splits.Seed, "seed", 1, "`SEED` of --label-fraction")
	e.addData(cmd)
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
that of train: 0 takes all rows in each step).

Rows of one device are alike, and windows that overlap share rows: random splits
then judge what was learnt. --split device holds out each device as a whole, or
--folds groups of them; --split block whole recordings, which are the rows of a
device between two silences of a file of signals. A random split of windows that
overlap needs --force.`,
		Example: `  edge eval split iris.csv
  edge eval split iris.csv --folds 10 --json
  edge eval split wrist.csv.gz -c edge.yaml --split device
  edge eval split glass.csv --train-fraction 0.9 --repeats 20 --passes 250`,
		Args: cobra.MinimumNArgs(1),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			e.Mode = "holdout"
			if e.Splits.Folds = folds; folds > 0 {
				e.Mode, e.Splits.Repeats = "cv", folds
			}
			e.Splits.Offline = cmd.Flags().Changed("passes")
			e.Splits.How.Batch = min(e.Batch, 1e6)
			return e.run(cmd, args, func(r []*report.Report) error { return report.PrintHeld(cmd.OutOrStdout(), r) })
		}),
	}
	e.add(cmd)
	f := cmd.Flags()
	f.StringVar(&e.Splits.By, "split", eval.SplitRows, "what is held out: `KIND` rows, device or block")
	f.BoolVar(&e.Splits.Force, "force", false, "split windows at random although they share rows")
	f.Float64Var(&e.Splits.Fraction, "train-fraction", 0.9, "`FRACTION` of the rows that are learnt")
	f.IntVar(&e.Splits.Repeats, "repeats", 20, "`N` random splits")
	f.IntVar(&folds, "folds", 0, "cut the rows into `K` folds and judge each once, instead of random splits")
	f.Uint64Var(&e.Splits.Seed, "seed", 1, "`SEED` of the first split; others follow it")
	f.IntVar(&e.Splits.How.Passes, "passes", e.Splits.How.Passes, "learn offline by at most `N` passes over the rows")
	e.addData(cmd)
	return cmd
}

func newEvalAskCommand() *cobra.Command {
	e := evalFlags{Evaluation: eval.New()}
	cmd := &cobra.Command{
		Use:   "ask FILE...",
		Short: "Learn only the labels that a strategy requests",
		Long: `ask learns only the labels that a strategy requests, within --budget, and judges
every row. Each label is learnt before the next row (or in minibatches of
--batch). Several strategies and budgets give a curve, and --against-full how many
labels each strategy needs for the error of all labels.

As in the daemon, a new model spends the budget of its next 2400 samples first, and
saves it later: of a file with fewer than 4800 rows it learns more than --budget.`,
		Example: `  edge eval ask gas.csv.gz --query margin --budget 0.05
  edge eval ask gas.csv.gz --query margin,random --budget 0.01,0.02,0.05,0.1,0.2,1 --seeds 3 --against-full`,
		Args: cobra.MinimumNArgs(1),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			if len(e.Queries.Strategies) == 0 {
				return exit.With(exit.Usage, fmt.Errorf("--query: want some of %v", active.Strategies()))
			}
			return e.run(cmd, args, func(r []*report.Report) error { return report.PrintAsked(cmd.OutOrStdout(), r) })
		}),
	}
	e.add(cmd)
	cli.OrderFlags(cmd, e.Evaluation)
	f := cmd.Flags()
	f.StringSliceVar(&e.Queries.Strategies, "query", []string{string(active.Margin)}, "`STRATEGY` margin, entropy, bald or random, or several with commas between them")
	f.Float64SliceVar(&e.Queries.Budgets, "budget", []float64{active.Default().Budget}, "`FRACTION` of the samples whose label may be requested, or several with commas between them")
	f.Lookup("query").DefValue, f.Lookup("budget").DefValue = e.Queries.Strategies[0], fmt.Sprint(e.Queries.Budgets[0]) // pflag shows brackets
	f.BoolVar(&e.Queries.Full, "against-full", false, "also learn every label, and print how many labels each strategy needs for the same error")
	e.addData(cmd)
	return cmd
}
