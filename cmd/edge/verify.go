package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
	"edge/internal/exit"
	"edge/internal/inspect"
	"edge/internal/terminal"
	"edge/persist"
)

func newVerifyCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify DB",
		Short: "Check a state file for damage",
		Long: `verify reads all of a state file: every page and checksum, both checkpoints, the
journal, the samples that wait for labels and the ledger that says what must be
there; then bbolt's own check. It changes nothing, and says what is damaged and
how many samples a repair would lose. The daemon may be running: then a copy of
what it has just written is checked, in the folder for temporary files.

A damaged file ends it with exit code 5. ` + "`edge run`" + ` repairs such a file: it carries
over what is valid and keeps the damaged file beside it.`,
		Example: `  edge verify /var/lib/edge/edge.db
  edge verify edge.db --json`,
		Args: cobra.ExactArgs(1),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			v, err := persist.Verify(args[0], inspect.DecodeState)
			if err != nil {
				return exit.With(exit.Store, err)
			}
			report := inspect.NewVerification(args[0], v)
			if asJSON {
				err = terminal.PrintJSON(cmd.OutOrStdout(), report)
			} else {
				report.Print(terminal.Writer{To: cmd.OutOrStdout()})
			}
			if err == nil && !report.Sound {
				err = exit.With(exit.Store, fmt.Errorf("verify: %s is damaged; %s", args[0], report.Remedy()))
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}
