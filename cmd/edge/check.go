package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
	"edge/internal/broker"
	"edge/internal/config"
	"edge/internal/doctor"
	"edge/internal/statefile"
	"edge/internal/terminal"
	"edge/stream/mqtt"
)

func newCheckCommand() *cobra.Command {
	var path string
	var connect, verbose bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Validate a configuration and say what it would do",
		Long: `check validates a configuration and says what a daemon would do under it, and
what memory it may take: at most, with classes.max classes, and now. Of a fleet it
counts the members in fleet.members, or else 16 or those of the state. It warns
where a limit of the machine, of a control group, of edge.service, of GOMEMLIMIT
or of memory_limit is less. Of a stream with signals it prints the features, the
memory of its windows and, where the rate is known, the samples an hour.

With --connect it subscribes to the topics of the configuration for a moment. It
also sends a few messages through the broker, on topics of its own below
<base>/<node>/doctor-…, and removes those that are retained: they show whether the
broker delivers a shared subscription, and a retained message by a wildcard. It
exits with 1 if the broker does not do what the configuration needs.`,
		Example: `  edge check -c edge.yaml
  edge check -c edge.yaml --connect`,
		Args: cli.NoArgs,
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			if !connect { // otherwise it removes its publications
				cli.EndAtSignals()
			}
			c, err := config.Load(path)
			if err != nil {
				return err
			}
			warnings, err := doctor.CheckFiles(c)
			if err != nil {
				return err
			}
			upgrade := ""
			if store, err := statefile.Of(c); err == nil {
				c, upgrade = statefile.Effective(store, c), store.Conversion()
				store.Close()
			}
			out := terminal.Writer{To: cmd.OutOrStdout()}
			doctor.Describe(out, path, c, verbose)
			if upgrade != "" {
				fmt.Fprintln(out, "upgrade ", upgrade)
			}
			for _, d := range slices.Concat(warnings, doctor.StreamWarnings(c), c.UnusedVariables(os.Environ())) {
				fmt.Fprintln(out, "warning ", d)
			}
			for _, e := range append(c.Exposures(path), c.HTTP.Exposures(c.Control.Enabled)...) {
				fmt.Fprintf(out, "warning  %s: %s (%s)\n", e.Path, e.Reason, e.Advice)
			}
			if !connect {
				return nil
			}
			if err := connectToEach(cmd.Context(), c.MQTT, out); err != nil {
				return err
			}
			d := doctor.ExamineDelivery(cmd.Context(), c)
			if err := context.Cause(cmd.Context()); err != nil { // the findings would blame the broker
				return err
			}
			return d.Describe(out)
		}),
	}
	cmd.Flags().StringVarP(&path, "config", "c", defaultConfigPath, "configuration `FILE`")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "list the features that streams with signals make")
	cmd.Flags().BoolVar(&connect, "connect", false, "also connect to the broker, and test what it grants and delivers")
	return cmd
}

// connectToEach connects to the broker at each of its addresses, and prints how that went. It returns the errors if
// none answers, and that of ctx.
func connectToEach(ctx context.Context, cfg mqtt.Config, out io.Writer) error {
	servers := cfg.Servers
	var errs []error
	for _, server := range servers {
		cfg.Servers = []string{server} // cfg is a copy
		pub, err := broker.NewPublisher(ctx, cfg, 0, broker.Listener{})
		switch {
		case err == nil:
			pub.Close()
			fmt.Fprintf(out, "broker   %s: connected\n", server)
		case ctx.Err() != nil:
			return err
		default:
			errs = append(errs, err)
		}
	}
	if len(errs) == len(servers) {
		return errors.Join(errs...)
	}
	for _, err := range errs {
		fmt.Fprintf(out, "warning  %v\n", err)
	}
	return nil
}
