package main

import (
	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
)

// newPublishedCommand is the parent of the experiments of the literature.
func newPublishedCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "published",
		Short: "The published experiments of the literature, each by one command",
		Args:  cli.NoArgs,
		RunE:  func(cmd *cobra.Command, args []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTablesCommand(), newSchedulesCommand(), newPlaneCommand(), newOverTimeCommand(), newMinibatchesCommand(), newObjectivesCommand(),
		newStudentTablesCommand(), newFlippedLabelsCommand())
	return cmd
}
