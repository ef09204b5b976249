package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
	"edge/internal/process"
	"edge/internal/terminal"
)

func newVersionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print what this binary was built from",
		Example: "  edge version --json",
		Args:    cli.NoArgs,
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			v := process.Build()
			if asJSON {
				return terminal.PrintJSON(cmd.OutOrStdout(), v)
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), v)
			return err
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}
