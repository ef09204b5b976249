package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// execute runs one command line and returns the exit code.
func execute(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	return cli.Execute(ctx, newRoot(), args, in, out, errOut)
}

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
