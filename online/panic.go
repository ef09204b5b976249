package online

import (
	"fmt"
	"runtime/debug"
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
		*err = &Panic{v, debug.Stack()}
	}
}
