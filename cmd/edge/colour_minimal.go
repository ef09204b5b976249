//go:build minimal

package main

import (
	"io"
	"log/slog"
)

// newTerminalHandler writes a log without colours.
func newTerminalHandler(w io.Writer, level slog.Leveler) slog.Handler {
	return slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})
}
