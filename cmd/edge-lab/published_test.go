package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edge/internal/exit"
	"edge/lab/published"
	"edge/test/files"
	"edge/test/harness"
)

func TestPublishedTables(t *testing.T) {
	folder := filepath.Dir(harness.TableFile(t, "wine.csv", 100))
	figures := files.Write(t, "figures.csv", "set,inducing,method,error,nll\nwine,0.05,EP,0.031,0.125\nwine,0.2,EP,.02,.5\n")
	args := []string{"published", "tables", folder, "--repeats", "2", "--updates", "5", "--passes", "20", "--inducing", "0.05,0.2", "--methods", "ep,edge", "--figures", figures}
	cells := harness.Objects[published.Cell](t, edge, append(args, "--json")...)
	if len(cells) != 4 || cells[1].Method != "edge" || cells[3].Inducing != 18 || cells[0].Learnt != 90 || len(cells[0].Published) != 1 {
		t.Fatalf("%+v", cells)
	}
	code, out, errOut := edge(t, append(args, "--resume", filepath.Join(t.TempDir(), "runs.jsonl"))...)
	if !strings.Contains(errOut, "glass: not in") {
		t.Errorf("nothing is said of the set that is missing: %s", errOut)
	}
	for _, want := range []string{"mean of the 2 sets", "EP, published", ".12", "nll − ep"} {
		if code != exit.OK || !strings.Contains(out, want) {
			t.Errorf("exit %d: %s\nthe table lacks %q:\n%s", code, errOut, want, out)
		}
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"tables", t.TempDir()}, exit.Runtime, "none of the data sets"},
		{[]string{"tables", folder, "--repeats", "1"}, exit.Usage, "--repeats"},
		{[]string{"tables", folder, "--figures", files.Write(t, "f.csv", "glass\n")}, exit.Runtime, "f.csv:1: want set"},
		{[]string{"figure9"}, exit.Usage, "unknown command"},
		{[]string{"figure3", "--rows", "1"}, exit.Usage, "--"},
		{[]string{"figure4", folder, "--seconds", "0"}, exit.Usage, "--seconds"},
		{[]string{"figure4", folder, "--seconds", "inf"}, exit.Usage, "--seconds"},
		{[]string{"figure4", folder, "--points", "9223372036854775807"}, exit.Usage, "--points: want 2 to 10000"},
		{[]string{"figure5", filepath.Join(folder, "wine.csv"), "--judge", "99"}, exit.Usage, "--judge"},
	} {
		if code, _, errOut := edge(t, append([]string{"published"}, c.args...)...); code != c.code || !strings.Contains(errOut, c.want) {
			t.Errorf("%v: exit %d: %s", c.args, code, errOut)
		}
	}
}

// Each figure is printed, drawn and written as JSON.
func TestPublishedFigures(t *testing.T) {
	file, images := harness.WaveformFile(t, 80), harness.IdxFiles(t, 60, false)
	for _, c := range []struct {
		args  []string
		lines int // of JSON
		title string
	}{
		{[]string{"figure1", file, "--updates", "4"}, 3, "log_evidence, M = 14"},
		{[]string{"figure3", "--rows", "40", "--updates", "2", "--inducing", "1,4", "--grid", "6"}, 8, "gfitc, M = 4"},
		{[]string{"figure4", file, "--seconds", "0.02", "--points", "3", "--inducing", "2,4", "--methods", "ep,vi"}, 4, "nll, M = 2"},
		{[]string{"figure5", file, "--seconds", "0.02", "--points", "3", "--inducing", "4", "--judge", "30", "--batch", "20"}, 4, "error, M = 4"},
		{[]string{"figure5", images, "--seconds", "0.02", "--points", "3", "--inducing", "4", "--test", images, "--common-scale", "--components", "3", "--methods", "sep"}, 1, "error, M = 4"},
		{[]string{"figure7", file, "--seconds", "0.02", "--points", "3", "--inducing", "4", "--judge", "30", "--batch", "20"}, 1, "expected_log, M = 4"},
	} {
		svg := filepath.Join(t.TempDir(), "figure.svg")
		args := append([]string{"published"}, c.args...)
		code, out, errOut := edge(t, append(args, "--json", "--plot", svg)...)
		if code != exit.OK || strings.Count(out, "\n") != c.lines {
			t.Fatalf("%v: exit %d: %s\n%s", c.args, code, errOut, out)
		}
		for line := range strings.Lines(out) {
			if !json.Valid([]byte(line)) {
				t.Errorf("%v: not JSON: %s", c.args, line)
			}
		}
		if drawn, err := os.ReadFile(svg); err != nil || !strings.Contains(string(drawn), c.title) {
			t.Errorf("%v: the figure lacks %q: %v", c.args, c.title, err)
		}
		if code, out, errOut := edge(t, args...); code != exit.OK || !strings.HasPrefix(strings.TrimSpace(out), "method") {
			t.Errorf("%v: exit %d: %s\n%s", c.args, code, errOut, out)
		}
	}
}
