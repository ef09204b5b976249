package terminal

import "github.com/mattn/go-isatty"

// IsTerminal reports whether w is a terminal, where lines may be rewritten.
func IsTerminal(w any) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && isatty.IsTerminal(f.Fd())
}
