package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/tidwall/gjson"

	"edge/internal/config"
	"edge/internal/exit"
	"edge/internal/terminal"
)

// Request sends one request and prints its answer.
func Request(ctx context.Context, cfg *config.Config, what string, data json.RawMessage, out io.Writer) error {
	opts, err := ClientOptions(cfg.MQTT)
	if err != nil {
		return err
	}
	answers := make(chan []byte, 1)
	id := opts.ClientID // nobody else has it
	client := mqtt.NewClient(opts)
	if err := Connect(ctx, client, cfg.MQTT); err != nil {
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
		return exit.With(exit.Broker, fmt.Errorf("node %s is not online at this broker: is the daemon running, under the same configuration?", cfg.Node))
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
		fmt.Fprintf(terminal.Writer{To: out}, "%s\n", answer)
		if why := gjson.GetBytes(answer, "error"); why.Exists() {
			return fmt.Errorf("%s: %s", what, why.Str)
		}
		return nil
	case <-ctx.Done():
		return exit.With(exit.Broker, errors.New("no answer: is control.enabled set?"))
	}
}

// done waits for the broker.
func done(ctx context.Context, token mqtt.Token) error {
	select {
	case <-token.Done():
		return exit.With(exit.Broker, token.Error())
	case <-ctx.Done():
		return exit.With(exit.Broker, errors.New("the broker does not answer"))
	}
}
