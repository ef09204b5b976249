package terminal

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
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
