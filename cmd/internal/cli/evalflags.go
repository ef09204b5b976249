package cli

import (
	"github.com/spf13/cobra"

	"edge/internal/eval"
)

// ModelFlags adds the flags of the model that an evaluation judges.
func ModelFlags(cmd *cobra.Command, e *eval.Evaluation) {
	f := cmd.Flags()
	f.StringVarP(&e.ConfigPath, "config", "c", "", "take a model's configuration from this `FILE`")
	f.StringVar(&e.Model, "model", "", "`NAME` of the model in the configuration, if it has several")
	f.IntVar(&e.Batch, "batch", 0, "minibatches of `N` samples (default: each label alone, or as configured where batch.max_wait is 0)")
	f.IntVar(&e.Inducing, "inducing", 0, "`M` inducing points and a window of 2·M (default as configured: 50)")
	f.StringVar(&e.Kernel, "kernel", "", "`KIND`, shared or per-class (default as configured: shared)")
	f.StringVar(&e.Arrival.OnMissing, "on-missing", "", "how to treat rows that lack features: `METHOD` reject, impute or marginalise; rejected rows are not judged (default on_missing of the model's stream, else marginalise)")
}

// OrderFlags adds the flags that select the rows of an evaluation and their order.
func OrderFlags(cmd *cobra.Command, e *eval.Evaluation) {
	SelectionFlags(cmd, &e.Selection)
	cmd.Flags().IntVar(&e.Seeds, "seeds", 1, "repeat with `K` shuffles, seeds SEED, SEED+1, …, or without --shuffle with K seeds of the model, and print the means")
}

// LabelFlags adds the flags of when labels come, and of which ones.
func LabelFlags(cmd *cobra.Command, e *eval.Evaluation) {
	f := cmd.Flags()
	f.StringVar(&e.Labels, "labels", "", "`WHEN` labels come: at-once (before the next row) or per-batch (after each minibatch); default at-once, with --batch per-batch")
	f.Float64Var(&e.Coverage, "coverage", -1, "`FRACTION` of the prediction sets that should contain the label; 0: no sets (default as configured: 0.9)")
	f.Lookup("coverage").DefValue = "0" // which --help does not show beside the text above
	f.BoolVar(&e.Undeclared, "undeclared", false, "start without classes: each is new at its first label")
	f.IntVar(&e.Arrival.Delay, "delay", 0, "labels come `N` rows after their row; every prediction is judged, even if its label never comes")
	f.Float64Var(&e.Arrival.Fraction, "label-fraction", 1, "`FRACTION` of the labels that come, drawn by --seed")
}
