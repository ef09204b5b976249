//go:build unix

package terminal

import "golang.org/x/sys/unix"

// columns returns the width of a terminal in characters; 0 if w is none, or its width is unknown.
func columns(w any) int {
	f, ok := w.(interface{ Fd() uintptr })
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}
