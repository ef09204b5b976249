package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"edge/cmd/internal/cli"
	"edge/internal/broker"
	"edge/internal/config"
	"edge/internal/exit"
	"edge/stream/field"
)

func newRequestCommand() *cobra.Command {
	var path, data string
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "request VERB [MODEL]",
		Short: "Ask a running daemon to do something, over MQTT",
		Long: `request sends <base>/<node>/request/VERB[/MODEL] to the broker of the
configuration and prints the answer, a JSON object. The daemon must have
control.enabled. reset needs a MODEL; where others have none, they are for the
only model, or for all. docs/guide/control.md lists the verbs and what they do:

  ping  health_check  set_log_level  reload
  freeze  unfreeze  learning  checkpoint  export  rollback
  reset  class_add  class_remove  class_rename  fleet
  fleet_forget  fleet_rebase`,
		Example: `  edge request ping -c edge.yaml
  edge request class_rename bearing --data '{"from": "worn", "to": "worn out"}'
  edge request rollback bearing --data '{"to": "older"}'`,
		Args: cobra.RangeArgs(1, 2),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			cfg, err := config.Load(path)
			if err != nil {
				return err
			}
			if data != "" && !gjson.Valid(data) {
				return exit.With(exit.Usage, fmt.Errorf("--data %.40q is not JSON", data))
			}
			what := args[0]
			if what == "reset" && len(args) == 1 {
				return exit.With(exit.Usage, fmt.Errorf("request reset: there is no way back: name the model, as edge request reset %s", field.Names(cfg.Models)[0]))
			}
			if len(args) == 2 {
				what += "/" + args[1]
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), wait)
			defer cancel()
			return broker.Request(ctx, cfg, what, json.RawMessage(data), cmd.OutOrStdout())
		}),
	}
	f := cmd.Flags()
	f.StringVarP(&path, "config", "c", defaultConfigPath, "configuration `FILE` of the daemon")
	f.StringVar(&data, "data", "", "what the verb needs, as `JSON`")
	f.DurationVar(&wait, "wait", 15*time.Second, "give up after this `DURATION`")
	return cmd
}
