package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"edge/internal/eval"
	"edge/internal/exit"
	"edge/internal/report"
	"edge/test/harness"
)

func TestTrainImages(t *testing.T) {
	for _, zip := range []bool{false, true} {
		path := harness.IdxFiles(t, 200, zip)
		for _, more := range [][]string{nil, {"--components", "3"}} {
			r := trainJSON(t, append([]string{path, "--test", path, "--inducing", "12", "--kernel", "per-class", "--scale", "common",
				"--start", "classes", "--batch", "50", "--passes", "5", "--rate", "0.02"}, more...)...)
			if r.Dataset != "t" || r.Samples != 200 || !slices.Equal(r.Classes, []string{"0", "1", "2", "3"}) || *r.Error > 0.02 {
				t.Errorf("%v: %s, %d samples of %v, error %g", more, r.Dataset, r.Samples, r.Classes, *r.Error)
			}
		}
	}
}

// Shifted images are learnt offline and left out of the online pass.
func TestTrainShifted(t *testing.T) {
	path := harness.IdxFiles(t, 200, false)
	r := trainJSON(t, path, "--test", path, "--shifted", "--online", "--inducing", "12", "--passes", "1", "--components", "3")
	if r.Samples != 1000 || len(r.Online) != eval.OnlineParts {
		t.Errorf("%d samples, %d points online", r.Samples, len(r.Online))
	}
	if last := r.Online[eval.OnlineParts-1]; last.Error > 0.02 {
		t.Errorf("the online pass ends with an error of %g: it has learnt shifted images", last.Error)
	}
	if code, _, errOut := edge(t, "train", harness.TableFile(t, "table.csv", 60), "--shifted"); code != exit.Usage || !strings.Contains(errOut, "--shifted") {
		t.Errorf("--shifted without images exits with %d: %s", code, errOut)
	}
}

func TestTrainOnlineBeside(t *testing.T) {
	path := harness.TableFile(t, "table.csv", 600)
	svg := filepath.Join(t.TempDir(), "train.svg")
	code, out, errOut := edge(t, "train", path, "--holdout", "0.25", "--passes", "2", "--inducing", "10", "--online", "--json", "--plot", svg)
	if code != exit.OK {
		t.Fatalf("exits with %d: %s", code, errOut)
	}
	var r report.Training
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Online) != eval.OnlineParts || r.Online[eval.OnlineParts-1].Passes != 1 {
		t.Fatalf("the online pass has %d points: %+v", len(r.Online), r.Online)
	}
	first, last := r.Online[0], r.Online[eval.OnlineParts-1]
	if last.NLL <= 0 || last.NLL >= first.NLL || last.Error > 0.5 {
		t.Errorf("the online pass did not learn: %+v, then %+v", first, last)
	}
	drawn, err := os.ReadFile(svg)
	if err != nil || !strings.Contains(string(drawn), "one pass online") {
		t.Errorf("the plot does not show the online pass: %v", err)
	}
	if code, _, errOut := edge(t, "train", path, "--online"); code != exit.Usage || !strings.Contains(errOut, "--online") {
		t.Errorf("--online without held-out rows exits with %d: %s", code, errOut)
	}
}

func trainJSON(t testing.TB, args ...string) report.Training {
	t.Helper()
	return harness.Objects[report.Training](t, edge, append([]string{"train", "--json"}, args...)...)[0]
}
