package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tidwall/gjson"

	"edge/internal/config"
	"edge/internal/exit"
	"edge/internal/terminal"
	"edge/stream"
)

// Request sends a request to the node of cfg once the node is online, and prints
// the response. It returns an error if the response is one. What it waits for goes to notes.
func Request(ctx context.Context, cfg *config.Config, command string, data json.RawMessage, out, notes io.Writer) error {
	response, err := Ask(ctx, cfg, command, data, notes)
	if response != nil {
		fmt.Fprintf(terminal.Writer{To: out}, "%s\n", response)
	}
	return err
}

// Ask sends a request to the node of cfg once the node is online, and returns the
// response, with an error if the response is one. It says on notes that it waits for a node
// which is offline.
func Ask(ctx context.Context, cfg *config.Config, command string, data json.RawMessage, notes io.Writer) ([]byte, error) {
	if err := stream.CheckRequest(command); err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	prefix := cfg.MQTT.BaseTopic + "/" + cfg.Node + "/"
	id := randomID() // of the client and of the transaction: no other client has it
	responses, online, offline, closed := make(chan []byte, 1), make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)
	request := map[string]any{"transaction": id}
	if len(data) > 0 {
		request["data"] = data
	}
	payload, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	if len(payload) > int(stream.MaxRequest) {
		return nil, exit.With(exit.Usage, fmt.Errorf("the request has %d bytes, and a node takes %d at most: shorten its data", len(payload), stream.MaxRequest))
	}
	client, err := Connect(ctx, cfg.MQTT, Options{ID: id, Receive: func(m Message) {
		switch {
		case m.Topic == prefix+"response/"+command && gjson.GetBytes(m.Payload, "transaction").Str == id:
			offer(responses, m.Payload)
		case m.Topic == prefix+"state" && string(m.Payload) == "online":
			offer(online, struct{}{})
		case m.Topic == prefix+"state" && string(m.Payload) == "offline":
			offer(offline, struct{}{})
		case m.Topic == prefix+"info" && gjson.GetBytes(m.Payload, "control").Type == gjson.False:
			offer(closed, struct{}{})
		}
	}})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	for _, filter := range []string{prefix + "response/" + command, prefix + "info", prefix + "state"} {
		if granted, err := client.Subscribe(ctx, filter, 1); err != nil {
			return nil, Failure(ctx, err)
		} else if !granted && filter != prefix+"info" { // without info the node's silence tells
			return nil, exit.With(exit.Broker, fmt.Errorf("subscribe to %s: the broker refuses it", filter))
		}
	}
	for ready := false; !ready; {
		select {
		case <-online: // the node receives requests
			ready = true
		case <-offline:
			fmt.Fprintf(notes, "node %s is offline: waiting for its daemon to start\n", cfg.Node)
		case <-ctx.Done():
			return nil, unanswered(ctx, fmt.Errorf("node %s is not online at %s: is its daemon running, with this broker, and may this user read %sstate? edge top --broker URL finds the nodes", cfg.Node, strings.Join(cfg.MQTT.Servers, ", "), prefix))
		}
	}
	if err := client.Publish(ctx, prefix+"request/"+command, 1, false, payload); err != nil {
		return nil, Failure(ctx, fmt.Errorf("publish the request: %w", err))
	}
	select {
	case response := <-responses:
		if message := gjson.GetBytes(response, "error"); message.Exists() {
			hint := ""
			if strings.Contains(message.Str, `{"data": {`) {
				hint = `; --data gives the inner object`
			}
			return response, fmt.Errorf("%s: %s%s", command, message.Str, hint)
		}
		return response, nil
	case <-closed:
		return nil, exit.With(exit.Broker, fmt.Errorf("node %s carries out no requests: set control.enabled in its configuration, and reload it (SIGHUP)", cfg.Node))
	case <-ctx.Done():
		return nil, unanswered(ctx, errors.New("no answer: is control.enabled set, is the journal writable, and may this user write the node's request/#?"))
	}
}

// offer sends a value to a channel of one, unless another waits there.
func offer[T any](to chan<- T, value T) {
	select {
	case to <- value:
	default:
	}
}
