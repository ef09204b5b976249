package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edge/internal/exit"
	"edge/test/files"
	"edge/test/harness"
)

func TestEvalQuery(t *testing.T) {
	path := harness.TableFile(t, "table.csv", 400)
	full := evalJSON(t, path, "--inducing", "10")[0]
	reports := evalJSON(t, path, "--inducing", "10", "--query", "margin,random", "--budget", "0.1,0.3,1")
	if len(reports) != 6 {
		t.Fatalf("two strategies and three budgets give %d reports", len(reports))
	}
	for i, r := range reports {
		a := r.Asked
		if a == nil || r.Samples != 400 || string(a.Strategy) != []string{"margin", "random"}[i/3] || a.Budget != []float64{0.1, 0.3, 1}[i%3] {
			t.Fatalf("report %d: %d samples, %+v", i, r.Samples, a)
		}
		if most := min(400, max(a.Budget*2400, 20)+a.Budget*200); a.Labels > most || a.Labels < 0.7*a.Budget*400 || a.Fraction != a.Labels/400 {
			t.Errorf("%s, budget %g: %g labels (%g), want at most %g", a.Strategy, a.Budget, a.Labels, a.Fraction, most)
		}
		if a.LastHalf.Error <= 0 || a.LastHalf.NLL <= 0 || r.Error < a.LastHalf.Error/2 || r.NLL > math.Log(3) || r.ECE <= 0 {
			t.Errorf("%s, budget %g: %+v, error %g, log loss %g, ece %g", a.Strategy, a.Budget, a.LastHalf, r.Error, r.NLL, r.ECE)
		}
		if last := r.Curve[len(r.Curve)-1]; last.N != 400 || last.Error != r.Error {
			t.Errorf("the curve ends with %+v, error %g", last, r.Error)
		}
	}
	if reports[2].Digest != reports[5].Digest {
		t.Error("requests for every label depend on the strategy")
	}
	if again := evalJSON(t, path, "--inducing", "10", "--query", "margin", "--budget", "0.1")[0]; again.Digest != reports[0].Digest || again.NLL != reports[0].NLL {
		t.Error("a second run gives another digest or log loss")
	}
	if reports[0].Digest == reports[3].Digest || reports[0].Digest == full.Digest {
		t.Error("different requests end in the same state")
	}
}

// With budget 1 every label is learnt, in minibatches of one.
func TestEvalQueryForEverything(t *testing.T) {
	path := harness.TableFile(t, "table.csv", 120)
	config := files.Write(t, "edge.yaml", "mqtt: {servers: [mqtt://broker.lan]}\n"+
		"streams: {s: {topics: [t], features: [x, y]}}\n"+
		"models: {m: {streams: [s], inducing: 8, temporal: off, batch: {max_size: 1}, classes: {names: [class0, class1, class2]}}}\n")
	one := evalJSON(t, path, "-c", config)[0]
	all := evalJSON(t, path, "-c", config, "--query", "bald", "--budget", "1")[0]
	if all.Asked.Labels != 120 || all.Error != one.Error || math.Abs(all.NLL-one.NLL) > 1e-7 { // what was said is kept in 32 bits
		t.Errorf("%g labels, error %g, log loss %g; without asking %g, %g", all.Asked.Labels, all.Error, all.NLL, one.Error, one.NLL)
	}
}

func TestEvalQuerySeedsTableAndPlot(t *testing.T) {
	path := harness.TableFile(t, "table.csv", 100)
	r := evalJSON(t, path, "--query", "entropy", "--budget", "0.2", "--seeds", "2")[0]
	if len(r.Runs) != 2 || r.Runs[0].Seed != 1 || r.Runs[1].Seed != 2 || r.Runs[0].Digest == r.Runs[1].Digest {
		t.Errorf("runs %+v", r.Runs)
	}
	svg := filepath.Join(t.TempDir(), "asked.svg")
	code, out, errOut := edge(t, "eval", path, "--query", "margin", "--budget", "0.1,0.2", "--plot", svg)
	if code != exit.OK || len(strings.Split(strings.TrimSpace(out), "\n")) != 3 || !strings.Contains(out, "last half") {
		t.Errorf("exits with %d: %s\n%s", code, errOut, out)
	}
	if picture, err := os.ReadFile(svg); err != nil || !strings.Contains(string(picture), "labels asked for") {
		t.Errorf("the plot has %d bytes (%v)", len(picture), err)
	}
	for _, args := range [][]string{{"--query", "often"}, {"--query", "off"}, {"--query", "margin", "--budget", "2"}, {"--query", "margin", "--mode", "cv"}} {
		if code, _, errOut := edge(t, append([]string{"eval", path}, args...)...); code != exit.Usage || !strings.Contains(errOut, "--query") {
			t.Errorf("%q exits with %d: %s", args, code, errOut)
		}
	}
}

// --against-full also learns every label and prints how many labels reach its error.
func TestEvalQueryAgainstFull(t *testing.T) {
	path := harness.TableFile(t, "table.csv", 400)
	code, out, errOut := edge(t, "eval", path, "--inducing", "10", "--query", "random", "--budget", "0.01,1", "--against-full", "--seeds", "2")
	if code != exit.OK {
		t.Fatalf("exits with %d: %s", code, errOut)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 8 || !strings.Contains(lines[1], "every label") || !strings.Contains(lines[1], " 400 ") {
		t.Fatalf("prints\n%s", out)
	}
	if last := lines[len(lines)-1]; !strings.HasPrefix(strings.TrimSpace(last), "table") || !strings.Contains(last, "random") || strings.Contains(last, "(0.01)") {
		t.Errorf("a hundredth of the labels is as good as all: %s", last)
	}
	if code, _, _ := edge(t, "eval", path, "--against-full"); code != exit.Usage {
		t.Error("--against-full does not need --query")
	}
}
