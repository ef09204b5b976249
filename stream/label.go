package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"edge/stream/codec"
	"edge/stream/mqtt"
	"edge/stream/topic"
)

// ErrBusy: the queue of messages is full; try again later.
var ErrBusy = errors.New("the queue of messages is full")

// LateLabel is the label of a sample that was answered before.
type LateLabel struct {
	Model  string `json:"-"`
	Device string `json:"-"`  // as in the sample's Prediction
	ID     string `json:"id"` // of the sample, or "last" for the model's newest
	Label  string `json:"label"`
	Source string `json:"source"` // who says so
}

// Label teaches a label as a message on <base>/<node>/<model>/label/<device>
// does: it takes its turn among the messages, and nil means that it is durable.
// The error is ErrBusy, a *Refusal, or that of ctx: the label may then be taught
// all the same.
func (n *Node) Label(ctx context.Context, l LateLabel) error {
	to := n.cfg.prefix() + l.Model + "/label"
	if l.Device != "" {
		to += "/" + l.Device
	}
	if !slices.ContainsFunc(n.models, func(m *modelState) bool { return m.Name == l.Model }) || topic.Check(to) != nil {
		return fmt.Errorf("stream: label for model %.80q, device %.80q: there is no such model or device", l.Model, l.Device)
	}
	payload, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("stream: label: %w", err)
	}
	done := make(chan struct{})
	own := &ownLabel{}
	msg := &mqtt.Message{Topic: to, Payload: payload, QoS: 1, Arrived: time.Now(), Attached: own, Ack: func() { close(done) }}
	if n.client.Stopping() {
		return errors.New("stream: label: the node is stopping")
	}
	if taken, _ := n.ring.Push(msg, nil); !taken {
		return fmt.Errorf("stream: label: %w", ErrBusy)
	}
	select {
	case <-done:
	case <-ctx.Done():
		return fmt.Errorf("stream: label: not yet durable: %w", ctx.Err())
	}
	if own.why != nil {
		return own.why
	}
	return nil
}

// ownLabel is attached to the message of a label that this program gives.
type ownLabel struct {
	why *codec.Refusal // the first one, before the message is acknowledged; nil: the label was accepted
}

func (l *ownLabel) refused(why *codec.Refusal) {
	if l.why == nil {
		l.why = why
	}
}
