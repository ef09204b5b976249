package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/internal/report"
	"edge/online"
	"edge/test/files"
	"edge/test/harness"
)

func evalJSON(t testing.TB, args ...string) []report.Report {
	t.Helper()
	return harness.Objects[report.Report](t, edge, append([]string{"eval", "--json"}, args...)...)
}

func TestEval(t *testing.T) {
	path := harness.TableFile(t, "table.csv", 300)
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
		t.Error("minibatches of 7 give the same state as single labels")
	}
	if first := evalJSON(t, path, "--first", "40")[0]; first.Samples != 40 || len(first.Classes) != 3 {
		t.Errorf("--first 40 judged %d samples of %q", first.Samples, first.Classes)
	}
}

// The state is that of a learner that the test feeds itself, each label alone. Rows without a label change
// neither scores nor state.
func TestEvalIsPlainLearning(t *testing.T) {
	path := harness.TableFile(t, "table.csv", 150)
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
		learner.Add(&online.Event{Kind: online.Boundary})
	}
	r := evalJSON(t, path)[0]
	if r.Digest != learner.Digest() {
		t.Errorf("digest %s, want %s", r.Digest, learner.Digest())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	bare := strings.Repeat("0.5,0.5,\n", 10)
	gaps := files.Write(t, "gaps.csv", strings.Join(lines[:70], "")+bare+strings.Join(lines[70:], "")+bare)
	for _, batch := range []string{"0", "20"} {
		want, got := evalJSON(t, path, "--batch", batch)[0], evalJSON(t, gaps, "--batch", batch)[0]
		if got.Digest != want.Digest || got.NLL != want.NLL || got.ECE != want.ECE || got.Samples != want.Samples || len(got.Tenths) != 10 {
			t.Errorf("--batch %s, with rows that have no label: %d samples, log loss %g, %d tenths, want %d, %g, 10", batch, got.Samples, got.NLL, len(got.Tenths), want.Samples, want.NLL)
		}
	}
}

