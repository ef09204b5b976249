package daemon

import "context"

// task is a goroutine that can be cancelled and waited for.
type task struct {
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the goroutine has ended
	err    error         // valid once done is closed
}

// startTask runs f in a task.
func startTask(ctx context.Context, f func(context.Context) error) *task {
	t := &task{done: make(chan struct{})}
	ctx, t.cancel = context.WithCancelCause(ctx)
	go func() {
		defer close(t.done)
		defer t.cancel(nil)
		t.err = f(ctx)
	}()
	return t
}

// stop cancels the task with a cause, waits for its end and returns its error. A
// nil task was never started.
func (t *task) stop(cause error) error {
	if t == nil {
		return nil
	}
	t.cancel(cause)
	<-t.done
	return t.err
}
