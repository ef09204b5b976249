package main

import (
	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
)

func main() { cli.Main(newRoot()) }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "edge-lab",
		Short: "Experiments with the classifier of edge",
		Long: `edge-lab runs the experiments behind the tables and figures in docs/results:
comparisons, figures and options that a device does not need.

Exit codes: 0 ok, 1 runtime error, 2 usage, 3 configuration, 5 store.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cli.NoArgs,
		RunE:          func(cmd *cobra.Command, args []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error { // before the work
			for _, name := range []string{"plot", "plot-sets", "output"} {
				if f := cmd.Flags().Lookup(name); f != nil {
					if err := cli.NoInput("--"+name, f.Value.String(), args...); err != nil {
						return err
					}
				}
			}
			return nil
		},
		Example: "  edge-lab eval gas.csv.gz --linear --plot gas.svg\n  edge-lab published tables data",
	}
	root.AddCommand(newEvalCommand(), newTrainCommand(), newPublishedCommand(), newCompareCommand(), newPlotCommand(), newCostCommand(),
		newGenerateCommand(), newRowsCommand(), newFleetCommand())
	return root
}
