package main

import (
	"encoding/json"
	"strings"
	"testing"

	"edge/internal/exit"
	"edge/internal/report"
	"edge/test/harness"
)

func TestDemo(t *testing.T) {
	data := harness.WaveformFile(t, 400)
	code, out, errOut := edge(t, "demo", data, "--rate", "0", "--json")
	if code != exit.OK || errOut != "" {
		t.Fatalf("exits with %d: %s", code, errOut)
	}
	var r report.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if r.Dataset != "waveform" || r.Samples != 400 || r.Error > 0.3 || len(r.Digest) != 64 || len(r.Curve) == 0 {
		t.Errorf("the summary is %s", out)
	}
	code, out, errOut = edge(t, "demo", "--for", "1s", "--rate", "100")
	if code != exit.OK || errOut != "" && !strings.Contains(errOut, "this machine is too busy") {
		t.Fatalf("exits with %d: %s", code, errOut)
	}
	if !strings.HasPrefix(out, "edge demo: waveform, 21 features, 3 classes; broker on mqtt://127.0.0.1:") || !strings.Contains(out, "macro-f1") {
		t.Errorf("it shows\n%s", out)
	}
}
