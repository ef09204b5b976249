package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
	"edge/internal/exit"
	"edge/internal/terminal"
	"edge/persist"
)

func newBackupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backup DB FILE",
		Short: "Copy a state file, also while the daemon runs",
		Long: `backup copies a state file into a new file that you alone may read, and checks
every page of the copy. The daemon may be running: then the copy is what its
newest transaction left, all that it has acknowledged. (A copy by cp or rsync of
a file that is written to may hold half of it.)

The copy is a state file: edge inspect, edge predict and edge verify read it,
edge restore puts it back.`,
		Example: `  edge backup /var/lib/edge/edge.db /mnt/usb/edge-$(date +%F).db
  edge backup edge.db copy.db && edge inspect copy.db`,
		Args: cobra.ExactArgs(2),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			if args[1] == "-" {
				return exit.With(exit.Usage, errors.New("backup: the copy has to be a file: give its name in place of -"))
			}
			size, err := persist.Backup(args[0], args[1])
			if err != nil {
				return exit.With(exit.Store, err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s, sound\n", args[1], terminal.Bytes(uint64(size)))
			return nil
		}),
	}
}

func newRestoreCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "restore FILE DB",
		Short: "Put a backup in the place of a state file",
		Long: `restore checks a backup and puts it in the place of a state file. The daemon must
not be running. The file that was there, damaged or not, is kept beside it. (A
backup that is copied or moved over the file of a running daemon ends the daemon
with exit code 5.)

What was learnt after the backup was made is lost: the broker has had the
acknowledgements and will not send those messages again.`,
		Example: `  edge restore /mnt/usb/edge-2026-11-21.db /var/lib/edge/edge.db`,
		Args:    cobra.ExactArgs(2),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			aside, err := persist.Restore(args[0], args[1])
			if err != nil {
				return exit.With(exit.Store, err)
			}
			if aside != "" {
				fmt.Fprintf(cmd.OutOrStdout(), "the file that was there is now %s\n", aside)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is as it was backed up\n", args[1])
			return nil
		}),
	}
}
