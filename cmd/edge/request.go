package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"edge/cmd/internal/cli"
	"edge/internal/broker"
	"edge/internal/config"
	"edge/internal/exit"
	"edge/stream/field"
	"edge/stream/topic"
)

func newRequestCommand() *cobra.Command {
	flags := cli.BrokerFlags{Default: defaultConfigPath}
	var node, data string
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "request VERB [MODEL]",
		Short: "Ask a running daemon to do something, over MQTT",
		Long: `request sends <base>/<node>/request/VERB[/MODEL] to the broker of the
configuration, or to that of --broker for the node of --node, and prints the
answer, a JSON object. The daemon must have control.enabled. reset needs a MODEL;
where others have none, they are for the only model, or for all.
docs/guide/control.md lists the verbs and what they do:

  ping  health_check  set_log_level  reload
  freeze  unfreeze  learning  checkpoint  export  rollback
  reset  class_add  class_remove  class_rename  fleet
  fleet_forget  fleet_rebase`,
		Example: `  edge request ping -c edge.yaml
  edge request ping --broker mqtt://broker.lan --node pi4-hall
  edge request class_rename bearing --data '{"from": "worn", "to": "worn out"}'
  edge request rollback bearing --data '{"to": "older"}'`,
		Args: cobra.RangeArgs(1, 2),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			mqtt, cfg, err := flags.MQTT(os.Environ())
			if err != nil {
				return err
			}
			if err := checkNode(node); err != nil {
				return err
			}
			switch {
			case node == "" && cfg == nil:
				return exit.With(exit.Usage, errors.New("--broker needs --node NAME: edge top --broker URL finds the nodes"))
			case cfg == nil:
				plain := config.Default()
				cfg = &plain
			}
			cfg.MQTT, cfg.Node = mqtt, cmp.Or(node, cfg.Node)
			if data != "" && !gjson.Valid(data) {
				return exit.With(exit.Usage, fmt.Errorf(`--data %.40q is not JSON: want an object in single quotes, such as '{"class": "worn"}'`, data))
			}
			what := args[0]
			if what == "reset" && len(args) == 1 {
				model := "MODEL"
				if names := field.Names(cfg.Models); len(names) > 0 {
					model = names[0]
				}
				return exit.With(exit.Usage, fmt.Errorf("request reset: there is no way back: name the model, as edge request reset %s", model))
			}
			if len(args) == 2 {
				what += "/" + args[1]
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), wait)
			defer cancel()
			return broker.Request(ctx, cfg, what, json.RawMessage(data), cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
	flags.Add(cmd)
	f := cmd.Flags()
	f.StringVar(&node, "node", "", "`NAME` of the node (default that of the configuration)")
	f.StringVar(&data, "data", "", "what the verb needs, as `JSON`")
	f.DurationVar(&wait, "wait", 15*time.Second, "give up after this `DURATION`")
	return cmd
}

// checkNode returns an error for a --node that is no name of a node; it is not given if it is "".
func checkNode(name string) error {
	if name != "" && !topic.IsName(name) {
		return exit.With(exit.Usage, fmt.Errorf("--node %s: want a name of [a-z0-9_-]", name))
	}
	return nil
}
