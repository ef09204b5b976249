package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"edge/stream/codec"
	"edge/stream/mqtt"
	"edge/stream/topic"
)

// ErrBusy reports a full queue; the caller may try again later.
var ErrBusy = errors.New("the queue of messages is full")

// LateLabel is the label of an earlier sample, which ID or Seq names.
type LateLabel struct {
	Model  string      `json:"-"`
	Device string      `json:"-"`                // as in the sample's Prediction
	ID     string      `json:"id,omitempty"`     // or "last" for the model's newest sample
	Seq    uint64      `json:"seq,omitempty"`    // of the sample's Prediction, where ID is empty
	Label  any         `json:"label"`            // as in a message: a text, json.Number or boolean
	Weight json.Number `json:"weight,omitempty"` // "": 1
	Source string      `json:"source"`           // author of the label
}

// Label handles a label like a message on <base>/<node>/<model>/label/<device>: the
// label takes its turn among the messages, and is durable when the error is nil. The
// error is ErrBusy, a *codec.Refusal, or that of ctx: the label may then be learnt later.
func (n *Node) Label(ctx context.Context, l LateLabel) error {
	to := n.cfg.prefix() + l.Model + "/label"
	if l.Device != "" {
		to += "/" + l.Device
	}
	if n.model(l.Model) == nil || topic.Check(to) != nil {
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

// ownLabel is attached to the message of a label from this program.
type ownLabel struct {
	why *codec.Refusal // first refusal, set before the acknowledgement; nil: the label was accepted
}

func (l *ownLabel) refused(why *codec.Refusal) {
	if l.why == nil {
		l.why = why
	}
}
