package online

import (
	"fmt"
	"runtime/debug"

	"edge/online/sep"
)

// Panic reports a panic inside the learner, which is an error of this program.
type Panic struct {
	Value any
	Stack []byte
}

// Error returns the panic's value as text.
func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Recover, deferred, turns a panic into the error that is returned.
func Recover(err *error) {
	if v := recover(); v != nil {
		*err = newPanic(v)
	}
}

// newPanic is the report of a panic with value v, with the stack where it was recovered
// or that of the task of a step.
func newPanic(v any) *Panic {
	if p, ok := v.(*sep.Panic); ok {
		return &Panic{p.Value, p.Stack}
	}
	return &Panic{v, debug.Stack()}
}
