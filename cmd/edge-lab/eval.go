package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
	"edge/internal/eval"
	"edge/internal/exit"
	"edge/internal/report"
	"edge/internal/terminal"
	"edge/online/active"
)

// labEvaluation is an evaluation with figures and a comparison.
type labEvaluation struct {
	*eval.Evaluation
	asJSON         bool
	plot, plotSets string
	linear         bool
}

func newEvalCommand() *cobra.Command {
	e := labEvaluation{Evaluation: eval.New()}
	cmd := &cobra.Command{
		Use:   "eval FILE...",
		Short: "Score data files without a broker",
		Long: `eval gives the rows of CSV files (gzip'd or not, with a header line) to a new
model, one after the other, and judges each row before its label is learnt. Each
label is learnt before the next row, as by a daemon whose labels come more slowly
than batch.max_wait; with batch.max_wait 0 they are learnt in minibatches of
batch.max_size. With --batch N the labels of N rows come together, after the last
of them, as for learners that learn after every N rows; with --labels at-once each
comes before the next row, and N are learnt together.

Without -c the model has the default configuration, the features are the file's
columns and the classes its labels. With -c the configuration is that of a model
in the configuration file, as the daemon runs it.

--mode holdout learns a part of the rows and judges the others, --mode cv every
fold once; both print the mean over the splits, and with --json every split and
the standard errors. They learn the rows in one pass as the daemon does; with
--passes N offline, as train does (then --batch is that of train: 0 takes all rows).

--query STRATEGY learns only the labels that the strategy requests, within
--budget, and judges every row; each label is learnt before the next row (or in
minibatches of --batch). Several strategies and budgets give a curve, and
--against-full how many labels each strategy needs for the error of all labels.`,
		Example: `  edge-lab eval gas.csv.gz
  edge-lab eval gas.csv.gz --first 6000 --json
  edge-lab eval iris.csv --shuffle 1 --seeds 5
  edge-lab eval iris.csv --mode holdout --train-fraction 0.9 --repeats 20 --passes 250 --sites merged --schedule constant --rate 0.02
  edge-lab eval drift.csv --shuffle 1 --shuffle-within 445,1244,1586
  edge-lab eval gas.csv.gz --query margin,random --budget 0.01,0.02,0.05,0.1,0.2,1 --seeds 3 --plot gas.svg
  edge-lab eval bearing.csv -c /etc/edge/edge.yaml --model bearing --plot bearing.svg`,
		Args: cobra.MinimumNArgs(1),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			e.Splits.Offline = cmd.Flags().Changed("passes")
			e.Splits.How.Batch = min(e.Batch, 1e6)
			if err := e.checkFigures(); err != nil {
				return exit.With(exit.Usage, err)
			}
			if err := e.Prepare(args); err != nil {
				return err
			}
			return e.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
	e.addModel(cmd)
	e.addRows(cmd)
	e.addPolicy(cmd)
	cli.TrainingFlags(cmd, &e.Splits.How)
	f := cmd.Flags()
	f.BoolVar(&e.linear, "linear", false, "also judge soft-max regression on the same rows, with labels after every minibatch, at the best of four learning rates")
	f.BoolVar(&e.asJSON, "json", false, "print a JSON object a line for each file")
	f.StringVar(&e.plot, "plot", "", "draw error and log loss over the stream into this SVG `FILE`")
	f.StringVar(&e.plotSets, "plot-sets", "", "draw coverage and size of the prediction sets, by tenths of the stream, into this SVG `FILE`")
	return cmd
}

// addModel adds the flags that replace keys of the model's configuration.
func (e *labEvaluation) addModel(cmd *cobra.Command) {
	f := cmd.Flags()
	cli.ModelFlags(cmd, e.Evaluation)
	f.StringVar((*string)(&e.Mixing.Temporal), "temporal", "", "`USE` of the order of the labels: off, auto or on (default as configured: auto)")
	f.StringVar((*string)(&e.Mixing.Experts.Forest), "forest", "", "`SIZE` of the forest among the experts: on, small or off (default as configured: on)")
	f.StringVar((*string)(&e.Mixing.Experts.Regression), "regression", "", "`SWITCH` of the regression among the experts: on or off (default as configured: on)")
	f.BoolVar(&e.Alone, "alone", false, "the Gaussian process answers alone: no experts, and --temporal off")
	f.Float64Var(&e.Noise, "label-noise", -1, "`PROBABILITY` of a wrong label to start with; 0: every label is right (default as configured: 0.01)")
	f.Lookup("label-noise").DefValue = "0" // which --help does not show beside the text above
	f.Float64Var(&e.Abstain.NoveltyAbove, "abstain-novelty", -1, "abstain where the novelty is above this `FRACTION` (default as configured: never)")
	f.Float64Var(&e.Abstain.ConfidenceBelow, "abstain-confidence", -1, "abstain where the top probability is below this (default as configured: never)")
	f.StringVar((*string)(&e.Weights.Mode), "class-weights", "", "`MODE`, none or balanced (default as configured: none)")
	f.Float64Var(&e.Weights.Max, "class-weight-max", 0, "largest `WEIGHT` of a class (default as configured: 10)")
	f.IntVar(&e.Confirm, "confirm", 0, "samples that must have a new label before it is a class (default as configured: 1)")
	f.StringVar((*string)(&e.Drift.Detector), "drift-detector", "", "`DETECTOR`, adwin, page-hinkley or off (default as configured: adwin)")
	f.StringVar((*string)(&e.Drift.On), "drift-on", "", "`SIGNAL` that the detector reads: log_loss, error or novelty (default as configured: log_loss)")
	f.StringVar((*string)(&e.Drift.Action), "drift-action", "", "`ACTION`, none, forget, reseed or rollback (default as configured: none)")
	f.Float64Var(&e.Drift.Delta, "drift-delta", 0, "sensitivity of adwin (default as configured: 0.002)")
	f.Float64Var(&e.Drift.Lambda, "drift-lambda", 0, "sensitivity of page-hinkley (default as configured: 50)")
}

// addRows adds the flags that select rows, their order and their columns.
func (e *labEvaluation) addRows(cmd *cobra.Command) {
	f := cmd.Flags()
	cli.AddDataFlags(cmd, &e.Data, "`NAME` of the label's column (default one called label, else the last one)")
	cli.OrderFlags(cmd, e.Evaluation)
	withinFlag(cmd, &e.Selection)
	f.IntVar(&e.Swap, "abrupt", 0, "abrupt drift: after every `N` rows the features swap their columns, and after as many they return")
}

// addPolicy adds the flags that decide which rows are judged and which labels are
// learnt.
func (e *labEvaluation) addPolicy(cmd *cobra.Command) {
	f := cmd.Flags()
	cli.LabelFlags(cmd, e.Evaluation)
	f.StringVar(&e.Mode, "mode", "prequential", "how to judge: prequential, holdout or cv")
	f.Float64Var(&e.Splits.Fraction, "train-fraction", 0.9, "`FRACTION` of the rows that are learnt, with --mode holdout")
	f.StringVar(&e.Splits.By, "split", eval.SplitRows, "what is held out, with --mode holdout or cv: `KIND` rows, device or block (whole recordings)")
	f.BoolVar(&e.Splits.Force, "force", false, "split windows at random although they share rows")
	f.IntVar(&e.Splits.Repeats, "repeats", 20, "splits, with --mode holdout; folds, with --mode cv")
	f.Uint64Var(&e.Splits.Seed, "seed", 1, "`SEED` of the first split, which others follow, and of --label-fraction and --missing")
	f.Float64Var(&e.Splits.Flips, "flip-labels", 0, "replace this `FRACTION` of the learnt labels by random classes, with --mode holdout or cv; the true classes judge, by probabilities without the learnt label noise")
	f.Float64Var(&e.Arrival.Missing, "missing", 0, "each feature of a row is missing with this `PROBABILITY`")
	f.StringSliceVar(&e.Queries.Strategies, "query", nil, "learn only the labels that a `STRATEGY` requests: margin, entropy, bald or random, or several")
	f.Float64SliceVar(&e.Queries.Budgets, "budget", []float64{active.Default().Budget}, "`FRACTION` of the samples whose label --query may request, or several")
	f.Lookup("budget").DefValue = fmt.Sprint(e.Queries.Budgets) // pflag would show six decimals
	f.BoolVar(&e.Queries.Full, "against-full", false, "with --query: also learn every label, and print how many labels each strategy needs for the same error")
}

// checkFigures reports options of figures and the comparison that contradict others.
func (e *labEvaluation) checkFigures() error {
	switch {
	case e.linear && (e.Mode != "prequential" || e.Seeds > 1 || !e.Arrival.Plain()):
		return errors.New("--linear is for --mode prequential with one seed, all labels and no delay")
	case e.Mode != "prequential" && (e.plot != "" || e.plotSets != ""):
		return errors.New("--plot and --plot-sets are for --mode prequential")
	case len(e.Queries.Strategies) > 0 && (e.plotSets != "" || e.linear):
		return errors.New("--query does not combine with --plot-sets and --linear")
	}
	return nil
}

func (e *labEvaluation) run(ctx context.Context, files []string, out, errOut io.Writer) error {
	var reports []*report.Report
	result := func(r *report.Report) error {
		reports = append(reports, r)
		if e.asJSON {
			return terminal.PrintJSON(out, r)
		}
		return nil
	}
	var failed error
	for _, file := range files {
		if failed = e.Each(ctx, file, errOut, result); failed != nil {
			break
		}
		if e.linear {
			r, err := e.compare(ctx, file)
			if err == nil {
				err = result(r)
			}
			if failed = err; err != nil {
				break
			}
		}
	}
	table, draw := report.Print, plotCurves
	if len(e.Queries.Strategies) > 0 {
		table, draw = report.PrintAsked, plotAsked
	}
	if !e.asJSON && len(reports) > 0 { // also of the files before one with an error
		failed = errors.Join(failed, table(out, reports))
	}
	if failed != nil {
		return failed
	}
	if e.plot != "" {
		if err := draw(e.plot, reports); err != nil {
			return err
		}
	}
	if e.plotSets != "" {
		return plotSets(e.plotSets, reports)
	}
	return nil
}

// compare judges soft-max regression on the rows that the evaluation judges.
func (e *labEvaluation) compare(ctx context.Context, path string) (*report.Report, error) {
	d, rows, cfg, classes, err := e.Usable(ctx, path)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return softmaxReport(ctx, rows, len(cfg.Features), classes, cfg.Batch.MaxSize, d.Name)
}
