package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edge/internal/dataset"
	"edge/online"
)

// evalJSON runs edge eval --json and returns its objects.
func evalJSON(t testing.TB, args ...string) (reports []Report) {
	t.Helper()
	code, out, errOut := edge(t, append([]string{"eval", "--json"}, args...)...)
	if code != exitOK {
		t.Fatalf("edge eval %s exits with %d: %s", strings.Join(args, " "), code, errOut)
	}
	dec := json.NewDecoder(strings.NewReader(out))
	dec.DisallowUnknownFields()
	for dec.More() {
		var r Report
		if err := dec.Decode(&r); err != nil {
			t.Fatalf("%v in %q", err, out)
		}
		reports = append(reports, r)
	}
	return reports
}

func TestEval(t *testing.T) {
	path := tableFile(t, "table.csv", 300)
	r := evalJSON(t, path, "--inducing", "10")[0]
	if r.Dataset != "table" || r.Mode != "prequential" || r.Samples != 300 || strings.Join(r.Classes, " ") != "class0 class1 class2" {
		t.Errorf("dataset %q, mode %q, %d samples of %q", r.Dataset, r.Mode, r.Samples, r.Classes)
	}
	if r.Error <= 0 || r.Error > 0.5 || r.NLL <= 0 || r.NLL > math.Log(3) || r.Brier <= 0 || r.ECE <= 0 || r.MacroF1 < 0.5 {
		t.Errorf("it did not learn: %+v", r)
	}
	if r.StateBytes <= 0 || r.Seconds <= 0 || len(r.Digest) != 64 || len(r.Runs) != 0 {
		t.Errorf("state %d bytes, %g s, digest %q, %d runs", r.StateBytes, r.Seconds, r.Digest, len(r.Runs))
	}
	last := r.Curve[len(r.Curve)-1]
	if last.N != 300 || last.Error != r.Error || last.NLL != r.NLL || r.Curve[0].N != 10 {
		t.Errorf("the curve begins with %+v and ends with %+v", r.Curve[0], last)
	}
	again := evalJSON(t, path, "--inducing", "10")[0]
	if again.Digest != r.Digest || again.NLL != r.NLL {
		t.Errorf("a second run gives another digest or log loss: %s %g, %s %g", r.Digest, r.NLL, again.Digest, again.NLL)
	}
	if other := evalJSON(t, path, "--inducing", "10", "--batch", "7")[0]; other.Digest == r.Digest {
		t.Error("minibatches of 7 give the same state as those of 16")
	}
	if first := evalJSON(t, path, "--first", "40")[0]; first.Samples != 40 || len(first.Classes) != 3 {
		t.Errorf("--first 40 judged %d samples of %q", first.Samples, first.Classes)
	}
}

