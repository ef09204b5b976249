package online

import (
	"runtime/debug"

	"edge/online/sep"
)

// Panic reports a panic inside the learner, which is an error of this program.
type Panic = sep.Panic

// Recover, deferred, turns a panic into the error that is returned.
func Recover(err *error) {
	if v := recover(); v != nil {
		*err = newPanic(v)
	}
}

// newPanic is the report of a panic with value v, with the stack where it was recovered
// or that of the task of a step.
func newPanic(v any) *Panic {
	if p, ok := v.(*Panic); ok {
		return p
	}
	return &Panic{Value: v, Stack: debug.Stack()}
}

// guarded returns the error of work, or its panic as one.
func guarded(work func() error) (err error) {
	defer Recover(&err)
	return work()
}
