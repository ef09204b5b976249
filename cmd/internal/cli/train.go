package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"edge/internal/eval"
	"edge/internal/exit"
	"edge/internal/report"
	"edge/internal/terminal"
)

// Train is the command train of both programs.
type Train struct {
	*eval.Training
	Further func() error                 // checks further flags, before the work; nil: none
	Done    func(*report.Training) error // with the result, before it is printed; nil: nothing
}

const trainExamples = `  edge train history.csv.gz -c edge.yaml -o edge.db --passes 20 --holdout 0.1
  edge train small.csv --batch 0 --passes 250 --rate 0.02 --schedule constant --sites merged --holdout 0.1
  edge train train-images-idx3-ubyte.gz --test t10k-images-idx3-ubyte.gz --kernel per-class --inducing 200 --batch 200 --scale common`

// Command returns the command of a program, to which further flags may be added.
func (t *Train) Command(program string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "train FILE",
		Short: "Train offline, many passes; the daemon continues from the result",
		Long: `train learns a data file by many passes: CSV (gzip'd or not, with a header line),
or images in the idx format with their labels beside them. With -c and -o the
result is a state file of a model of that configuration, from which edge run
continues. Every horizon then starts with the whole training, with an empty
window; the feature scaling is that of the training set.

Minibatches learn large sets: their sites are tied to one (stochastic EP), so that
memory does not grow with the set. --sites merged, pairs (EP) or rep (at more cost)
keep them for each sample, which is better wherever memory allows it. --batch 0 takes
all samples in each step, for small sets; then --optimizer sign is possible.

--resume continues an interrupted training, saved beside the output as
FILE.training, to the same result.`,
		Example: strings.ReplaceAll(trainExamples, "edge train", program+" train"),
		Args:    cobra.ExactArgs(1),
		RunE: Action(func(cmd *cobra.Command, args []string) error {
			if t.Further != nil {
				if err := t.Further(); err != nil {
					return exit.With(exit.Usage, err)
				}
			}
			if err := t.Check(); err != nil {
				return exit.With(exit.Usage, err)
			}
			t.Quiet = asJSON
			result, err := t.Run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if t.Done != nil {
				if err := t.Done(result); err != nil {
					return err
				}
			}
			if asJSON {
				return terminal.PrintJSON(cmd.OutOrStdout(), result)
			}
			return result.Print(cmd.OutOrStdout())
		}),
	}
	t.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// add adds the flags of the options.
func (t *Train) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&t.ConfigPath, "config", "c", "", "take the model's configuration from this `FILE`")
	f.StringVar(&t.Model, "model", "", "`NAME` of the model in the configuration, if it has several")
	f.StringVarP(&t.Output, "output", "o", "", "state `FILE` to write; it must not hold that model yet")
	AddDataFlags(cmd, &t.Data, "`NAME` of the label's column (default one called label, else the last one)")
	AddRawFlags(cmd, &t.Data)
	f.StringVar(&t.OnMissing, "on-missing", "", "how to treat rows that lack features: `METHOD` reject leaves them out, impute or marginalise learns them (default on_missing of the model's stream, else marginalise)")
	f.StringVar(&t.Test, "test", "", "judge by this `FILE` after each pass")
	f.Float64Var(&t.Holdout, "holdout", 0, "keep this `FRACTION` of the rows back and judge by them after each pass")
	f.IntVar(&t.Inducing, "inducing", 0, "`M` inducing points (default as configured: 50)")
	f.StringVar(&t.Kernel, "kernel", "", "`KIND`, shared or per-class (default as configured: shared)")
	f.Float64Var(&t.Noise, "label-noise", -1, "`PROBABILITY` of a wrong label to start with; 0: every label is right (default as configured: 0.01)")
	f.Lookup("label-noise").DefValue = "0" // which --help does not show beside the text above
	f.IntVar(&t.How.Batch, "batch", t.How.Batch, "minibatches of `N` samples; 0: all of them")
	f.Uint64Var(&t.Seed, "seed", 0, "`SEED` of the first inducing points and of the order (default as configured: 1)")
	TrainingFlags(cmd, &t.How)
	f.BoolVar(&t.Resume, "resume", false, "continue an interrupted training")
}
