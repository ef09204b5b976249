package main

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"edge/internal/broker/brokertest"
	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/internal/report"
	"edge/test/files"
	"edge/test/harness"
)

// Late or rare labels and missing features raise the error; a second run gives the
// same result.
func TestArrival(t *testing.T) {
	rows, size := brokertest.Brief(1500, 300), strconv.Itoa(brokertest.Brief(50, 10))
	data := harness.WaveformFile(t, rows)
	eval := func(args ...string) report.Report {
		t.Helper()
		return evalJSON(t, append([]string{data, "--inducing", size}, args...)...)[0]
	}
	plain := eval()
	for _, c := range []struct {
		name string
		args []string
		all  bool // rows are judged
	}{
		{"late", []string{"--delay", strconv.Itoa(rows / 5)}, true},
		{"rare", []string{"--label-fraction", "0.1"}, true},
		{"imputed", []string{"--missing", "0.3", "--on-missing", "impute"}, true},
		{"marginalised", []string{"--missing", "0.3", "--on-missing", "marginalise"}, true},
		{"rejected", []string{"--missing", "0.05", "--on-missing", "reject"}, false},
	} {
		r := eval(c.args...)
		if r.Error <= plain.Error || r.Error > 0.6 {
			t.Errorf("%s: error %.3f, nll %.3f; without it %.3f and %.3f", c.name, r.Error, r.NLL, plain.Error, plain.NLL)
		}
		if all := r.Samples == uint64(rows); all != c.all || r.Samples > uint64(rows) {
			t.Errorf("%s: %d rows judged", c.name, r.Samples)
		}
		if again := eval(c.args...); again.Digest != r.Digest || again.Error != r.Error {
			t.Errorf("%s: a second run differs", c.name)
		}
	}
	for _, args := range [][]string{{"--delay", "-1"}, {"--label-fraction", "2"}, {"--missing", "1"}, {"--on-missing", "guess"}, {"--delay", "5", "--mode", "cv"}} {
		if code, _, _ := edge(t, append([]string{"eval", data}, args...)...); code != exit.Usage {
			t.Errorf("eval %v exits with %d", args, code)
		}
	}
}

// Empty cells of a file are missing features, as --missing makes them, and rows
// without a label are predicted and not judged; the configuration and --on-missing
// decide how they are treated.
func TestEmptyCells(t *testing.T) {
	var gaps strings.Builder
	rows, size := brokertest.Brief(600, 300), strconv.Itoa(brokertest.Brief(50, 20))
	text, err := os.ReadFile(harness.WaveformFile(t, rows))
	if err != nil {
		t.Fatal(err)
	}
	n, w := 0, dataset.NewWaveform(1)
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), ",")
		if n%3 == 1 {
			cells[n%20] = ""
		}
		if n%5 == 2 {
			cells[len(cells)-1] = ""
		}
		gaps.WriteString(strings.Join(cells, ",") + "\n")
		n++
	}
	data := files.Write(t, "gaps.csv", gaps.String())
	for _, how := range []string{"impute", "marginalise"} {
		if r := evalJSON(t, data, "--on-missing", how, "--inducing", size)[0]; r.Samples != uint64(rows)*4/5 || r.Error > 0.3 || len(r.Classes) != 3 {
			t.Errorf("%s: %d rows judged, error %.3f, classes %q", how, r.Samples, r.Error, r.Classes)
		}
	}
	marginalised := evalJSON(t, data, "--on-missing", "marginalise", "--inducing", size)[0]
	for i, r := range evalJSON(t, data, data, "--inducing", size) { // the second starts with a new model
		if r.Digest != marginalised.Digest || r.Samples != marginalised.Samples || r.Error != marginalised.Error {
			t.Errorf("by default, time %d: %d rows judged, error %.3f; marginalised %d, %.3f", i+1, r.Samples, r.Error, marginalised.Samples, marginalised.Error)
		}
	}
	config := func(how string) string {
		return files.Write(t, how+".yaml", fmt.Sprintf("streams: {s: {topics: [s], on_missing: %s, features: [%s]}}\nmodels: {m: {streams: [s], inducing: %s}}\n",
			how, strings.Join(w.Features(), ", "), size))
	}
	if r := evalJSON(t, data, "-c", config("reject"))[0]; r.Samples >= uint64(rows)*3/5 || r.Samples == 0 {
		t.Errorf("on_missing: reject in the configuration: %d rows judged", r.Samples)
	}
	if r := evalJSON(t, data, "-c", config("impute"))[0]; r.Samples != uint64(rows)*4/5 {
		t.Errorf("on_missing: impute in the configuration: %d rows judged", r.Samples)
	}
	if _, _, errOut := edge(t, "eval", data, "-c", config("reject")); !strings.Contains(errOut, "are left out, which lack a label or a feature; on_missing is reject: --on-missing marginalise takes") {
		t.Errorf("the number of rows left out is not printed: %s", errOut)
	}
	for _, args := range [][]string{{"--mode", "holdout", "--repeats", "2"}, {"--query", "margin", "--budget", "0.5"}, {"--linear"}, {"--mode", "cv", "--repeats", "2", "--passes", "2"}} {
		for _, how := range []string{"reject", "impute", "marginalise"} {
			for _, r := range evalJSON(t, append([]string{data, "--inducing", size, "--on-missing", how}, args...)...) {
				if math.IsNaN(r.Error) || math.IsNaN(r.NLL) || r.Error > 0.6 || r.Samples == 0 {
					t.Errorf("%v, %s: %d rows, error %.3f, nll %.3f", args, how, r.Samples, r.Error, r.NLL)
				}
			}
		}
	}
	for _, how := range []string{"", "reject", "impute"} {
		args := []string{"train", data, "--passes", "3", "--holdout", "0.2", "--inducing", size}
		if how != "" {
			args = append(args, "--on-missing", how)
		}
		if code, _, errOut := edge(t, args...); code != exit.OK || !strings.Contains(errOut, "left out: ") {
			t.Errorf("train, %s: exit %d: %s", how, code, errOut)
		}
	}
}
