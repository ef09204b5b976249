package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// EndAtSignals lets SIGINT and SIGTERM end the program at once, as they do by default. A command
// that has nothing to finish, and does not look at its context, begins with it.
func EndAtSignals() { signal.Reset(os.Interrupt, syscall.SIGTERM) }
