package main

import (
	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
	"edge/internal/eval"
)

func newTrainCommand() *cobra.Command {
	t := cli.Train{Training: eval.NewTraining()}
	return t.Command("edge")
}
