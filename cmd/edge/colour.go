package main

import (
	"io"
	"log/slog"
	"time"

	"github.com/lmittmann/tint"
)

// newTerminalHandler writes a log for somebody who reads along.
func newTerminalHandler(w io.Writer, level slog.Leveler) slog.Handler {
	return tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly})
}
