package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edge/internal/broker/brokertest"
	"edge/internal/exit"
	"edge/internal/report"
	"edge/test/harness"
)

func TestEvalTableAndPlot(t *testing.T) {
	a, b := harness.TableFile(t, "a.csv", 60), harness.TableFile(t, "b.csv.gz", 60)
	svg := filepath.Join(t.TempDir(), "curves.svg")
	code, out, errOut := edge(t, "eval", a, b, "--plot", svg)
	if code != exit.OK || errOut != "" {
		t.Fatalf("exits with %d: %s", code, errOut)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], "nll") || strings.Fields(lines[1])[0] != "a" || strings.Fields(lines[2])[0] != "b" {
		t.Errorf("the table is\n%s", out)
	}
	picture, err := os.ReadFile(svg)
	if err != nil || !strings.Contains(string(picture), "</svg>") || !strings.Contains(string(picture), "Prequential error") {
		t.Errorf("the plot has %d bytes (%v)", len(picture), err)
	}
	if r := evalJSON(t, a, b); len(r) != 2 || r[1].Dataset != "b" {
		t.Errorf("--json of two files gives %d objects", len(r))
	}
}

// Undeclared classes appear with their first labels, once they are confirmed; until
// then their probability is 0.
func TestEvalUndeclaredClasses(t *testing.T) {
	rows := brokertest.Brief(300, 120)
	path := harness.TableFile(t, "table.csv", rows)
	declared, open := evalJSON(t, path)[0], evalJSON(t, path, "--undeclared")[0]
	confirmed := evalJSON(t, path, "--undeclared", "--confirm", "10")[0]
	if len(open.Classes) != 3 || open.Samples != uint64(rows) || confirmed.Samples != uint64(rows) {
		t.Errorf("%d classes, %d and %d samples", len(open.Classes), open.Samples, confirmed.Samples)
	}
	if !(declared.NLL < min(open.NLL, confirmed.NLL)) {
		t.Errorf("log loss %g declared, %g undeclared, %g to be confirmed", declared.NLL, open.NLL, confirmed.NLL)
	}
	if code, _, _ := edge(t, "eval", path, "--confirm", "-1"); code != exit.Usage {
		t.Error("-1 samples confirm a class")
	}
}

func evalJSON(t testing.TB, args ...string) []report.Report {
	t.Helper()
	return harness.Objects[report.Report](t, edge, append([]string{"eval", "--json"}, args...)...)
}
