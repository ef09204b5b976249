package main

import (
	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
	"edge/internal/config"
	"edge/internal/inspect"
	"edge/internal/terminal"
)

func newInspectCommand() *cobra.Command {
	var asJSON bool
	var file string
	cmd := &cobra.Command{
		Use:   "inspect DB",
		Short: "Show what a state file's models have learnt",
		Long: `inspect reads a state file, changes nothing, and shows of each model its classes,
scores, the relevance of its features, its size, its checkpoints and journal,
and the digest of its state. While the daemon runs it has the file locked:
edge backup makes a copy to look at, and the scores are on
edge/<node>/<model>/metrics.

After a clean stop the checkpoint has everything. After a crash, and in a copy of
a running daemon's file, the journal has records beyond it; with -c they are
learnt, in memory, as the daemon would.`,
		Example: `  edge inspect edge.db
  edge inspect edge.db -c edge.yaml --json`,
		Args: cobra.ExactArgs(1),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			cli.EndAtSignals()
			var cfg *config.Config
			if file != "" {
				var err error
				if cfg, err = config.Load(file); err != nil {
					return err
				}
			}
			report, err := inspect.File(args[0], cfg)
			if err != nil {
				return err
			}
			if asJSON {
				return terminal.PrintJSON(cmd.OutOrStdout(), report)
			}
			report.Print(terminal.Writer{To: cmd.OutOrStdout()})
			return nil
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	cmd.Flags().StringVarP(&file, "config", "c", "", "configuration `FILE` under which to learn what the journal holds")
	return cmd
}
