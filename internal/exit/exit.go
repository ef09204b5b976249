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

// Error is an error with an exit code.
type Error struct {
	Code int
	Err  error
}

// With returns err with an exit code, or err itself if it has one already. Nil
// stays nil.
func With(code int, err error) error {
	var have *Error
	if err == nil || errors.As(err, &have) {
		return err
	}
	return &Error{code, err}
}

// Error returns the text of the underlying error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }
