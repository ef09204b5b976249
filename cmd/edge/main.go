// The runtime would look for a changed number of processors whenever a timer wakes it.

//go:debug updatemaxprocs=0

package main

import (
	"runtime"

	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
)

func main() {
	runtime.MemProfileRate = 0 // the profile's table takes 1 to 2 MB; http.pprof turns it on
	cli.Main(newRoot())
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "edge",
		Short: "Online Gaussian-process classification of MQTT sensor streams",
		Long: `edge subscribes to MQTT feature streams, learns to classify them online with a
sparse multi-class Gaussian process, and publishes the class probabilities.

Exit codes: 0 ok, 1 runtime error, 2 usage, 3 configuration, 4 broker, 5 store.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cli.NoArgs,
		RunE:          func(cmd *cobra.Command, args []string) error { return cmd.Help() },
		Example:       "  edge demo\n  edge config sample >edge.yaml\n  edge run -c edge.yaml",
	}
	root.AddCommand(
		newRunCommand(),
		newInspectCommand(),
		newCheckCommand(),
		newDoctorCommand(),
		newConfigCommand(),
		newRequestCommand(),
		newFleetCommand(),
		newResetCommand(),
		newVerifyCommand(),
		newBackupCommand(),
		newRestoreCommand(),
		newVersionCommand(),
	)
	root.AddCommand(
		newDemoCommand(), newReplayCommand(), newWindowsCommand(), newEvalCommand(), newTrainCommand(), newPredictCommand(), newTopCommand(),
	)
	return root
}
