package daemon

import "context"

// task is a goroutine that can be ended and waited for.
type task struct {
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when it has ended
	err    error         // valid once done is closed
}

// begin starts a task.
func begin(ctx context.Context, run func(context.Context) error) *task {
	t := &task{done: make(chan struct{})}
	ctx, t.cancel = context.WithCancelCause(ctx)
	go func() {
		defer close(t.done)
		defer t.cancel(nil)
		t.err = run(ctx)
	}()
	return t
}
