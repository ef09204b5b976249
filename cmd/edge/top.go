package main

import (
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
	"edge/internal/exit"
	"edge/internal/top"
)

func newTopCommand() *cobra.Command {
	var broker cli.BrokerFlags
	var t top.Viewer
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch a node at a terminal, over MQTT from any machine",
		Long: `top shows what a node publishes of itself: whether it is online, and of each model
the scores and their course, the last samples, confusion, throughput and events.
It needs the broker's address and no more. Without --node and -c it finds the
node by itself if there is only one.

Keys: q ends it, tab shows the next model, p stops and resumes what is shown, up
and down stop it and choose a sample. On a node with control enabled, l says what
class the chosen sample is (the newest, if none is chosen), a does so for the
newest whose label the node asks for, and s switches learning off and on: all of
it goes over MQTT, so the broker's access list decides who may.

Where the output is no terminal, and with --once, it prints plain text; with
--json an object for each look. A password is read from --password-file or
EDGE_MQTT_PASSWORD_FILE.`,
		Example: `  edge top -c edge.yaml
  edge top --broker mqtt://broker.lan --node pi4-hall
  edge top --broker mqtt://broker.lan --node pi4-hall --once --json`,
		Args: cli.NoArgs,
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			if t.Interval < 100*time.Millisecond {
				return exit.With(exit.Usage, errors.New("--interval: want at least 100ms"))
			}
			mqtt, cfg, err := broker.MQTT(os.Environ())
			if err != nil {
				return err
			}
			if t.Node == "" && cfg != nil {
				t.Node = cfg.Node
			}
			if err := checkNode(t.Node); err != nil {
				return err
			}
			return t.Run(cmd.Context(), mqtt, cmd.InOrStdin(), cmd.OutOrStdout())
		}),
	}
	broker.Add(cmd)
	f := cmd.Flags()
	f.StringVar(&t.Node, "node", "", "`NAME` of the node (default that of -c, else the only one)")
	f.StringVar(&t.Model, "model", "", "`NAME` of the model to show first (in plain text: the only one to show)")
	f.DurationVar(&t.Interval, "interval", 2*time.Second, "`DURATION` between two looks in plain text and JSON, and until the first")
	f.BoolVar(&t.Once, "once", false, "look once")
	f.BoolVar(&t.AsJSON, "json", false, "print a JSON object, on a line of its own, for each look")
	return cmd
}
