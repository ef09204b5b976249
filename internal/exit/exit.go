package exit

import "errors"

// Exit codes, for scripts and service managers.
const (
	OK      = 0
	Runtime = 1
	Usage   = 2
	Config  = 3
	Broker  = 4
	Store   = 5
)

// Error is an error that decides the exit code.
type Error struct {
	Code int
	Err  error
}

// With gives err an exit code, unless it has one already. Nil stays nil.
func With(code int, err error) error {
	var have *Error
	if err == nil || errors.As(err, &have) {
		return err
	}
	return &Error{code, err}
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }
