package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
	"edge/internal/config"
	"edge/internal/daemon"
	"edge/internal/doctor"
	"edge/internal/exit"
	"edge/internal/terminal"
)

func newRunCommand() *cobra.Command {
	var path string
	var length time.Duration
	var watch bool
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the daemon",
		Long: `run subscribes to the configured streams, predicts and learns until it gets
SIGINT or SIGTERM. It starts without a broker and connects as soon as there is
one. What it has learnt is in one file; it carries on from there after a stop, a
crash or a power cut. Under systemd it says when it is ready and feeds the
watchdog for as long as it learns (configs/edge.service).

SIGHUP lets it read the configuration again, certificates and secrets too, and
go on with all that it has learnt (docs/guide/reload.md). --watch does the same
whenever one of those files changes.`,
		Example: `  edge run -c edge.yaml
  EDGE_MQTT_SERVERS=mqtt://broker.lan edge run -c edge.yaml
  kill -HUP $(pidof edge)`,
		Args: cli.NoArgs,
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			if length < 0 {
				return exit.With(exit.Usage, fmt.Errorf("--for %v: want 0s or more", length))
			}
			hangups := make(chan os.Signal, 1)
			signal.Notify(hangups, syscall.SIGHUP) // first: without it the signal ends the program
			defer signal.Stop(hangups)
			signal.Ignore(syscall.SIGPIPE) // a log whose reader has ended does not end the daemon
			cfg, err := config.Load(path)
			if err != nil {
				return err
			}
			log := terminal.NewLogger(cfg.Log.Level, cfg.Log.Format, cmd.ErrOrStderr())
			for _, warning := range doctor.DeviceWarnings(cfg) {
				log.Warn("several devices, or their labels, count as those of one", "config", path, "advice", warning)
			}
			ctx := cmd.Context()
			if length > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, length)
				defer cancel()
			}
			return daemon.Serve(ctx, cfg, daemon.Triggers{Path: path, Watch: watch, Hangups: hangups}, log)
		}),
	}
	cmd.Flags().StringVarP(&path, "config", "c", defaultConfigPath, "configuration `FILE`")
	cmd.Flags().BoolVar(&watch, "watch", false, "reload when the configuration, a certificate or a secret changes")
	cmd.Flags().DurationVar(&length, "for", 0, "stop by itself after this `DURATION`")
	return cmd
}
