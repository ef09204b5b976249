package main

import (
	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
)

func newPublishedCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "published",
		Short: "Repeat published experiments",
		Args:  cli.KnownCommand,
		RunE:  func(cmd *cobra.Command, args []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newStudentTablesCommand(), newFlippedLabelsCommand())
	return cmd
}
