package main

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"edge/internal/exit"
	"edge/test/harness"
)

func TestEvalLinear(t *testing.T) {
	path := harness.TableFile(t, "table.csv", 600)
	r := evalJSON(t, path, "--inducing", "10", "--linear")
	if len(r) != 2 || !strings.HasPrefix(r[1].Dataset, "table, soft-max regression at rate 0.0") || r[1].Samples != 600 {
		t.Fatalf("%d reports, the second of %+v", len(r), r[len(r)-1])
	}
	if r[1].Balanced < 0.5 || r[1].Kappa <= 0 || r[1].Error <= 0 || r[1].Error > 0.5 || r[1].NLL <= 0 || r[1].NLL > math.Log(3) {
		t.Errorf("soft-max regression did not learn: error %g, log loss %g", r[1].Error, r[1].NLL)
	}
	late := evalJSON(t, path, "--inducing", "10", "--linear", "--batch", "300")
	if late[1].NLL <= r[1].NLL {
		t.Errorf("log loss is %g with labels after every 300 predictions, %g after 16", late[1].NLL, r[1].NLL)
	}
	sets := filepath.Join(t.TempDir(), "sets.svg") // without those of soft-max regression, which has none
	if code, _, errOut := edge(t, "eval", path, "--inducing", "10", "--linear", "--plot-sets", sets); code != exit.OK {
		t.Errorf("--linear --plot-sets exits with %d: %s", code, errOut)
	}
	if code, _, errOut := edge(t, "eval", path, "--linear", "--mode", "cv"); code != exit.Usage || !strings.Contains(errOut, "--linear") {
		t.Errorf("--linear --mode cv exits with %d: %s", code, errOut)
	}
}
