package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"edge/internal/doctor/diagnosis"
	"edge/internal/report"
	"edge/internal/terminal"
	"edge/online"
	"edge/persist"
)

// hostileNames are names that would control a terminal, or be displayed as other
// text.
var hostileNames = []string{"\u009b31mred", "\u202elaw", "\u2066x\u2069", "z\u200bero", "\x1b]0;title\x07"}

// Every command escapes the names that it prints of a state file, a broker or a
// message.
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
	d := &diagnosis.Diagnosis{Findings: []diagnosis.Finding{{Check: "broker", Grade: diagnosis.OK, Detail: strings.Join(hostileNames, " ")}}}
	if err := d.Print(terminal.Writer{To: &doc}); err != nil {
		t.Fatal(err)
	}
	outputs["doctor"] = doc.String()
	var table bytes.Buffer
	if err := report.PrintPublished(&table, []*report.Report{{Dataset: hostileNames[0], Published: &report.Published{Node: hostileNames[1], Model: hostileNames[2]}}}); err != nil {
		t.Fatal(err)
	}
	outputs["replay"] = table.String()
	for name, out := range outputs {
		for _, r := range out {
			if r != '\n' && r != '\t' && terminal.Escaped(string(r)) != string(r) {
				t.Errorf("%s prints %U: %q", name, r, out)
				break
			}
		}
	}
	if out := outputs["inspect "+path]; !strings.Contains(out, `\u009b31mred`) || !strings.Contains(out, `\u202elaw`) {
		t.Errorf("inspect does not show the names:\n%s", out)
	}
}
