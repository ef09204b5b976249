package terminal

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
)

// Names in a log line cannot control the terminal.
func TestLogsAreEscaped(t *testing.T) {
	names := []string{"\u009b31mred", "\u202elaw", "\u2066x\u2069", "z\u200bero", "\x1b]0;title\x07"}
	outputs := map[string]string{}
	for _, format := range []string{"text", "json"} {
		var log bytes.Buffer
		NewLogger(slog.LevelInfo, format, &log).Error(names[0], "topic", names[1], "error", fmt.Errorf("refused: %s", names[4]))
		outputs[format] = log.String()
	}
	var log bytes.Buffer
	slog.New(newTerminalHandler(&log, new(slog.LevelVar))).Error("message refused", "topic", names[0], "label", names[1], "error", fmt.Errorf("refused: %s", names[2]), "x", names[3])
	outputs["terminal"] = strings.NewReplacer("\x1b[", "").Replace(log.String()) // its own colours
	for format, out := range outputs {
		for _, r := range out {
			if r != '\n' && r != '\t' && !shown(r) {
				t.Errorf("%s prints %U: %q", format, r, out)
				break
			}
		}
	}
}

// A log that blocks, as a pipe whose reader has stopped, delays nothing, and tells afterwards what
// is missing of it.
func TestLogThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := blockable{taking: make(chan struct{}, 1)}
		log := NewLogger(slog.LevelInfo, "text", &out)
		log.Info("before")
		if got := out.String(); !strings.Contains(got, "msg=before") {
			t.Fatalf("Info returned before its line was written: %q", got)
		}
		out.taking <- struct{}{}
		const lines = 10000 // more than wait
		for range lines {
			log.Info("during")
		}
		<-out.taking
		synctest.Wait()
		log.Info("after")
		got := out.String()
		kept, missing := strings.Count(got, "msg=during"), 0
		if _, after, ok := strings.Cut(got, "lines="); ok {
			fmt.Sscan(after, &missing)
		}
		if kept < 500 || missing == 0 || kept+missing != lines || !strings.HasSuffix(got, "msg=after\n") {
			t.Errorf("of %d lines %d were written and %d are said to be missing:\n%.300s … %s", lines, kept, missing, got, got[max(0, len(got)-300):])
		}
	})
}

// blockable is a buffer that takes nothing while taking is full.
type blockable struct {
	taking chan struct{}
	bytes.Buffer
}

func (b *blockable) Write(p []byte) (int, error) {
	b.taking <- struct{}{}
	defer func() { <-b.taking }()
	return b.Buffer.Write(p)
}

// The journal takes the priority of a line from its beginning.
func TestPriorities(t *testing.T) {
	for format, handler := range map[string]func(*bytes.Buffer, *slog.HandlerOptions) slog.Handler{
		"text": func(b *bytes.Buffer, o *slog.HandlerOptions) slog.Handler {
			return slog.NewTextHandler(&journalWriter{b}, o)
		},
		"json": func(b *bytes.Buffer, o *slog.HandlerOptions) slog.Handler {
			return slog.NewJSONHandler(&journalWriter{b}, o)
		},
	} {
		for level, want := range map[slog.Level]string{slog.LevelDebug: "<7>", slog.LevelInfo: "<6>", slog.LevelWarn: "<4>", slog.LevelError: "<3>"} {
			var line bytes.Buffer
			slog.New(handler(&line, &slog.HandlerOptions{Level: slog.LevelDebug})).Log(t.Context(), level, "level=DEBUG", "level", "ERROR")
			if got := line.String(); !strings.HasPrefix(got, want) || strings.Count(got, "<") != 1 || !strings.HasSuffix(got, "\n") {
				t.Errorf("%s, %s: %q, want %s before it", format, level, got, want)
			}
		}
	}
	t.Setenv("JOURNAL_STREAM", "8:4711")
	if inJournal(new(bytes.Buffer)) || inJournal(os.Stderr) {
		t.Error("another stream is taken for the journal")
	}
}
