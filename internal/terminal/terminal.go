package terminal

import (
	"os"

	"github.com/mattn/go-isatty"
)

// IsTerminal reports whether w is a terminal whose lines may be rewritten, which one with TERM=dumb,
// as in an editor, has not.
func IsTerminal(w any) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && isatty.IsTerminal(f.Fd()) && os.Getenv("TERM") != "dumb"
}
