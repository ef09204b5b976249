package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
	"edge/internal/config"
	"edge/internal/doctor"
	"edge/internal/doctor/diagnosis"
	"edge/internal/exit"
	"edge/internal/terminal"
)

func newDoctorCommand() *cobra.Command {
	var o doctor.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Examine broker, disk, clock, memory and speed for a configuration",
		Long: `doctor examines what a daemon with this configuration depends on, and prints of
each check a grade, what it found, and what to do: rights of files, the file system
under the state, free space, bytes written a day and what that means for an SD
card, kernel, clock, memory, the time of a prediction, of a step and of rows of
signals on this board, and the broker. It tests the broker's limits, whether it
delivers shared subscriptions, retained messages and contributions to fleets, and
whether another process has the node's name.

It changes neither state nor topics of others: it writes a file of its own beside
the state, and publishes on topics of its own, <base>/<node>/doctor-… and
<base>/fleet/<concept>/<node>/4096, with a client id of its own, and removes all
of it. On <base>/<node>/state it asks who is there; daemons answer that they are
online. It may run beside the daemon, which then shares disk and processor with
it. Run it as the daemon's user, or rights are judged wrongly; as root where that
user exists only while the daemon runs, as under edge.service (DynamicUser), with
the variables that the service sets. It takes seconds, two minutes at most, or
--patience times as long where the board or the way to the broker is slow.

It exits with 0 unless a check failed; warnings are no failures.`,
		Example: `  edge doctor -c edge.yaml
  edge doctor -c edge.yaml --rate 10
  sudo STATE_DIRECTORY=/var/lib/edge edge doctor -c /etc/edge/edge.yaml --json`,
		Args: cli.NoArgs,
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			if !(o.Rate >= 0) {
				return exit.With(exit.Usage, errors.New("--rate: want 0 or more"))
			}
			const most = 60
			if o.Patience < 1 || o.Patience > most {
				return exit.With(exit.Usage, fmt.Errorf("--patience: want 1 to %d", most))
			}
			cfg, err := config.Load(o.Path)
			if err != nil {
				return err
			}
			o.Progress = func(doing string) {
				if terminal.IsTerminal(cmd.ErrOrStderr()) {
					fmt.Fprintf(cmd.ErrOrStderr(), "\r\x1b[K%s", doing)
				}
			}
			d := doctor.Examine(cmd.Context(), cfg, o)
			if err := context.Cause(cmd.Context()); err != nil { // the findings would blame the broker
				return err
			}
			if asJSON {
				err = terminal.PrintJSON(cmd.OutOrStdout(), d)
			} else {
				err = d.Print(terminal.Writer{To: cmd.OutOrStdout()})
			}
			if err == nil && d.Grade == diagnosis.Fail {
				err = diagnosis.ErrFailed
			}
			return err
		}),
	}
	f := cmd.Flags()
	f.StringVarP(&o.Path, "config", "c", defaultConfigPath, "configuration `FILE`")
	f.Float64Var(&o.Rate, "rate", 1, "`N` labelled messages a second of each stream, for the bytes written a day")
	f.IntVar(&o.Patience, "patience", 1, "`N` times as long for everything")
	f.BoolVar(&o.Offline, "offline", false, "leave the broker out")
	f.BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}
