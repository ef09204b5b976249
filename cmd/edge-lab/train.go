package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
	"edge/internal/dataset"
	"edge/internal/eval"
	"edge/internal/exit"
	"edge/internal/terminal"
)

func newTrainCommand() *cobra.Command {
	t := eval.NewTraining()
	var asJSON bool
	var plot string
	var components int
	var shifted bool
	var finish func()
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
		Example: `  edge-lab train history.csv.gz -c edge.yaml -o edge.db --passes 20 --holdout 0.1
  edge-lab train small.csv --batch 0 --passes 250 --rate 0.02 --schedule constant --sites merged --holdout 0.1
  edge-lab train train-images-idx3-ubyte.gz --test t10k-images-idx3-ubyte.gz --kernel per-class --inducing 200 --batch 200 --scale common`,
		Args: cobra.ExactArgs(1),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			finish()
			if err := t.Check(); err != nil {
				return exit.With(exit.Usage, err)
			}
			if components < 0 || components > 0 && t.Output != "" {
				return exit.With(exit.Usage, errors.New("--components: want a number above 0, and no -o: the daemon has no principal components"))
			}
			t.Transform = transform(shifted, components)
			if plot != "" && t.Holdout == 0 && t.Test == "" {
				return exit.With(exit.Usage, errors.New("--plot draws the scores: give --holdout or --test"))
			}
			t.Quiet = asJSON
			result, err := t.Run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if plot != "" {
				if err := plotTraining(plot, result); err != nil {
					return err
				}
			}
			if asJSON {
				return terminal.PrintJSON(cmd.OutOrStdout(), result)
			}
			return result.Print(cmd.OutOrStdout())
		}),
	}
	f := cmd.Flags()
	f.StringVarP(&t.ConfigPath, "config", "c", "", "take the model's configuration from this `FILE`")
	f.StringVar(&t.Model, "model", "", "`NAME` of the model in the configuration, if it has several")
	f.StringVarP(&t.Output, "output", "o", "", "state `FILE` to write; it must not hold that model yet")
	cli.AddDataFlags(cmd, &t.Data, "`NAME` of the label's column (default the last one)")
	f.StringVar(&t.OnMissing, "on-missing", "", "how to treat rows that lack features: `METHOD` reject leaves them out, impute or marginalise learns them (default on_missing of the model's stream, else marginalise)")
	f.StringVar(&t.Test, "test", "", "judge by this `FILE` after each pass")
	f.Float64Var(&t.Holdout, "holdout", 0, "keep this `FRACTION` of the rows back and judge by them after each pass")
	f.IntVar(&t.Inducing, "inducing", 0, "`M` inducing points (default as configured: 50)")
	f.StringVar(&t.Kernel, "kernel", "", "shared or per-class (default as configured: shared)")
	f.Float64Var(&t.Noise, "label-noise", -1, "`PROBABILITY` of a wrong label to start with; 0: every label is right (default as configured: 0.01)")
	f.IntVar(&t.How.Batch, "batch", t.How.Batch, "samples a minibatch; 0: all of them")
	f.IntVar(&components, "components", 0, "learn the first `K` principal components instead of the features; for measurements, without -o")
	f.BoolVar(&shifted, "shifted", false, "also learn each image moved by one pixel to the left, to the right, up and down; the judged images and those of --online stay as they are")
	f.Uint64Var(&t.Seed, "seed", 0, "`SEED` of the first inducing points and of the order (default as configured: 1)")
	finish = cli.TrainingFlags(cmd, &t.How)
	f.BoolVar(&t.Resume, "resume", false, "continue an interrupted training")
	f.BoolVar(&asJSON, "json", false, "print a JSON object")
	f.StringVar(&plot, "plot", "", "draw error and log loss over CPU time into this SVG `FILE`")
	f.BoolVar(&t.Online, "online", false, "for comparison, also learn the rows once online, as the daemon does, with one shared kernel and an infinite horizon")
	return cmd
}

// transform returns the change of the rows by edge-lab train: first each image moved by
// one pixel, then principal components.
func transform(shifted bool, components int) func(rows, judged *dataset.Part) (_, _ *dataset.Part, err error) {
	return func(rows, judged *dataset.Part) (_, _ *dataset.Part, err error) {
		if some, _ := rows.Table.Lacking(); len(some) > 0 && components > 0 {
			return nil, nil, exit.With(exit.Usage, fmt.Errorf("--components: %d rows lack features: --on-missing impute or reject makes them complete", len(some)))
		}
		if shifted {
			if rows, err = rows.Shifted(); err != nil {
				return nil, nil, exit.With(exit.Usage, fmt.Errorf("--shifted: %w", err))
			}
		}
		if components > 0 {
			return inComponents(components, rows, judged)
		}
		return rows, judged, nil
	}
}
