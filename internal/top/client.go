package top

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"edge/internal/broker"
)

// client is the state of a node and the connection that receives and sends its
// messages.
type client struct {
	state     *nodeState
	publisher *broker.Publisher
	sending   sync.Mutex
}

// snapshot returns the present state.
func (c *client) snapshot() *view { return c.state.snapshot(c.publisher.Connected()) }

// label sends the class of a sample, which the node learns or refuses.
func (c *client) label(ctx context.Context, model string, s sampleView, class string) error {
	ask := map[string]any{"label": class, "source": "edge top"}
	if s.ID != nil {
		ask["id"] = s.ID
	} else {
		ask["seq"] = s.Seq // not "last": another sample may be on its way
	}
	payload, err := json.Marshal(ask)
	if err != nil {
		return fmt.Errorf("label: %w", err)
	}
	topic := model + "/label"
	if s.Device != "" {
		topic += "/" + s.Device
	}
	if err := c.send(ctx, topic, payload); err != nil {
		return err
	}
	c.state.labelled(model, s.Seq, class)
	return nil
}

// learn requests that learning is switched on or off.
func (c *client) learn(ctx context.Context, model string, on bool) error {
	word := "OFF"
	if on {
		word = "ON"
	}
	return c.send(ctx, "request/learning/"+model, []byte(word))
}

// send publishes below the node's topic and waits for the acknowledgement.
func (c *client) send(ctx context.Context, topic string, payload []byte) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	ctx, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	if err := c.publisher.Publish(ctx, c.state.base+"/"+c.state.node+"/"+topic, payload); err != nil {
		return err
	}
	return c.publisher.Drain(ctx)
}
