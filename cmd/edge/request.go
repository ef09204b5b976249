package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"
)

func newRequestCommand() *cobra.Command {
	var path, data string
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "request VERB [MODEL]",
		Short: "Ask a running daemon to do something, over MQTT",
		Long: `request sends <base>/<node>/request/VERB[/MODEL] to the broker of the
configuration and prints the answer, a JSON object. The daemon must have
control.enabled. docs/guide/control.md lists the verbs and what they do:

  ping  health_check  set_log_level  reload
  freeze  unfreeze  checkpoint  export  rollback  reset
  class_add  class_remove  class_rename`,
		Example: `  edge request ping -c edge.yaml
  edge request class_rename bearing --data '{"from": "worn", "to": "worn out"}'
  edge request rollback bearing --data '{"to": "older"}'`,
		Args: cobra.RangeArgs(1, 2),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			cfg, err := LoadConfig(path)
			if err != nil {
				return err
			}
			if data != "" && !gjson.Valid(data) {
				return coded(exitUsage, fmt.Errorf("--data %.40q is not JSON", data))
			}
			what := args[0]
			if len(args) == 2 {
				what += "/" + args[1]
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), wait)
			defer cancel()
			return ask(ctx, cfg, what, json.RawMessage(data), cmd.OutOrStdout())
		}),
	}
	f := cmd.Flags()
	f.StringVarP(&path, "config", "c", defaultConfigPath, "configuration `FILE` of the daemon")
	f.StringVar(&data, "data", "", "what the verb needs, as `JSON`")
	f.DurationVar(&wait, "wait", 15*time.Second, "give up after this `DURATION`")
	return cmd
}

// ask sends one request and prints its answer.
func ask(ctx context.Context, cfg *Config, what string, data json.RawMessage, out io.Writer) error {
	opts, err := clientOptions(cfg.MQTT)
	if err != nil {
		return err
	}
	answers := make(chan []byte, 1)
	id := opts.ClientID // nobody else has it
	client := mqtt.NewClient(opts)
	if err := connectClient(ctx, client, cfg.MQTT); err != nil {
		return err
	}
	defer client.Disconnect(100)
	prefix := cfg.MQTT.BaseTopic + "/" + cfg.Node + "/"
	listen := client.Subscribe(prefix+"response/"+what, 1, func(_ mqtt.Client, m mqtt.Message) {
		if gjson.GetBytes(m.Payload(), "transaction").Str == id {
			select {
			case answers <- m.Payload():
			default:
			}
		}
	})
	if err := done(ctx, listen); err != nil {
		return fmt.Errorf("subscribe to the answer: %w", err)
	}
	online := make(chan struct{}, 1)
	state := client.Subscribe(prefix+"state", 1, func(_ mqtt.Client, m mqtt.Message) {
		if string(m.Payload()) == "online" {
			select {
			case online <- struct{}{}:
			default:
			}
		}
	})
	if err := done(ctx, state); err != nil {
		return fmt.Errorf("subscribe to the node's state: %w", err)
	}
	select {
	case <-online: // it hears the request
	case <-ctx.Done():
		return coded(exitBroker, fmt.Errorf("node %s is not online at this broker: is the daemon running, under the same configuration?", cfg.Node))
	}
	question := map[string]any{"transaction": id}
	if len(data) > 0 {
		question["data"] = data
	}
	payload, err := json.Marshal(question)
	if err != nil {
		return fmt.Errorf("request: %w", err)
	}
	if err := done(ctx, client.Publish(prefix+"request/"+what, 1, false, payload)); err != nil {
		return fmt.Errorf("publish the request: %w", err)
	}
	select {
	case answer := <-answers:
		fmt.Fprintf(textWriter{out}, "%s\n", answer)
		if why := gjson.GetBytes(answer, "error"); why.Exists() {
			return fmt.Errorf("%s: %s", what, why.Str)
		}
		return nil
	case <-ctx.Done():
		return coded(exitBroker, errors.New("no answer: is control.enabled set?"))
	}
}

// done waits for the broker.
func done(ctx context.Context, token mqtt.Token) error {
	select {
	case <-token.Done():
		return coded(exitBroker, token.Error())
	case <-ctx.Done():
		return coded(exitBroker, errors.New("the broker does not answer"))
	}
}
