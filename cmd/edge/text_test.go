package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"edge/online"
	"edge/persist"
)

func TestEscaped(t *testing.T) {
	for in, want := range map[string]string{
		"":                                  "",
		"läuft 正常 ✓ é":                      "läuft 正常 ✓ é",
		`back\slash "quoted"`:               `back\slash "quoted"`,
		"a\x1b[31mred\x07\x7f\r\x00":        `a\u001b[31mred\u0007\u007f\u000d\u0000`,
		"c1 \u009b31m \u0085":               `c1 \u009b31m \u0085`,
		"raw \x9b31m":                       `raw \x9b31m`,
		"\u202aa\u202bb\u202cc\u202d\u202e": `\u202aa\u202bb\u202cc\u202d\u202e`,
		"\u2066a\u2067b\u2068c\u2069":       `\u2066a\u2067b\u2068c\u2069`,
		"\u200e\u200f\u061c":                `\u200e\u200f\u061c`,
		"o\u200bk\u200c\u200d\u2060\ufeff":  `o\u200bk\u200c\u200d\u2060\ufeff`,
		"\u00ad\u034f\u3164\ufe0f":          `\u00ad\u034f\u3164\ufe0f`,
		"tag \U000e0041":                    `tag \udb40\udc41`,
		"two\nlines\tand a tab":             `two\u000alines\u0009and a tab`,
		"line\u2028and\u2029paragraph":      `line\u2028and\u2029paragraph`,
		"no-break\u00a0space":               `no-break\u00a0space`,
	} {
		if got := escaped(in); got != want {
			t.Errorf("escaped(%q) = %q, want %q", in, got, want)
		}
	}
	var b bytes.Buffer
	if n, err := fmt.Fprintf(textWriter{&b}, "a\tb\x1b\n"); n != 5 || err != nil || b.String() != "a\tb\\u001b\n" {
		t.Errorf("wrote %d, %v, %q", n, err, b.String())
	}
}

func FuzzEscaped(f *testing.F) {
	for _, s := range []string{"ok", "a\u009bb", "\u202e", "\xff\xc3", "\U000e0041"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := escaped(s)
		for _, r := range got {
			if !shown(r) {
				t.Errorf("escaped(%q) = %q", s, got)
			}
		}
		if !utf8.ValidString(s) {
			return
		}
		var doc bytes.Buffer
		if err := printJSON(&doc, s); err != nil {
			t.Fatal(err)
		}
		var back string
		if err := json.Unmarshal(doc.Bytes(), &back); err != nil || back != s {
			t.Errorf("%q becomes %q as %s: %v", s, back, doc.Bytes(), err)
		}
	})
}

// hostileNames are names that would take over a terminal, or read otherwise than they are.
var hostileNames = []string{"\u009b31mred", "\u202elaw", "\u2066x\u2069", "z\u200bero", "\x1b]0;title\x07"}

// TestNamesAreEscaped: what a state file, a broker or a message brings along is
// shown, not obeyed, by everything that prints it.
func TestNamesAreEscaped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "edge.db")
	cfg := online.DefaultConfig()
	cfg.Features, cfg.Inducing = []string{"a", hostileNames[0], hostileNames[1]}, 8
	cfg.Classes.Names = hostileNames
	learner, err := online.NewLearner(cfg)
	if err != nil {
		t.Fatal(err)
	}
	state, err := learner.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeState(path, "m", cfg.Shape(), state); err != nil {
		t.Fatal(err)
	}
	store, err := persist.Open(path, persist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	outputs := map[string]string{}
	for _, args := range [][]string{{"inspect", path}, {"inspect", path, "--json"}, {"verify", path}, {"inspect", "none" + hostileNames[0]}, {"backup", path, "/none/" + hostileNames[1]}} {
		_, out, errOut := edge(t, args...)
		outputs[args[0]+" "+args[len(args)-1]] = out + errOut
	}
	var doc bytes.Buffer
	d := &diagnosis{Findings: []finding{{Check: "broker", Grade: gradeOK, Detail: strings.Join(hostileNames, " ")}}}
	if err := d.print(textWriter{&doc}); err != nil {
		t.Fatal(err)
	}
	outputs["doctor"] = doc.String()
	for _, format := range []string{"text", "json"} {
		var log bytes.Buffer
		newLogger(slog.LevelInfo, format, &log).Error(hostileNames[0], "topic", hostileNames[1], "error", fmt.Errorf("refused: %s", hostileNames[4]))
		outputs["log "+format] = log.String()
	}
	var log bytes.Buffer
	level := new(slog.LevelVar)
	slog.New(newTerminalHandler(&log, level)).Error("message refused", "topic", hostileNames[0], "label", hostileNames[1], "error", fmt.Errorf("refused: %s", hostileNames[2]), "x", hostileNames[3])
	outputs["log on a terminal"] = strings.NewReplacer("\x1b[", "").Replace(log.String()) // its own colours
	var table bytes.Buffer
	if err := printPublished(&table, []*Report{{Dataset: hostileNames[0], Published: &PublishedReport{Node: hostileNames[1], Model: hostileNames[2]}}}); err != nil {
		t.Fatal(err)
	}
	outputs["replay"] = table.String()
	for _, s := range hostileNames {
		outputs["top "+s] = plainText(s)
	}
	for name, out := range outputs {
		for _, r := range out {
			if r != '\n' && r != '\t' && !shown(r) {
				t.Errorf("%s prints %U: %q", name, r, out)
				break
			}
		}
	}
	if out := outputs["inspect "+path]; !strings.Contains(out, `\u009b31mred`) || !strings.Contains(out, `\u202elaw`) {
		t.Errorf("inspect does not show the names:\n%s", out)
	}
}
