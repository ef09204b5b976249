//go:build minimal

package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// newDeskCommands stand for the commands that the binary for devices leaves
// out: each refuses, whatever its arguments are.
func newDeskCommands() []*cobra.Command {
	var all []*cobra.Command
	for _, name := range []string{"demo", "replay", "eval", "train", "paper", "predict", "top"} {
		all = append(all, &cobra.Command{
			Use: name, Short: "Not in this build", DisableFlagParsing: true,
			RunE: action(func(*cobra.Command, []string) error {
				return coded(exitUsage, fmt.Errorf("%s: not in this build: use a binary built without -tags minimal, on any machine", name))
			}),
		})
	}
	return all
}