func TestEvalSeeds(t *testing.T) {
	path := harness.TableFile(t, "table.csv", 80)
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
	path := harness.TableFile(t, "table.csv", 100)
	config := func(features, more string) string {
		return files.Write(t, "edge.yaml", "mqtt: {servers: [mqtt://broker.lan]}\n"+
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

// The labels of a file are read as those of the model's stream: in the column that it names, and by
// its map, so that a trained state has the classes of the daemon.
func TestLabelsOfTheStream(t *testing.T) {
	var b strings.Builder
	b.WriteString("x,state,y\n")
	for i := range 60 {
		fmt.Fprintf(&b, "%d,%d,%d\n", i%3*10+i%7, i%3, i%3*5+i%4)
	}
	table := files.Write(t, "table.csv", b.String())
	config := func(words string) string {
		return files.Write(t, "edge.yaml", "streams: {s: {topics: [t], features: [x, y], label: state, on_missing: marginalise, label_map: {"+words+"}}}\nmodels: {m: {streams: [s]}}\n")
	}
	known := config(`0: "", 1: ok, 2: worn`)
	r := evalJSON(t, table, "-c", known)[0]
	if classes := strings.Join(r.Classes, " "); classes != "ok worn" || r.Samples != 40 {
		t.Errorf("%d samples of %q", r.Samples, r.Classes)
	}
	db := filepath.Join(t.TempDir(), "edge.db")
	if code, _, errOut := edge(t, "train", table, "-c", known, "-o", db, "--passes", "1"); code != exit.OK {
		t.Fatal(errOut)
	}
	if _, out, _ := edge(t, "inspect", db, "--json"); !strings.Contains(out, `"worn"`) || !strings.Contains(out, `"ok"`) || strings.Contains(out, `"1"`) {
		t.Errorf("the trained state has other classes:\n%s", out)
	}
	if code, out, errOut := edge(t, "predict", "--state", db, "-c", known, table, "--label", "state"); code != exit.OK || !strings.Contains(out, `"label":"worn"`) || strings.Contains(out, `"label":"2"`) {
		t.Errorf("predict has other labels than classes: %s%s", out, errOut)
	}
	for _, command := range [][]string{{"eval", table}, {"eval", "split", table}, {"train", table}} {
		code, _, errOut := edge(t, append(command, "-c", config("1: ok, 2: worn"))...)
		if want := `table.csv:2:3: column "state": the label "0" is not in the map of labels, which has 1, 2, ok, worn`; code != exit.Runtime || !strings.Contains(errOut, want) {
			t.Errorf("%s exits with %d: %s, want %s", command, code, errOut, want)
		}
	}
}

// The words that a topic under labels has for classes are labels of a file, and a label that topics call
// differently is told.
func TestLabelsOfTopics(t *testing.T) {
	table := files.Write(t, "table.csv", "x,label\n"+strings.Repeat("1,0\n5,1\n9,2\n4,1.0\n7,other\n", 30))
	config := func(more string) string {
		return files.Write(t, "edge.yaml", "streams: {s: {topics: [t], features: [x]"+more+"}}\nlabels:\n- {topics: [t/state], map: {0: idle, 1: run}}\n- {topics: [t/more]}\nmodels: {m: {streams: [s]}}\n")
	}
	code, out, errOut := edge(t, "eval", table, "-c", config(""), "--json")
	if code != exit.OK || !strings.Contains(out, `"classes":["idle","run","2","other"]`) || strings.Contains(errOut, "(map)") {
		t.Errorf("exits with %d: %s%s", code, out, errOut)
	}
	if code, out, errOut := edge(t, "eval", table, "-c", config(", label_map: {0: off, 1: on, 2: '', other: ''}"), "--json"); code != exit.OK || !strings.Contains(out, `"classes":["off","on"]`) {
		t.Errorf("with label_map it exits with %d: %s%s", code, out, errOut)
	}
	recording := files.Write(t, "recording.csv", "t,x,label\n1,1,0\n2,1,0\n3,2,2\n4,2,2\n5,3,1\n6,4,1\n")
	signals := files.Write(t, "signals.yaml", "streams: {s: {topics: [t], signals: [x], time: t, window: {length: 2, hop: 2}}}\nlabels: [{topics: [t/state], sticky: true, map: {0: idle, 1: run, 2: ''}, model: m}]\nmodels: {m: {streams: [s]}}\n")
	if code, out, errOut := edge(t, "windows", recording, "-c", signals); code != exit.OK || !strings.Contains(out, ",idle\n") || !strings.Contains(out, ",run\n") || !strings.Contains(out, ",\n") {
		t.Errorf("windows exits with %d: %s%s", code, out, errOut)
	}
	if code, out, errOut := edge(t, "eval", recording, "-c", signals, "--json"); code != exit.OK || !strings.Contains(out, `"classes":["idle","run"]`) {
		t.Errorf("of signals it exits with %d: %s%s", code, out, errOut)
	}

	table = files.Write(t, "table.csv", "x,label\n"+strings.Repeat("1,0\n5,1\n", 30))
	config = func(more string) string {
		return files.Write(t, "edge.yaml", "streams: {s: {topics: [t], features: [x]"+more+"}}\nlabels: [{topics: [t/state], map: {0: idle, 1: run}}, {topics: [t/more], map: {0: run, 1: run}}]\nmodels: {m: {streams: [s]}}\n")
	}
	const warning = `table.csv: the label "0" of the file is "idle" where it comes on t/state (map), and a class of its own here`
	for _, command := range [][]string{{"eval", table}, {"train", table, "--passes", "1"}} {
		if _, _, errOut := edge(t, append(command, "-c", config(""))...); !strings.Contains(errOut, warning) {
			t.Errorf("%s: %s", command, errOut)
		}
		if _, _, errOut := edge(t, append(command, "-c", config(", label_map: {0: idle, 1: run}"))...); strings.Contains(errOut, "(map)") {
			t.Errorf("%s, with label_map: %s", command, errOut)
		}
	}
}

// A score that has no value, as kappa of one class, is – in the table.
func TestEvalOfOneClass(t *testing.T) {
	code, out, errOut := edge(t, "eval", files.Write(t, "one.csv", "a,label\n1,x\n2,x\n"))
	if code != exit.OK || strings.Contains(out, "NaN") || strings.Count(out, "–") != 2 { // kappa and kept
		t.Errorf("exit %d: %s%s", code, out, errOut)
	}
}

// A flag that no configuration allows is an error of usage, which says what is wanted.
func TestEvalRefusesFlags(t *testing.T) {
	path := harness.TableFile(t, "table.csv", 20)
	for args, want := range map[string]string{
		"eval --kernel foo":       "edge: kernel: foo: want shared or per-class\n",
		"eval --inducing 1":       "edge: inducing: 1: want inducing points, 2 to 1000\n",
		"eval --coverage 1.5":     "edge: conformal.coverage: 1.5: want 0 (no sets), or 0.5 to 0.999\n",
		"eval ask --query=":       "edge: --query: want some of [margin entropy bald random]\n",
		"eval --stream s":         "edge: --stream names a stream of a configuration: give -c FILE\n",
		"train --kernel foo":      "edge: kernel: foo: want shared or per-class\n",
		"train --label-noise 0.6": "edge: label_noise.start: 0.6: want probability, 0 to 0.5\nlabel_noise.start: 0.6: want at most label_noise.max\n",
	} {
		flags := strings.Fields(args)
		if code, _, errOut := edge(t, append(flags, path)...); code != exit.Usage || errOut != want {
			t.Errorf("%s: exit %d: %q, want %q", args, code, errOut, want)
		}
	}
}

// --report writes a page with the command line, and leaves an earlier one after an error.
func TestEvalReport(t *testing.T) {
	table, page := harness.TableFile(t, "table.csv", 60), filepath.Join(t.TempDir(), "report.html")
	for _, args := range [][]string{{"eval", table, "--first", "50"}, {"eval", "split", table, "--folds", "3"}, {"eval", "ask", table, "--budget", "0.2,0.5"}} {
		if code, _, errOut := edge(t, append(args, "--report", page)...); code != exit.OK {
			t.Fatalf("%v exits with %d: %s", args, code, errOut)
		}
		text, err := os.ReadFile(page)
		if command := "edge " + strings.Join(args, " "); err != nil || !strings.Contains(string(text), command) || strings.Count(string(text), "<svg") < 4 {
			t.Errorf("the page has %d bytes and not %q (%v)", len(text), command, err)
		}
	}
	before, err := os.Stat(page)
	if err != nil {
		t.Fatal(err)
	}
	if code, _, _ := edge(t, "eval", table, "--report", filepath.Join(page, "none")); code != exit.Runtime {
		t.Errorf("a path that cannot be written exits with %d", code)
	}
	if code, _, _ := edge(t, "eval", table+".none", "--report", page); code != exit.Runtime {
		t.Errorf("a missing data file exits with %d", code)
	}
	if after, err := os.Stat(page); err != nil || !os.SameFile(before, after) {
		t.Errorf("an evaluation that fails has changed the page: %v", err)
	}
}

// A class above classes.max is not learnt; the daemon counts it and continues.
func TestEvalSkipsWhatTheDaemonRefuses(t *testing.T) {
	path := harness.TableFile(t, "table.csv", 100)
	config := files.Write(t, "edge.yaml", "mqtt: {servers: [mqtt://broker.lan]}\n"+
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
