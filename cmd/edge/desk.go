//go:build !minimal

package main

import "github.com/spf13/cobra"

// newDeskCommands are the commands for a larger machine than the daemon's.
func newDeskCommands() []*cobra.Command {
	return []*cobra.Command{
		newDemoCommand(), newReplayCommand(), newEvalCommand(), newTrainCommand(), newPaperCommand(), newPredictCommand(),
		newTopCommand(),
	}
}
