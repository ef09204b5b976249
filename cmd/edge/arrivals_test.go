package main

import (
	"math"
	"os"
	"strings"
	"testing"
)

// With labels that come at once, all of them, and nothing missing, a stream of
// arrivals is what eval is anyway; whatever is late, rare or missing costs.
func TestArrivals(t *testing.T) {
	data := waveformFile(t, 1500)
	plain := evalJSON(t, data)[0]
	for _, c := range []struct {
		name string
		args []string
		rows uint64 // judged; 0: fewer than all
	}{
		{"late", []string{"--delay", "300"}, 1500},
		{"rare", []string{"--label-fraction", "0.1"}, 1500},
		{"imputed", []string{"--missing", "0.3", "--on-missing", "impute"}, 1500},
		{"marginalised", []string{"--missing", "0.3", "--on-missing", "marginalise"}, 1500},
		{"rejected", []string{"--missing", "0.05"}, 0},
	} {
		r := evalJSON(t, append([]string{data}, c.args...)...)[0]
		if r.Error <= plain.Error || r.Error > 0.6 {
			t.Errorf("%s: error %.3f, nll %.3f; without it %.3f and %.3f", c.name, r.Error, r.NLL, plain.Error, plain.NLL)
		}
		if c.rows > 0 && r.Samples != c.rows || c.rows == 0 && r.Samples >= 1500 {
			t.Errorf("%s: %d rows judged", c.name, r.Samples)
		}
		if again := evalJSON(t, append([]string{data}, c.args...)...)[0]; again.Digest != r.Digest || again.Error != r.Error {
			t.Errorf("%s: a second run differs", c.name)
		}
	}
	for _, args := range [][]string{{"--delay", "-1"}, {"--label-fraction", "2"}, {"--missing", "1"}, {"--on-missing", "guess"}, {"--delay", "5", "--mode", "cv"}} {
		if code, _, _ := edge(t, append([]string{"eval", data}, args...)...); code != exitUsage {
			t.Errorf("eval %v exits with %d", args, code)
		}
	}
}

// Empty cells of a file are features that are missing, as --missing makes them,
// and rows without a label are answered and not judged; without a word about
// them in --on-missing the file is refused.
func TestEmptyCells(t *testing.T) {
	var gaps strings.Builder
	text, err := os.ReadFile(waveformFile(t, 600))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
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
	data := writeFile(t, "gaps.csv", gaps.String())
	for _, how := range []string{"impute", "marginalise"} {
		if r := evalJSON(t, data, "--on-missing", how)[0]; r.Samples != 480 || r.Error > 0.3 || len(r.Classes) != 3 {
			t.Errorf("%s: %d rows judged, error %.3f, classes %q", how, r.Samples, r.Error, r.Classes)
		}
	}
	if code, _, errOut := edge(t, "eval", data); code != exitRuntime || !strings.Contains(errOut, "--on-missing impute") {
		t.Errorf("without --on-missing: exit %d: %s", code, errOut)
	}
	if code, out, errOut := edge(t, "config", "sample", "--from", data); code != exitOK || !strings.Contains(out, "on_missing: impute") {
		t.Errorf("config sample --from: exit %d: %s%s", code, out, errOut)
	}
	p := Player{Features: []string{"a", "b"}, Named: true}
	if got := string(p.appendSample(nil, "r-1", []float64{math.NaN(), 2}, "")); got != `{"id":"r-1","features":{"a":null,"b":2}}` {
		t.Errorf("published as %s", got)
	}
}
