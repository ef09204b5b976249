package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/tidwall/gjson"

	"edge/internal/config"
	"edge/internal/exit"
	"edge/internal/terminal"
)

// Request sends one request to the daemon of cfg and prints its answer.
func Request(ctx context.Context, cfg *config.Config, what string, data json.RawMessage, out io.Writer) error {
	prefix := cfg.MQTT.BaseTopic + "/" + cfg.Node + "/"
	responses, states := make(chan []byte, 16), make(chan string, 16)
	c, err := dialTool(ctx, cfg.MQTT, Options{Receive: func(topic string, payload []byte, _ bool) {
		switch topic {
		case prefix + "response/" + what:
			keep(responses, payload)
		case prefix + "state":
			keep(states, string(payload))
		}
	}})
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.subscribeTool(ctx, prefix+"response/"+what); err != nil {
		return fmt.Errorf("subscribe to the answer: %w", err)
	}
	if err := c.subscribeTool(ctx, prefix+"state"); err != nil {
		return fmt.Errorf("subscribe to the node's state: %w", err)
	}
	if _, ok := first(ctx, states, func(state string) bool { return state == "online" }); !ok {
		return exit.With(exit.Broker, fmt.Errorf("node %s is not online at this broker: is the daemon running, under the same configuration?", cfg.Node))
	}
	question := map[string]any{"transaction": c.ID()} // no other client has this id
	if len(data) > 0 {
		question["data"] = data
	}
	payload, err := json.Marshal(question)
	if err != nil {
		return fmt.Errorf("request: %w", err)
	}
	if err := answered(ctx, c.Publish(ctx, prefix+"request/"+what, 1, false, payload)); err != nil {
		return fmt.Errorf("publish the request: %w", err)
	}
	answer, ok := first(ctx, responses, func(p []byte) bool { return gjson.GetBytes(p, "transaction").Str == c.ID() })
	if !ok {
		return exit.With(exit.Broker, errors.New("no answer: is control.enabled set?"))
	}
	fmt.Fprintf(terminal.Writer{To: out}, "%s\n", answer)
	if why := gjson.GetBytes(answer, "error"); why.Exists() {
		return fmt.Errorf("%s: %s", what, why.Str)
	}
	return nil
}

// subscribeTool subscribes at QoS 1; a refusal is an error.
func (c *Client) subscribeTool(ctx context.Context, filter string) error {
	granted, err := c.Subscribe(ctx, filter, 1)
	if err == nil && !granted {
		err = errors.New("the broker refuses the subscription")
	}
	return answered(ctx, err)
}

// answered adds the exit code to an error of the broker.
func answered(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		err = errors.New("the broker does not answer")
	}
	return exit.With(exit.Broker, err)
}

// keep puts a message into a channel that has room for it.
func keep[T any](list chan<- T, message T) {
	select {
	case list <- message:
	default:
	}
}

// first returns the first message that is good; false if ctx ends before.
func first[T any](ctx context.Context, list <-chan T, good func(T) bool) (message T, ok bool) {
	for {
		select {
		case message = <-list:
			if good(message) {
				return message, true
			}
		case <-ctx.Done():
			return message, false
		}
	}
}
