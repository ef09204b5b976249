package terminal

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/lmittmann/tint"
)

// newTerminalHandler returns a handler for a person at a terminal: with the time of day alone, and
// in colour unless NO_COLOR is set.
func newTerminalHandler(w io.Writer, level slog.Leveler) slog.Handler {
	return tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: os.Getenv("NO_COLOR") != ""})
}

// NewLogger returns a logger with a level and a format: text, json, or auto, which
// is coloured text on a terminal and text elsewhere, with priorities in systemd's journal. A w
// that blocks delays a line by a second at most, and all those that follow by nothing: some of
// them may then be missing, and the log says how many.
func NewLogger(at slog.Level, format string, w io.Writer) *slog.Logger {
	level := new(slog.LevelVar)
	level.Set(at)
	options := &slog.HandlerOptions{Level: level}
	to := &stallWriter{to: w}
	var lines io.Writer = Writer{to}
	if inJournal(w) {
		lines = &journalWriter{lines}
	}
	var handler slog.Handler = slog.NewTextHandler(lines, options)
	switch {
	case format == "json":
		handler = slog.NewJSONHandler(lines, options)
	case format == "auto" && IsTerminal(w):
		handler = newTerminalHandler(to, level)
	}
	log := slog.New(AdjustableHandler{handler, level})
	to.report = func(lines int) {
		log.Warn("lines of the log are missing: what reads it, or the terminal, had stopped", "lines", lines)
	}
	return log
}

// AdjustableHandler is a log handler whose level can be changed while it is in use.
type AdjustableHandler struct {
	slog.Handler
	Level *slog.LevelVar
}

// Set sets the level by its name: debug, info, warn or error.
func (a AdjustableHandler) Set(name string) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(name)); err != nil {
		return fmt.Errorf("level %.40q: want debug, info, warn or error", name)
	}
	a.Level.Set(level)
	return nil
}
