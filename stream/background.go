package stream

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidwall/gjson"

	"edge/online"
)

const maxBackground = 8 // requests that may wait for earlier ones

// errNotAvailable reports a command whose function in Program is nil.
var errNotAvailable = errors.New("not available in this program")

// Program executes commands that concern the program around the node. One goroutine
// calls its functions, one after the other; each must return when its ctx ends. A
// command whose function is nil is answered with an error.
type Program struct {
	// Checkpoint stores the current state of the model.
	Checkpoint func(ctx context.Context, model string) error
	// Export writes the model's state to a file of this name, or of a name that it
	// chooses if name is empty, and returns the data of the response.
	Export func(ctx context.Context, model, name string) (map[string]any, error)
	// Earlier returns an earlier state of the model: of its newest checkpoint, of the
	// older one, or of an export.
	Earlier func(ctx context.Context, model, to string) (*Earlier, error)
	// LogLevel sets the level of the log until the program ends.
	LogLevel func(level string) error
	// Reload reads the configuration again.
	Reload func(ctx context.Context) error
}

// Earlier is an earlier state of a model.
type Earlier struct {
	State   []byte
	Classes []online.Record // those of State: online.ClassRecords of the record that replaces the model by it
	// About is the data of the response, in which "samples" is the number of samples in
	// the state, a uint64.
	About map[string]any
}

// backgroundCommand executes a request and returns the data of the response. Nil data
// means that the committer will respond.
type backgroundCommand func(ctx context.Context) (answer map[string]any, err error)

// backgroundQueue holds the requests that may take long. One goroutine executes them in
// order.
type backgroundQueue chan func(context.Context)

// push reports false if the queue is full.
func (q backgroundQueue) push(answer *reply, do backgroundCommand) bool {
	select {
	case q <- func(ctx context.Context) {
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

// run executes background commands until ctx ends, and those that wait then.
func (q backgroundQueue) run(ctx context.Context) {
	for ctx.Err() == nil || len(q) > 0 {
		select {
		case do := <-q:
			do(ctx)
		case <-ctx.Done():
		}
	}
}

func (n *Node) checkpoint(r *request) backgroundCommand {
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

func (n *Node) export(r *request) backgroundCommand {
	return func(ctx context.Context) (map[string]any, error) {
		if n.program.Export == nil {
			return nil, errNotAvailable
		}
		name, err := r.optional("name")
		if err != nil {
			return nil, err
		}
		return n.program.Export(ctx, r.models[0].Name, name)
	}
}

func (n *Node) reload(*request) backgroundCommand {
	return func(ctx context.Context) (map[string]any, error) {
		if n.program.Reload == nil {
			return nil, errNotAvailable
		}
		return map[string]any{}, n.program.Reload(ctx)
	}
}

// rollback fetches an earlier state, and queues its replacement among the messages: the
// journal holds it, so that a restart rolls back as well.
func (n *Node) rollback(r *request) backgroundCommand {
	return func(ctx context.Context) (map[string]any, error) {
		if n.program.Earlier == nil {
			return nil, errNotAvailable
		}
		to, err := r.optional("to")
		if err != nil {
			return nil, err
		}
		earlier, err := n.program.Earlier(ctx, r.models[0].Name, to)
		if err != nil {
			return nil, err
		}
		order := r.eventMutation(online.Event{Kind: online.Replace, State: earlier.State, Name: r.replace}, earlier.About, earlier.Classes)
		order.reply = r.reply
		if !n.enqueue(r.target, order) || n.client.Stopping() {
			return nil, fmt.Errorf("rollback: %w", ErrBusy)
		}
		return nil, nil
	}
}

// RollBack restores the older checkpoint of a model after a change of its stream; the
// scores continue. Any goroutine may call it; it does not wait. An event reports the
// result.
func (n *Node) RollBack(model string) {
	m := n.model(model)
	if m == nil {
		return
	}
	r := &request{target: "rollback/" + model, models: []*modelState{m}, data: gjson.Parse(`{"to":"older"}`), replace: online.OnlyModel}
	r.reply = newReply(nil, func(answer ResponsePayload) {
		if answer.Status == "error" {
			n.report.event(model, "rollback_failed", answer.Error)
		}
	})
	if !n.background.push(r.reply, n.rollback(r)) {
		r.reply.fail(fmt.Errorf("busy with requests: %w", ErrBusy))
	}
}
