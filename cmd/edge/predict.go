package main

import (
	"errors"

	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
	"edge/internal/exit"
	"edge/internal/predict"
)

func newPredictCommand() *cobra.Command {
	var p predict.Options
	cmd := &cobra.Command{
		Use:   "predict --state DB FILE",
		Short: "Print class probabilities for the rows of a file, as JSON lines",
		Long: `predict answers each row of a CSV file, or of the standard input as -, by what a
model has learnt; it learns nothing. The header names the columns: those that
are the model's features are taken, in any order, and an empty cell is averaged
over. No label is needed; --label names a column that is printed with the answer.
With -c the file may have rows of signals, of which the model's stream makes samples.

The daemon must not have the state file open: make a copy by edge backup. After
a crash, and in a copy of a running daemon's file, the journal has records beyond
the checkpoint; with -c they are learnt first, in memory, as the daemon would.`,
		Example: `  edge predict --state edge.db readings.csv
  edge backup /var/lib/edge/edge.db copy.db && edge predict -c edge.yaml --state copy.db --model bearing - <rows.csv
  edge predict --state edge.db rows.csv --label state | jq -r 'select(.class != .label)'`,
		Args: cobra.ExactArgs(1),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			if p.State == "" {
				return exit.With(exit.Usage, errors.New("predict: --state names the state file"))
			}
			cli.EndAtSignals()
			return p.Run(args[0], cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
	f := cmd.Flags()
	f.StringVar(&p.State, "state", "", "state `FILE`")
	f.StringVar(&p.Model, "model", "", "`NAME` of the model, where the state file has several")
	cli.AddDataFlags(cmd, &p.Data, "`NAME` of a column to print as label")
	cli.AddRawFlags(cmd, &p.Data)
	f.StringVarP(&p.Config, "config", "c", "", "configuration `FILE` under which to learn what the journal holds, and to make samples of a file of signals")
	return cmd
}