// The scores are those of a learner that is fed by hand.
func TestEvalIsPlainLearning(t *testing.T) {
	path := tableFile(t, "table.csv", 150)
	d, err := dataset.Open(path, dataset.Format{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	cfg := online.DefaultConfig()
	cfg.Features, cfg.Classes.Names = d.Features, []string{"class0", "class1", "class2"}
	learner, err := online.NewLearner(cfg)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := dataset.ReadAll(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		learner.Add(&online.Event{Kind: online.Observe, X: row.X, Label: row.Label})
	}
	if r := evalJSON(t, path)[0]; r.Digest != learner.Digest() {
		t.Errorf("digest %s, want %s", r.Digest, learner.Digest())
	}
}

func TestEvalSeeds(t *testing.T) {
	path := tableFile(t, "table.csv", 80)
	r := evalJSON(t, path, "--shuffle", "5", "--seeds", "3")[0]
	if len(r.Runs) != 3 || r.Runs[0].Seed != 5 || r.Runs[2].Seed != 7 || r.Digest != "" {
		t.Fatalf("runs %+v, digest %q", r.Runs, r.Digest)
	}
	if r.Runs[0].Digest == r.Runs[1].Digest {
		t.Error("two shuffles end in the same state")
	}
	var sum float64
	for _, run := range r.Runs {
		sum += run.NLL
	}
	if math.Abs(sum/3-r.NLL) > 1e-12 {
		t.Errorf("log loss %g, mean of the runs %g", r.NLL, sum/3)
	}
	one := evalJSON(t, path, "--shuffle", "6")[0]
	if one.Digest != r.Runs[1].Digest {
		t.Errorf("seed 6 alone gives digest %s, among others %s", one.Digest, r.Runs[1].Digest)
	}

	if _, out, _ := edge(t, "eval", path, "--shuffle", "5", "--seeds", "3"); !strings.Contains(out, fmt.Sprintf("%.4f ± %.4f", r.NLL, r.NLLSE)) {
		t.Errorf("no log loss of %.4f ± %.4f in\n%s", r.NLL, r.NLLSE, out)
	}
	r = evalJSON(t, path, "--inducing", "8", "--seeds", "2")[0] // in the file's order: seeds of the model
	one = evalJSON(t, path, "--inducing", "8")[0]
	if len(r.Runs) != 2 || r.Runs[0].Seed != 1 || r.Runs[1].Seed != 2 || r.Runs[0].Digest != one.Digest || r.Runs[1].Digest == one.Digest {
		t.Errorf("runs %+v, alone %s", r.Runs, one.Digest)
	}
}

func TestEvalWithConfig(t *testing.T) {
	path := tableFile(t, "table.csv", 100)
	config := func(features, more string) string {
		return writeFile(t, "edge.yaml", "mqtt: {servers: [mqtt://broker.lan]}\n"+
			"streams: {s: {topics: [t], features: "+features+"}}\n"+
			"models: {m: {streams: [s], inducing: 8, window: 16, classes: {names: [class0, class1, class2]}"+more+"}}\n")
	}
	plain := evalJSON(t, path, "--inducing", "8")[0]
	if r := evalJSON(t, path, "-c", config("[x, y]", ""))[0]; r.Digest != plain.Digest {
		t.Errorf("the same configuration from a file gives digest %s, want %s", r.Digest, plain.Digest)
	}
	if r := evalJSON(t, path, "-c", config("[y, x]", ""))[0]; r.Digest == plain.Digest {
		t.Error("features in another order give the same digest")
	}
	one := evalJSON(t, path, "-c", config("[x]", ""))[0]
	if one.Samples != 100 || one.StateBytes >= plain.StateBytes {
		t.Errorf("one feature alone: %d samples, %d bytes; both: %d bytes", one.Samples, one.StateBytes, plain.StateBytes)
	}
	if r := evalJSON(t, path, "-c", config("[x, y]", ", seed: 2"))[0]; r.Digest == plain.Digest {
		t.Error("another seed gives the same digest")
	}
}

// A class beyond the bound is not learnt; the daemon counts it and goes on.
func TestEvalSkipsWhatTheDaemonRefuses(t *testing.T) {
	path := tableFile(t, "table.csv", 100)
	config := writeFile(t, "edge.yaml", "mqtt: {servers: [mqtt://broker.lan]}\n"+
		"streams: {s: {topics: [t], features: [x, y]}}\n"+
		"models: {m: {streams: [s], classes: {names: [class0, class1], open: false}}}\n")
	r := evalJSON(t, path, "-c", config)[0]
	if r.Samples == 0 || r.Samples >= 100 || len(r.Classes) != 2 {
		t.Errorf("%d samples of %q", r.Samples, r.Classes)
	}
	if last := r.Curve[len(r.Curve)-1]; last.N != r.Samples {
		t.Errorf("the curve ends at %d, want %d", last.N, r.Samples)
	}
}

func TestEvalTableAndPlot(t *testing.T) {
	a, b := tableFile(t, "a.csv", 60), tableFile(t, "b.csv.gz", 60)
	svg := filepath.Join(t.TempDir(), "curves.svg")
	code, out, errOut := edge(t, "eval", a, b, "--plot", svg)
	if code != exitOK || errOut != "" {
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

func TestCurveIsBounded(t *testing.T) {
	var c Curve
	var s online.Scores
	for s.N = 1; s.N <= 100000; s.N++ {
		if c.Due(s.N) {
			c.Add(s)
		}
	}
	s.N = 100001
	points := c.Ending(s)
	if len(points) < curvePoints/2 || len(points) > curvePoints || points[len(points)-1].N != s.N {
		t.Fatalf("%d points, the last at %d", len(points), points[len(points)-1].N)
	}
	for i := 1; i < len(points)-1; i++ {
		if step, first := points[i].N-points[i-1].N, points[1].N-points[0].N; step != first {
			t.Fatalf("points %d and %d are %d apart, the first two %d", i-1, i, step, first)
		}
	}
}

// Classes that are not declared come with their first labels, once they are
// confirmed; until then their probability is 0.
func TestEvalUndeclaredClasses(t *testing.T) {
	rows := brief(300, 120)
	path := tableFile(t, "table.csv", rows)
	declared, open := evalJSON(t, path)[0], evalJSON(t, path, "--undeclared")[0]
	confirmed := evalJSON(t, path, "--undeclared", "--confirm", "10")[0]
	if len(open.Classes) != 3 || open.Samples != uint64(rows) || confirmed.Samples != uint64(rows) {
		t.Errorf("%d classes, %d and %d samples", len(open.Classes), open.Samples, confirmed.Samples)
	}
	if !(declared.NLL < open.NLL && open.NLL < confirmed.NLL) {
		t.Errorf("log loss %g declared, %g undeclared, %g to be confirmed", declared.NLL, open.NLL, confirmed.NLL)
	}
	if code, _, _ := edge(t, "eval", path, "--confirm", "-1"); code != exitConfig {
		t.Error("-1 samples confirm a class")
	}
}
