package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidwall/gjson"

	"edge/online"
	"edge/stream/mqtt"
)

const maxErrands = 8 // requests that may wait for those before them

// errNotAvailable: the program around the node has nothing that does it.
var errNotAvailable = errors.New("not available: this program cannot do it while it runs")

// Program does what requests ask of the program around the node. Each function
// is called from one goroutine, one after the other, and must return when its
// ctx ends. A request whose function is nil is answered with an error.
type Program struct {
	// Checkpoint saves what the model has learnt now.
	Checkpoint func(ctx context.Context, model string) error
	// Export writes the model's state to a file of this name, or of one that it
	// chooses if it is empty, and returns what to tell about it.
	Export func(ctx context.Context, model, name string) (map[string]any, error)
	// Earlier returns an encoded state of the model: of its newest checkpoint, of
	// the older one, or of an export.
	Earlier func(ctx context.Context, model, to string) (state []byte, about map[string]any, err error)
	// LogLevel sets the level of the log until the program ends.
	LogLevel func(level string) error
	// Reload reads the configuration again.
	Reload func(ctx context.Context) error
}

// errand does what a request asks for. A nil answer means that somebody else
// will give it.
type errand func(ctx context.Context) (answer map[string]any, err error)

// errands are the requests that take their time: one goroutine carries them out,
// in order.
type errands struct {
	in chan func(context.Context)
}

func newErrands() *errands { return &errands{in: make(chan func(context.Context), maxErrands)} }

// push reports false if too many wait already.
func (e *errands) push(answer *reply, do errand) bool {
	select {
	case e.in <- func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		switch data, err := do(ctx); {
		case err != nil:
			answer.fail(err)
		case data != nil:
			answer.ok(data)
		}
	}:
		return true
	default:
		return false
	}
}

// run carries errands out until ctx ends.
func (e *errands) run(ctx context.Context) {
	for {
		select {
		case do := <-e.in:
			do(ctx)
		case <-ctx.Done():
			for { // what waits is answered, too
				select {
				case do := <-e.in:
					do(ctx)
				default:
					return
				}
			}
		}
	}
}

func (n *Node) checkpoint(r *request) errand {
	return func(ctx context.Context) (map[string]any, error) {
		if n.program.Checkpoint == nil {
			return nil, errNotAvailable
		}
		saved := []string{}
		for _, m := range r.models {
			if err := n.program.Checkpoint(ctx, m.Name); err != nil {
				return nil, err
			}
			saved = append(saved, m.Name)
		}
		return map[string]any{"models": saved}, nil
	}
}

func (n *Node) export(r *request) errand {
	return func(ctx context.Context) (map[string]any, error) {
		if n.program.Export == nil {
			return nil, errNotAvailable
		}
		return n.program.Export(ctx, r.models[0].Name, r.data.Get("name").String())
	}
}

func (n *Node) reload(*request) errand {
	return func(ctx context.Context) (map[string]any, error) {
		if n.program.Reload == nil {
			return nil, errNotAvailable
		}
		return map[string]any{}, n.program.Reload(ctx)
	}
}

// rollback fetches an earlier state, and lets it take its turn among the
// messages: the journal holds it, so that a restart rolls back as well.
func (n *Node) rollback(r *request) errand {
	return func(ctx context.Context) (map[string]any, error) {
		if n.program.Earlier == nil {
			return nil, errNotAvailable
		}
		state, about, err := n.program.Earlier(ctx, r.models[0].Name, r.data.Get("to").String())
		if err != nil {
			return nil, err
		}
		order := r.teach(online.Event{Kind: online.Replace, State: state, Name: r.replace}, about, func() error { return nil })
		order.reply = r.reply
		msg := &mqtt.Message{Topic: "request/" + r.what, QoS: 1, Arrived: time.Now(), Attached: order, Ack: func() {}}
		if taken, _ := n.ring.Push(msg, nil); !taken || n.client.Stopping() {
			return nil, fmt.Errorf("rollback: %w", ErrBusy)
		}
		return nil, nil
	}
}

// RollBack takes a model back to its older checkpoint because its stream has
// changed; the scores go on. Any goroutine may call it; it does not wait. An
// event tells that it is done, or why it is not.
func (n *Node) RollBack(model string) {
	for _, m := range n.models {
		if m.Name != model {
			continue
		}
		r := &request{what: "rollback/" + model, models: []*modelState{m}, data: gjson.Parse(`{"to":"older"}`), replace: online.OnlyModel}
		r.reply = newReply(nil, func(answer ResponsePayload) {
			if answer.Status == "error" {
				n.report.event(model, "rollback_failed", answer.Error)
			}
		})
		if !n.errands.push(r.reply, n.rollback(r)) {
			r.reply.fail(fmt.Errorf("busy with requests: %w", ErrBusy))
		}
	}
}
