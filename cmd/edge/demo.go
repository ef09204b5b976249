package main

import (
	"errors"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
	"edge/internal/demo"
	"edge/internal/exit"
)

func newDemoCommand() *cobra.Command {
	var d demo.Config
	cmd := &cobra.Command{
		Use:   "demo [FILE]",
		Short: "See it work: broker, sensors and daemon in one process",
		Long: `demo starts an MQTT broker on a free port of the loopback interface, sensors that
publish on it, and the daemon of ` + "`edge run`" + ` with a state file that is removed at
the end. It shows error, log loss, rate and the last predictions, and more on a
page of its own in a browser, until Ctrl-C, the end of the file or --for, and
then a summary.

Without FILE the sensors are the waveform generator of Breiman et al. (1984): 21
features, three classes; the best that any classifier can do is an error of 0.133.
Six of ten samples bring their label. The page shows the values of the others and
takes a label for them, as it does for a person who knows what a real sample was.

With --signals the sensor is an accelerometer on a machine: 640 rows a second of
three signals, of which the daemon makes windows of 64 rows, and 30 features of
each. Speed and strength change with each stay in a state, so that single rows
say little. The order of the labels is not used: each state lasts for seconds.

With --fleet N nodes learn together over the broker: the last but one comes late,
the last sends random labels. For each of the others, and the one that comes late,
a node without a fleet learns the same rows, and one device learns the rows of all.
At the end all predict the same rows, which none has learnt. Without FILE a row has
30 features of 20 rows of such an accelerometer, and each row is of another stay.

The rows of a fleet come in rounds of 48 a node. The next round begins once all have
learnt the last one and exchanged what it taught them. The demo ends after 6 rounds,
half a minute. With --for no round begins after that time, and the late node comes in
the middle of it. Four rounds are the least. On a slow machine the last round ends
later, and the nodes are judged after it. Ctrl-C ends it in the same way, a second
one at once.

FILE in place of the simulated rows is shuffled: what drifts in it is not seen. A
quarter of its labelled rows, 300 at most, judges the nodes; of the others each node
needs 192, so that four of them take 1024 rows.`,
		Example: `  edge demo
  edge demo --signals --for 30s
  edge demo --for 30s --json
  edge demo gas.csv.gz --rate 500
  edge demo --fleet 4
  edge demo --fleet 4 rows.csv --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				d.File = args[0]
			}
			if d.Signals && d.File != "" {
				return exit.With(exit.Usage, errors.New("--signals: the sensor is simulated; leave out FILE"))
			}
			if err := checkFleetDemo(cmd, &d); err != nil {
				return err
			}
			if d.Signals && !cmd.Flags().Changed("rate") {
				d.Rate = demo.DefaultRowRate
			}
			if !(d.Rate >= 0) || d.Length < 0 {
				return exit.With(exit.Usage, errors.New("--rate and --for: want 0 or more"))
			}
			signal.Ignore(syscall.SIGPIPE) // the state file is removed, also when the reader of the output has ended
			return d.Run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
	f := cmd.Flags()
	f.DurationVar(&d.Length, "for", 0, "end after this `DURATION` (0: at Ctrl-C, or the end of the file)")
	f.BoolVar(&d.Signals, "signals", false, "raw signals of a vibration sensor, of which the daemon makes samples")
	f.IntVar(&d.Fleet, "fleet", 0, "`N` nodes that learn together, 3 to 16")
	f.Float64Var(&d.Rate, "rate", demo.DefaultRate, "`N` samples a second, with --signals rows, 640 by default (0: as fast as it goes)")
	f.Uint64Var(&d.Seed, "seed", 1, "`SEED` of the simulated sensors")
	cli.AddDataFlags(cmd, &d.Data, "`NAME` of the label's column of FILE (default one called label, else the last one)")
	f.BoolVar(&d.AsJSON, "json", false, "print the summary as an object, without --fleet that of edge eval --json, and nothing else")
	return cmd
}

// checkFleetDemo returns an error for flags that do not go with --fleet.
func checkFleetDemo(cmd *cobra.Command, d *demo.Config) error {
	switch {
	case !cmd.Flags().Changed("fleet"):
		return nil
	case d.Fleet < demo.MinFleet || d.Fleet > demo.MaxFleet:
		return exit.With(exit.Usage, fmt.Errorf("--fleet: want %d to %d nodes", demo.MinFleet, demo.MaxFleet))
	case d.Signals:
		return exit.With(exit.Usage, errors.New("--fleet: leave out --signals; the nodes learn samples"))
	case cmd.Flags().Changed("rate"):
		return exit.With(exit.Usage, errors.New("--fleet: leave out --rate; rows come as fast as they are learnt"))
	}
	return nil
}
