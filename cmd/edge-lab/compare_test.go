package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edge/internal/exit"
	"edge/lab/compare"
	"edge/test/harness"
)

func TestCompare(t *testing.T) {
	file, svg := harness.WaveformFile(t, 80), filepath.Join(t.TempDir(), "methods.svg")
	runs := filepath.Join(t.TempDir(), "runs.jsonl")
	args := []string{"compare", file, "--methods", "ep,gfitc,laplace", "--repeats", "2", "--updates", "5", "--train-fraction", "0.5", "--resume", runs}
	code, out, errOut := edge(t, append(args, "--json", "--plot", svg)...)
	if code != exit.OK || !strings.Contains(errOut, "laplace: left out: it separates 2 classes, not 3") {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	dec := json.NewDecoder(strings.NewReader(out))
	dec.DisallowUnknownFields()
	for _, method := range []string{"ep", "gfitc"} {
		var c compare.Cell
		if err := dec.Decode(&c); err != nil {
			t.Fatal(err)
		}
		if c.Dataset != "waveform" || c.Method != method || c.Splits != 2 || c.Inducing != 4 || c.NLL <= 0 || c.Seconds < 0 {
			t.Errorf("%+v", c)
		}
	}
	if drawn, err := os.ReadFile(svg); err != nil || !strings.Contains(string(drawn), "Negative log likelihood") {
		t.Errorf("the figure lacks its title: %v", err)
	}
	if code, out, errOut := edge(t, args...); code != exit.OK || !strings.Contains(out, "data set") || !strings.Contains(out, "gfitc") {
		t.Errorf("exit %d: %s\n%s", code, errOut, out)
	}
	for _, c := range []struct{ flag, want string }{
		{"--methods=svm", `no method "svm"`},
		{"--inducing=0", "--inducing"},
		{"--train-fraction=1", "--train-fraction"},
		{"--updates=0", "--updates"},
		{"--repeats=0", "--repeats"},
	} {
		if code, _, errOut := edge(t, append(args, c.flag)...); code != exit.Usage || !strings.Contains(errOut, c.want) {
			t.Errorf("%s: exit %d: %s", c.flag, code, errOut)
		}
	}
	if code, _, errOut := edge(t, "compare", file, "--methods", "laplace"); code != exit.Runtime || !strings.Contains(errOut, "none of the methods") {
		t.Errorf("no method is left: exit %d: %s", code, errOut)
	}
}
